#!/usr/bin/env python3
"""SoftFlash against RocksDB (Debian's db_bench, in its plain mode and with blob files), in alternating turns.

Each turn fills an empty store with every key once and then measures one workload. Both sides have two client threads,
no compression and direct I/O; RocksDB has two write buffers and a cache of 64 MiB each, SoftFlash 192 MiB in all.
Turns that have ended are kept in --results: after Ctrl-C the same command continues."""

import json
import shutil
import sys

import common
import rocksdb
from common import GIB, MIB, Scratch
from rocksdb import KEY_BYTES, MODES, Rocksdb
from turns import Turns, identity

EXAMPLES = """examples:
  bench/against_rocksdb.py --quick                                   a few minutes: 1 and 128 KiB, a quarter full
  bench/against_rocksdb.py --sizes 128KiB --workloads overwrite --fullness 25,50,70,85
  bench/against_rocksdb.py --sizes 128KiB --workloads overwrite --fullness 70,80,90 --modes ''
                                                                     write amplification beside theory
  bench/against_rocksdb.py --json > rocksdb.json && softflash-bench report rocksdb.json --out kv.html

RocksDB has no device that could be full: its turns are the same for every fullness, and `needs` is the most space that
its files took, in units of the data. db_bench has no Zipf distribution. Reads and overwrites can be skewed so
that ranks are uniform in their logarithm, which is Zipf's law with exponent 1 instead of 0.99; other workloads cannot."""

WORKLOADS = ("fill", "overwrite", "get", "mixed", "scan", "delete")
DISTRIBUTIONS = {"uniform": "uniform", "zipf": "zipf:0.99"}
# Workloads for which skew means nothing, or which read so much that it means little.
UNIFORM_ONLY = ("fill", "scan")
QUICK = {"sizes": "1KiB,128KiB", "workloads": "fill,overwrite,get", "distributions": "uniform", "fullness": "25", "rounds": 1,
         "data": "512MiB"}
SCAN_PAGE = 100


def options():
    chosen = common.arguments(
        __doc__,
        EXAMPLES,
        QUICK,
        sizes=("100,1KiB,16KiB,128KiB,512KiB", "sizes of values"),
        workloads=(",".join(WORKLOADS), "workloads; mixed reads and overwrites, half each; overwrite writes 3 times the data"),
        distributions=("uniform,zipf", "distributions of keys: uniform, zipf (exponent 0.99)"),
        fullness=("25,50,70,85", "keys and values in percent of the device"),
        modes=(",".join(MODES), "modes of RocksDB: lsm, blob; empty for none"),
        data=("2GiB", "bytes of keys and values"),
        most_keys=(5_000_000, "most keys; small values make fewer data then"),
        memory=("192MiB", "--memory of SoftFlash"),
        db_bench=("db_bench", "RocksDB's benchmark"),
        results=(str(common.ROOT / "target" / "bench-results" / "rocksdb"), "where finished turns are kept"),
    )
    chosen.sizes = [common.parse_size(size) for size in chosen.sizes.split(",")]
    chosen.fullness = [fullness_of(text) for text in chosen.fullness.split(",")]
    chosen.data = common.parse_size(chosen.data)
    for name, allowed in [("workloads", WORKLOADS), ("distributions", DISTRIBUTIONS), ("modes", MODES)]:
        chosen_names = [word for word in getattr(chosen, name).split(",") if word]
        unknown = [word for word in chosen_names if word not in allowed]
        if unknown:
            sys.exit(f"--{name}: `{unknown[0]}` is none of {', '.join(allowed)}")
        setattr(chosen, name, chosen_names)
    return chosen


def fullness_of(text):
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = 0
    if not 0 < percent < 100:
        sys.exit(f"--fullness: `{text}` is no percentage above 0 and below 100, such as 70")
    return percent


