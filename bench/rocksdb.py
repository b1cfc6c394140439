"""RocksDB by Debian's `db_bench` (package rocksdb-tools): its command lines, and what it prints.

Every step is a process of its own with a seed of its own: with one seed `overwrite` repeats the keys of the fill.
"""

import math
import os
import re
import subprocess
import sys
import threading

import common
from common import MIB

KEY_BYTES = 20
THREADS = 2
MODES = {"lsm": "rocksdb", "blob": "rocksdb-blob"}
# Of `deleterandom` and `overwrite` in turn, as db_bench has no workload that does both.
DELETE_ROUNDS = 8
# db_bench scatters popular keys by this factor modulo their number, which must not share a divisor
# with it.
SCATTER = 0x5BD1E995
# Workloads that db_bench can do with skewed keys.
SKEWED = ("overwrite", "get")
NO_SKEW = "db_bench cannot skew this workload"

RESULT = re.compile(r"^(\w+)\s+:\s+[\d.]+ micros/op \d+ ops/sec ([\d.]+) seconds (\d+) operations;(?: +([\d.]+) MB/s)?")
KIND = re.compile(r"^Microseconds per (\w+):")
LONGEST = re.compile(r"^Min: \d+ +Median: [\d.]+ +Max: (\d+)")
BUCKET = re.compile(r"^[\[(] *(\d+), *(\d+) \] +(\d+)")
COUNTER = re.compile(r"^(rocksdb\.[\w.]+) COUNT : (\d+)$", re.MULTILINE)


def keys_near(keys):
    """The greatest number of keys up to this that db_bench can scatter."""
    while math.gcd(keys, SCATTER) > 1:
        keys -= 1
    return keys


class Histogram:
    """Latencies of one kind of operation in buckets, of all phases of a run."""

    def __init__(self):
        self.buckets = {}
        self.longest = 0

    def add(self, other):
        for bounds, count in other.buckets.items():
            self.buckets[bounds] = self.buckets.get(bounds, 0) + count
        self.longest = max(self.longest, other.longest)

    def count(self):
        return sum(self.buckets.values())

    def quantile(self, share):
        """Linear inside of a bucket, as db_bench does it."""
        wanted, below = self.count() * share, 0
        for (low, high), count in sorted(self.buckets.items()):
            if below + count >= wanted:
                return min(low + (high - low) * (wanted - below) / count, self.longest)
            below += count
        return self.longest

    def summary(self):
        quantiles = [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999)]
        return {**{name: self.quantile(share) for name, share in quantiles}, "max_us": self.longest}


class Printed:
    """What a run of db_bench printed: times and histograms of its phases, and its counters."""

    def __init__(self, text):
        self.seconds, self.operations, self.bytes, self.histograms = 0.0, 0, 0.0, {}
        histogram = None
        for line in text.splitlines():
            if found := RESULT.match(line):
                self.seconds += float(found[2])
                self.operations += int(found[3])
                self.bytes += float(found[4] or 0) * MIB * float(found[2])
                histogram = None
            elif found := KIND.match(line):
                histogram = self.histograms.setdefault(found[1], Histogram())
            elif histogram and (found := LONGEST.match(line)):
                histogram.longest = max(histogram.longest, int(found[1]))
            elif histogram and (found := BUCKET.match(line)):
                bounds = (int(found[1]), int(found[2]))
                histogram.buckets[bounds] = histogram.buckets.get(bounds, 0) + int(found[3])
        self.counters = {name: int(value) for name, value in COUNTER.findall(text)}
        # Debian's build does.
        self.checks_assertions = "Assertions are enabled" in text

    def count(self, kind):
        return self.histograms[kind].count() if kind in self.histograms else 0

    def latency(self):
        whole = Histogram()
        for part in self.histograms.values():
            whole.add(part)
        return whole.summary()


class Space:
    """Watches the bytes of a directory: the most and the last."""

    def __init__(self, directory):
        self.directory, self.most, self.last = directory, 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.look()

    def watch(self):
        while not self.ended.wait(0.2):
            self.look()

    def look(self):
        self.last = 0
        try:
            for entry in os.scandir(self.directory):
                try:
                    self.last += entry.stat().st_blocks * 512
                except FileNotFoundError:
                    pass
        except FileNotFoundError:
            pass
        self.most = max(self.most, self.last)


