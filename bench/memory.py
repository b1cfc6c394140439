#!/usr/bin/env python3
"""Memory: an idle server, and indexes and filters per value of 1 KiB."""

import time

import common
from common import GIB, MIB, Scratch, SoftFlash


def main():
    options = common.arguments(__doc__, keys=(1_000_000, "keys of 1 KiB values"))
    with Scratch(options.dir) as scratch:
        data = scratch / "data"
        common.format_device(data, 8 * GIB)
        with SoftFlash(data) as server:
            time.sleep(2)
            idle = server.resident_bytes()
            server.terminate()
        with SoftFlash(data, "--durability", "1s", "--memory", "64MiB") as server:
            client = server.client()
            client.load((b"key:%012d" % number, common.noise(number, 1024)) for number in range(options.keys))
            loaded = server.resident_bytes()
            server.terminate()
        with SoftFlash(data, "--memory", "64MiB") as server:
            stats = server.client().stats()
            restarted = server.resident_bytes()
    on_flash = stats["patches"] * 8 * MIB
    # Values in memtables have no index, so only values in patches count.
    in_patches = max(1, options.keys - stats["memtable_bytes"] // 1300)
    rows = [
        ("idle server, MiB", idle / MIB, "goal: below 150"),
        ("after loading with --memory 64MiB, MiB", loaded / MIB, ""),
        ("after a restart, MiB", restarted / MIB, ""),
        ("bytes of index and filters per value of 1 KiB", stats["index_bytes"] / in_patches, "goal: at most 12"),
    ]
    common.report(options, "memory", rows, {"stats": stats, "patch_bytes": on_flash})


main()
