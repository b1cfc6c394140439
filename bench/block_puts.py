#!/usr/bin/env python3
"""Sequential puts of 8 MiB through the block layer against fio's direct writes of 8 MiB to the same file, and
the share that the key-value path reaches with values of 1 MiB."""

import json
import subprocess
import time

import common
from common import GIB, MIB, Scratch, SoftFlash


def key_value_rate(data, total):
    with SoftFlash(data, "--durability", "1s") as server:
        client = server.client()
        values = [common.noise(number, MIB) for number in range(8)]
        started = time.monotonic()
        client.load(((b"key:%d" % number, values[number % 8]) for number in range(total // MIB)), 16)
        server.terminate()
        return total / (time.monotonic() - started)


def main():
    options = common.arguments(__doc__, device=(4 * GIB, "bytes of the device"), total=(2 * GIB, "bytes written per run"))
    common.need("fio")
    blocks, fios, values = [], [], []
    for _ in range(options.rounds):
        with Scratch(options.dir) as scratch:
            data = scratch / "data"
            common.format_device(data, options.device)
            command = [
                common.softflash(), "bench", "device", "--pattern", "write", "--directory", str(scratch),
                "--device-size", str(options.device), "--operations", str(options.total // (8 * MIB)), "-o", "json",
            ]
            blocks.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
            written = common.fio(data / "flash.sfd", rw="write", bs=8 * MIB, iodepth=4, size=options.total, offset=MIB, end_fsync=1)
            fios.append(written["write"]["bw_bytes"])
        with Scratch(options.dir) as scratch:
            common.format_device(scratch / "data", options.device)
            values.append(key_value_rate(scratch / "data", options.total))
    rate = common.median([run["megabytes_per_second"] * 1e6 for run in blocks])
    fio = common.median(fios)
    rows = [
        ("block layer, MiB/s", rate / MIB, ""),
        ("fio, 8 MiB direct writes, MiB/s", fio / MIB, ""),
        ("ratio", rate / fio, "goal: at least 0.85"),
        ("values of 1 MiB through SET, MiB/s", common.median(values) / MIB, ""),
        ("their ratio to fio", common.median(values) / fio, ""),
    ]
    common.report(options, "block_puts", rows, {"block_layer": blocks, "fio": fios, "key_value": values})


main()