class Rocksdb:
    """A database of one cell, which is filled and then measured."""

    def __init__(self, program, directory, mode, keys, value_bytes, seed):
        self.program, self.db, self.report_file = program, directory / "db", directory / "seconds.csv"
        self.mode, self.keys, self.value_bytes, self.seed = mode, keys, value_bytes, seed

    def command(self, benchmarks, threads, *more):
        """A step. The settings are those of softflash: as much memory, as many threads, no compression."""
        self.seed += 1000
        command = [
            self.program, f"--benchmarks={benchmarks}", f"--threads={threads}", f"--seed={self.seed}", f"--db={self.db}",
            f"--num={self.keys}", f"--key_size={KEY_BYTES}", f"--value_size={self.value_bytes}",
            "--compression_type=none", "--use_direct_reads", "--use_direct_io_for_flush_and_compaction",
            f"--write_buffer_size={64 * MIB}", f"--cache_size={64 * MIB}", "--max_background_jobs=2", "--bloom_bits=10",
            "--histogram", "--statistics", "--report_interval_seconds=1", f"--report_file={self.report_file}", *more,
        ]
        if self.mode == "blob":
            command += [
                "--enable_blob_files=true", f"--min_blob_size={self.value_bytes}",
                "--enable_blob_garbage_collection=true", "--use_blob_cache=true", "--use_shared_block_and_blob_cache=true",
            ]
        return command

    def fills(self):
        """The two ways to fill: each key once, which db_bench does with one thread, and with two threads with some keys
        written twice and others not at all."""
        return [
            self.command("filluniquerandom", 1),
            self.command("fillrandom", THREADS, f"--writes={self.keys // THREADS}"),
        ]

    def fill(self):
        """Writes every key once and flushes, so that a measurement does not begin with a replay of the log."""
        self.run(self.command("filluniquerandom,flush", 1))

    def measurement(self, workload, operations, skewed):
        """The step that measures a workload; the counts are per thread."""
        each, reuse = operations // THREADS, "--use_existing_db=1"
        if workload == "overwrite" and skewed:
            # mixgraph with writes alone draws keys as `readrandom` does.
            return self.command(
                "mixgraph", THREADS, reuse, f"--reads={each}", "--mix_get_ratio=0", "--mix_put_ratio=1", "--mix_seek_ratio=0",
                f"--mix_max_value_size={max(1024, self.value_bytes)}", f"--value_theta={self.value_bytes}", "--value_sigma=0",
                self.skew(),
            )
        if workload == "overwrite":
            return self.command("overwrite", THREADS, reuse, f"--writes={each}")
        if workload == "get":
            return self.command("readrandom", THREADS, reuse, f"--reads={each}", *([self.skew()] if skewed else []))
        if workload == "mixed":
            counts = [f"--reads={each}", f"--writes={each}", "--readwritepercent=50"]
            return self.command("readrandomwriterandom", THREADS, reuse, *counts)
        if workload == "scan":
            return self.command("seekrandom", THREADS, reuse, f"--reads={each}", "--seek_nexts=100")
        phase = max(1, each // DELETE_ROUNDS // 2)
        phases = ",".join(["deleterandom,overwrite"] * DELETE_ROUNDS)
        return self.command(phases, THREADS, reuse, f"--deletes={phase}", f"--writes={phase}")

    def skew(self):
        """Ranks uniform in their logarithm: Zipf's law with the exponent 1."""
        return f"--read_random_exp_range={math.log(self.keys)}"

    def run(self, command):
        child = common.Child(command)
        if child.status != 0:
            sys.exit(f"db_bench failed: {' '.join(map(str, command))}\n{child.output[-2000:]}{child.errors[-2000:]}")
        return child

    def measure(self, workload, command):
        """Figures of a step, under the names of `softflash bench kv -o json`."""
        with Space(self.db) as space:
            child = self.run(command)
        printed = Printed(child.output)
        record = KEY_BYTES + self.value_bytes
        written = printed.count("write") * record + printed.count("delete") * KEY_BYTES
        # A scan near the last key is shorter, so db_bench has to say what it read.
        read = printed.bytes if workload == "scan" else printed.count("read") * record
        # All bytes that flushes and compactions wrote, blob files included, and the log.
        counters = ["rocksdb.flush.write.bytes", "rocksdb.compact.write.bytes", "rocksdb.wal.bytes"]
        flash = sum(printed.counters[name] for name in counters)
        live = self.keys * record
        both = printed.count("read") > 0 and printed.count("write") > 0
        series = self.series() if workload != "delete" else []
        rate = printed.operations / printed.seconds
        whole = [second["operations"] for second in series][: int(printed.seconds)]
        return {
            "operations": printed.operations,
            "seconds": printed.seconds,
            "operations_per_second": rate,
            "bytes_per_second": (written + read) / printed.seconds,
            "slowest_second_ratio": min(whole) / rate if len(whole) >= 2 else None,
            "cpu_us_per_operation": child.cpu_seconds * 1e6 / printed.operations,
            "latency": printed.latency(),
            "read_latency": printed.histograms["read"].summary() if both else None,
            "write_latency": printed.histograms["write"].summary() if both else None,
            "write_amplification": flash / written if written else None,
            # Which keys are live after deletions db_bench does not say.
            "space_used_ratio": space.last / live if workload != "delete" else None,
            "space_peak_bytes": space.most,
            "peak_memory_bytes": child.peak_memory_bytes,
            "checks_assertions": printed.checks_assertions,
            "series": series,
        }

    def series(self):
        """Operations of each second."""
        try:
            lines = self.report_file.read_text().splitlines()[1:]
        except FileNotFoundError:
            return []
        return [{"operations": int(line.split(",")[1])} for line in lines if "," in line]


def version(program):
    text = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    return text.strip()