def operations(workload, keys, size):
    """As many as change the whole store, or as take a while where nothing changes."""
    return {
        "fill": keys,
        "overwrite": 3 * keys,
        "get": min(300_000, 8 * GIB // size),
        "mixed": min(600_000, 2 * keys),
        "scan": max(20, min(30_000, 4 * GIB // (SCAN_PAGE * size))),
        "delete": 2 * keys,
    }[workload]


class Cell:
    """What all engines do in turns: one workload on values of one size."""

    def __init__(self, chosen, size, workload, distribution):
        self.chosen, self.size, self.workload, self.distribution = chosen, size, workload, distribution
        self.keys = rocksdb.keys_near(min(chosen.most_keys, chosen.data // (KEY_BYTES + size)))
        self.operations = operations(workload, self.keys, size)
        self.name = f"{workload} {common.size_name(size)} {distribution}"

    def turn(self, engine, fullness, number):
        """A turn of an engine: its inputs, and the function that makes it."""
        about = {"workload": self.workload, "value_bytes": self.size, "distribution": self.distribution, "keys": self.keys,
                 "engine": engine, "full_percent": fullness, "round": number}
        if engine == "softflash":
            return self.softflash(about, fullness, number + 1)
        if engine == "fio":
            return self.fio(about)
        mode = next(mode for mode, name in MODES.items() if name == engine)
        return self.rocksdb(about, mode, number + 1)

    def softflash(self, about, fullness, seed):
        command = [
            common.softflash(), "bench", "kv", "--workload", self.workload, "--keys", self.keys, "--value-size", self.size,
            "--operations", self.operations, "--threads", 2, "--depth", 1, "--durability", "1s", "--memory",
            self.chosen.memory, "--fullness", f"{fullness:g}%", "--seed", seed, "--series", "-o", "json",
        ]
        if self.workload not in UNIFORM_ONLY:
            command += ["--distribution", DISTRIBUTIONS[self.distribution]]
        inputs = {"command": list(map(str, command[1:])), "program": identity(command[0])}

        def make():
            with Scratch(self.chosen.dir) as scratch:
                child = common.Child([*command, "--directory", scratch])
            if child.status == 0:
                return {**json.loads(child.output), **about}
            if "the store is full" not in child.errors:
                sys.exit(f"{' '.join(map(str, command))}\n{child.errors}")
            return {**about, "refused": child.errors.strip().splitlines()[-1].removeprefix("softflash: error: ")}

        return inputs, make

    def rocksdb(self, about, mode, seed):
        skewed = self.distribution == "zipf"
        if skewed and self.workload not in rocksdb.SKEWED:
            return {}, lambda: {**about, "refused": rocksdb.NO_SKEW}
        inputs = {
            "program": rocksdb.version(self.chosen.db_bench), "operations": self.operations, "seed": seed,
            "settings": self.database("DIR", mode, seed).measurement(self.workload, self.operations, skewed),
        }

        def make():
            with Scratch(self.chosen.dir) as scratch:
                database = self.database(scratch, mode, seed)
                if self.workload != "fill":
                    database.fill()
                    step = database.measurement(self.workload, self.operations, skewed)
                    return {**database.measure(self.workload, step), **about}
                once, racing = database.fills()
                figures = [database.measure("fill", once)]
                shutil.rmtree(database.db)
                figures.append(database.measure("fill", racing))
                faster = max(figures, key=lambda figure: figure["operations_per_second"])
                return {**faster, **about, "threads": 1 + figures.index(faster)}

        return inputs, make

    def database(self, directory, mode, seed):
        return Rocksdb(self.chosen.db_bench, common.pathlib.Path(directory), mode, self.keys, self.size, seed)

    def fio(self, about):
        """The rate of the disk itself: writes of 1 MiB at depth 8 over a file as large as the data."""
        total = self.keys * (KEY_BYTES + self.size) // MIB * MIB

        def make():
            with Scratch(self.chosen.dir) as scratch:
                job = common.fio(scratch / "file", rw="write", bs=MIB, iodepth=8, size=total, overwrite=1, end_fsync=1)
            return {**about, "bytes_per_second": job["write"]["bw_bytes"]}

        return {"bytes": total}, make


def engines(chosen, workload, distribution):
    """The turns of a round, with the fullness of the device where there is one."""
    turns = [(MODES[mode], None) for mode in chosen.modes]
    turns += [("softflash", percent) for percent in chosen.fullness]
    if workload in ("fill", "overwrite") and distribution == "uniform":
        turns.append(("fio", None))
    return turns


def measure(chosen, cell, turns):
    """All turns of a cell: each round in the other direction, so that no engine is always first."""
    ended = []
    for number in range(chosen.rounds):
        order = engines(chosen, cell.workload, cell.distribution)
        for engine, fullness in order if number % 2 == 0 else reversed(order):
            inputs, make = cell.turn(engine, fullness, number)
            where = f"-{fullness:g}" if fullness else ""
            name = f"{cell.workload}-{common.size_name(cell.size)}-{cell.distribution}-{engine}{where}-{number + 1}"
            ended.append(turns.get(name, inputs, make))
            print(f"{name}: {brief(ended[-1])}", file=sys.stderr, flush=True)
    return ended


def brief(turn):
    if "refused" in turn:
        return turn["refused"]
    return f"{turn['bytes_per_second'] / MIB:,.0f} MiB/s"


def middle(turns, *path):
    """The median over the rounds of a figure; none if no round has it."""
    values = []
    for turn in turns:
        for name in path:
            turn = (turn or {}).get(name)
        if turn is not None:
            values.append(turn)
    return common.median(values) if values else None


COLUMNS = [
    ("op/s", ["operations_per_second"], "{:,.0f}"),
    ("MiB/s", ["bytes_per_second"], None),
    ("written", ["write_amplification"], "{:.2f}"),
    ("CPU us/op", ["cpu_us_per_operation"], "{:,.1f}"),
    ("p50 us", ["latency", "p50_us"], "{:,.0f}"),
    ("p99 us", ["latency", "p99_us"], "{:,.0f}"),
    ("p99.9 us", ["latency", "p999_us"], "{:,.0f}"),
    ("max us", ["latency", "max_us"], "{:,.0f}"),
    ("slowest s", ["slowest_second_ratio"], "{:.2f}"),
    ("space", ["space_used_ratio"], "{:.2f}"),
    ("memory", ["peak_memory_bytes"], None),
]


def row(name, turns):
    if refused := next((turn["refused"] for turn in turns if "refused" in turn), None):
        return [name, *[""] * len(COLUMNS), refused]
    cells = [name]
    for _, path, form in COLUMNS:
        value = middle(turns, *path)
        cells.append("" if value is None else form.format(value) if form else f"{value / MIB:,.0f}")
    peak = middle(turns, "space_peak_bytes")
    data = turns[0]["keys"] * (KEY_BYTES + turns[0]["value_bytes"])
    return [*cells, "" if peak is None else f"needs {peak / data:.2f} of the data"]


def ratios(chosen, cell, of):
    """Ours to the better mode of RocksDB, at every fullness."""
    theirs = [rate for mode in chosen.modes if (rate := middle(of(MODES[mode], None), "bytes_per_second"))]
    found = {}
    for percent in chosen.fullness:
        ours = middle(of("softflash", percent), "bytes_per_second")
        if ours and theirs:
            found[f"{cell.name}, {percent:g} % full: rate / RocksDB's better mode"] = ours / max(theirs)
    return found


def show(chosen, cell, ended):
    """Prints the medians of a cell; returns the ratios."""

    def of(engine, percent):
        return [turn for turn in ended if turn["engine"] == engine and turn["full_percent"] == percent]

    found = ratios(chosen, cell, of)
    if not chosen.json:
        rows = []
        for engine, percent in engines(chosen, cell.workload, cell.distribution):
            name = engine if percent is None else f"{engine}, {percent:g} % full"
            rows.append(row(name, of(engine, percent)))
        print(f"\n{cell.name}: {cell.keys:,} keys, {cell.operations:,} operations")
        common.print_table(["", *[name for name, *_ in COLUMNS]], rows)
        for what, ratio in found.items():
            print(f"{what}: {ratio:.2f}")
    return found


def notes(chosen, turns):
    """What a reader of the figures has to know."""
    lines = []
    if chosen.modes:
        lines.append(f"RocksDB by {rocksdb.version(chosen.db_bench)}.")
    if any(turn.get("checks_assertions") for turn in turns):
        lines.append("This build of RocksDB checks assertions, as it says itself: its processor time is somewhat too high.")
    if "zipf" in chosen.distributions and chosen.modes:
        lines.append("With zipf, RocksDB's keys have exponent 1 (ranks uniform in their logarithm), ours 0.99.")
    return lines


def main():
    chosen = options()
    common.need("fio")
    if chosen.modes and shutil.which(chosen.db_bench) is None:
        sys.exit(f"--db-bench {chosen.db_bench}: not found; on Debian: apt-get install -y rocksdb-tools")
    turns, details, results = Turns(chosen.results), [], {}
    for size in chosen.sizes:
        for workload in chosen.workloads:
            for distribution in chosen.distributions:
                if distribution != "uniform" and workload in UNIFORM_ONLY:
                    continue
                cell = Cell(chosen, size, workload, distribution)
                ended = measure(chosen, cell, turns)
                details += ended
                results.update(show(chosen, cell, ended))
    settings = {"data": chosen.data, "memory": chosen.memory, "rounds": chosen.rounds, "notes": notes(chosen, details)}
    if not chosen.json:
        print("", *settings["notes"], "", sep="\n")
    common.print_json("rocksdb", results, {"settings": settings, "turns": details})


common.run(main, "data were removed, finished turns are kept: the same command continues")
