#!/usr/bin/env python3
"""A volume over NBD against `qemu-nbd` on a raw file of the same file system, in alternating turns, with the NBD engine of
fio: sequential and random writes and reads. Every turn begins with new data; the collection of the volume is active in the
writes, and the last sequential reads are of data that were overwritten at random."""

import common
from common import MIB, Scratch, SoftFlash, free_port
import time

WORKLOADS = {
    "sequential write": {"rw": "write", "bs": "1M", "iodepth": 4},
    "sequential read": {"rw": "read", "bs": "1M", "iodepth": 4},
    "random write": {"rw": "randwrite", "bs": "4k", "iodepth": 32},
    "random read": {"rw": "randread", "bs": "4k", "iodepth": 32},
    "sequential read after random writes": {"rw": "read", "bs": "1M", "iodepth": 4},
}


class Volume:
    """A volume of a new store."""

    def __init__(self, scratch, size, _depth):
        data = scratch / "data"
        # Half of the units, a quarter of the device, is the volume.
        common.format_device(data, 8 * size, "--units", "16", "--shards", "2", "--volume-units", "8")
        port = free_port()
        self.server = SoftFlash(data, "--nbd", f"127.0.0.1:{port}")
        try:
            self.server.client().call("FLASH.VOLUME", "CREATE", "bench", size)
        except BaseException:
            self.end()
            raise
        self.uri = f"nbd://127.0.0.1:{port}/bench"

    def cpu_seconds(self):
        return self.server.cpu_seconds()

    def end(self):
        self.server.__exit__()


class RawFile:
    """A raw file that `qemu-nbd` exports, with direct I/O."""

    def __init__(self, scratch, size, cache):
        path = scratch / "raw"
        with open(path, "wb") as file:
            file.truncate(size)
        port = free_port()
        # As the file device of SoftFlash; Debian builds qemu-nbd with io_uring.
        command = ["qemu-nbd", "-f", "raw", f"--cache={cache}", "--aio=io_uring", "-e", "8", "-t"]
        self.server = common.Server([*command, "-b", "127.0.0.1", "-p", str(port), str(path)], port)
        self.uri = f"nbd://127.0.0.1:{port}"
        time.sleep(0.5)

    def cpu_seconds(self):
        return self.server.cpu_seconds()

    def end(self):
        self.server.__exit__()


def measure(side, options):
    """Rate, bytes per second, latency and CPU of each workload."""
    results = {}
    for name, job in WORKLOADS.items():
        before = side.cpu_seconds()
        limits = {"size": f"{options.size_mib}m", "time_based": 1, "runtime": options.seconds, "randrepeat": 0}
        done = common.fio(None, ioengine="nbd", uri=side.uri, **limits, **job)
        part = done["write" if "write" in job["rw"] else "read"]
        percentiles = part["clat_ns"]["percentile"]
        results[name] = {
            "requests_per_second": part["iops"],
            "bytes_per_second": part["bw_bytes"],
            "p50_ms": percentiles["50.000000"] / 1e6,
            "p999_ms": percentiles["99.900000"] / 1e6,
            "max_ms": part["clat_ns"]["max"] / 1e6,
            "server_cpu_us_per_request": (side.cpu_seconds() - before) * 1e6 / max(part["total_ios"], 1),
        }
    return results


def turn(kind, options):
    with Scratch(options.dir) as scratch:
        side = kind(scratch, options.size_mib * MIB, options.cache)
        try:
            return measure(side, options)
        finally:
            side.end()


def main():
    options = common.arguments(
        __doc__,
        quick={"rounds": 1, "seconds": 2, "size_mib": 512},
        size_mib=(1024, "size of the volume in MiB"),
        seconds=(6, "of each workload"),
        cache=("none", "cache mode of qemu-nbd"),
    )
    common.need("fio", "qemu-nbd")
    sides = {"volume": Volume, "qemu-nbd": RawFile}
    rounds = [{name: turn(kind, options) for name, kind in sides.items()} for _ in range(options.rounds)]
    table = []
    for workload in WORKLOADS:

        def of(side, figure):
            return common.median([one[side][workload][figure] for one in rounds])

        rate = [of(side, "bytes_per_second") for side in sides]
        table.append([
            workload,
            *(f"{bytes_per_second / 1e6:,.0f}" for bytes_per_second in rate),
            f"{rate[0] / rate[1]:.2f}",
            *(f"{of(side, figure):.1f}" for figure in ["p999_ms", "max_ms", "server_cpu_us_per_request"] for side in sides),
        ])
    header = ["", "MB/s", "qemu-nbd", "ratio", "p99.9 ms", "qemu-nbd", "max ms", "qemu-nbd", "CPU us", "qemu-nbd"]
    if not options.json:
        common.print_table(header, table)
        print()
    results = {row[0]: {"ratio": float(row[3])} for row in table}
    common.print_json("against_qemu_nbd", results, {"rounds": rounds})


common.run(main)
