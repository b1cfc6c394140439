#!/usr/bin/env python3
"""Reads of data four times as large as the memory: rate against fio on the same file, and device reads per
GET of a present key, of an absent key, and per patch page in a scan."""

import common
from common import MIB, Scratch, SoftFlash


def key(number):
    """The key that redis-benchmark makes of `__rand_int__`."""
    return b"key:%012d" % number


def reads_of(server, keys, requests, prefix):
    """Rate of random GETs, and the device's counters meanwhile."""
    client = server.client()
    before = client.stats()
    rate = common.benchmark(
        server.port, "-c", 16, "-P", 16, "-r", keys, "-n", requests, "GET", f"{prefix}:__rand_int__"
    )
    counted = common.difference(before, client.stats())
    return next(iter(rate.values())), counted


def scan_everything(client):
    found, cursor = 0, b"0"
    while True:
        cursor, keys = client.call("SCAN", cursor, "COUNT", 1000)
        found += len(keys)
        if cursor == b"0":
            return found


def main():
    options = common.arguments(
        __doc__,
        memory_mib=(256, "the server's memory budget in MiB"),
        size=(1024, "bytes per value"),
        requests=(300_000, "GETs per run"),
        seconds=(10, "of fio per run"),
    )
    common.need("redis-benchmark", "fio")
    keys = 4 * options.memory_mib * MIB // options.size
    memory = ["--memory", f"{options.memory_mib}MiB"]
    rounds = []
    with Scratch(options.dir) as scratch:
        data = scratch / "data"
        common.format_device(data, keys * options.size * 4)
        with SoftFlash(data, "--durability", "1s", *memory) as server:
            server.client().load((key(number), common.noise(number, options.size)) for number in range(keys))
            server.terminate()
        for _ in range(options.rounds):
            # A new process has in memory only what recovery loads.
            with SoftFlash(data, *memory) as server:
                rate, counted = reads_of(server, keys, options.requests, "key")
                absent_rate, absent = reads_of(server, keys, options.requests, "absent")
                client = server.client()
                before = client.stats()
                scanned = scan_everything(client)
                scan = common.difference(before, client.stats())
                total = client.stats()
                server.terminate()
            size = max(4096, round(counted["flash_bytes_read"] / max(1, counted["device_reads"]) / 4096) * 4096)
            fio = common.fio(
                data / "flash.sfd", rw="randread", bs=size, iodepth=256, time_based=1, runtime=options.seconds
            )["read"]["iops"]
            rounds.append({
                "get_per_s": rate, "reads_per_get": counted["device_reads"] / options.requests,
                "lookups_on_flash": counted["flash_lookups"] / options.requests,
                "reads_per_flash_lookup": counted["device_reads"] / max(1, counted["flash_lookups"]),
                "absent_get_per_s": absent_rate, "reads_per_absent_get": absent["device_reads"] / options.requests,
                "read_bytes": size, "fio_iops": fio,
                "scan_keys": scanned, "scan_bytes_read": scan["flash_bytes_read"],
                "patch_bytes": total["patches"] * 8 * MIB,
            })

    def middle(name):
        return common.median([run[name] for run in rounds])

    rows = [
        ("GET/s of cold keys", middle("get_per_s"), ""),
        ("device reads/s of these", middle("get_per_s") * middle("reads_per_get"), ""),
        ("fio random reads/s, same size, depth 256", middle("fio_iops"), ""),
        ("bytes per read", middle("read_bytes"), ""),
        ("ratio", middle("get_per_s") * middle("reads_per_get") / middle("fio_iops"), "goal: at least 0.85"),
        ("device reads per GET that goes to flash", middle("reads_per_flash_lookup"), "goal: at most 1.02"),
        ("device reads per GET of an absent key", middle("reads_per_absent_get"), "goal: at most 0.02"),
        ("bytes read by a scan / bytes of patches", middle("scan_bytes_read") / middle("patch_bytes"), "goal: at most 1"),
    ]
    common.report(options, "cold_get", rows, rounds)


main()
