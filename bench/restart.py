#!/usr/bin/env python3
"""Restart of a full device, after a clean shutdown and after `kill -9`."""

import common
from common import GIB, Scratch, SoftFlash


def fill(client, size):
    """Sets keys until the device is full; returns the number of keys."""
    count = 0
    try:
        while True:
            client.load(((b"key:%012d" % number, common.noise(number, size)) for number in range(count, count + 512)), 32)
            count += 512
    except RuntimeError as error:
        if "OOM" not in str(error):
            raise
    return count


def main():
    options = common.arguments(__doc__, device=(8 * GIB, "bytes of the device"), size=(16384, "bytes per value"))
    with Scratch(options.dir) as scratch:
        data = scratch / "data"
        common.format_device(data, options.device)
        with SoftFlash(data, "--durability", "1s") as server:
            keys = fill(server.client(), options.size)
            server.terminate()
        orderly, killed = [], []
        for _ in range(options.rounds):
            with SoftFlash(data) as server:
                orderly.append(server.ready_after)
                # The log needs something to replay: a full device accepts deletions.
                client = server.client()
                for number in range(500):
                    client.call("DEL", b"key:%012d" % (number + len(killed) * 500))
                server.kill()
            with SoftFlash(data) as server:
                killed.append(server.ready_after)
                server.terminate()
    rows = [
        ("keys on the full device", keys, ""),
        ("ready after an orderly end, s", common.median(orderly), "goal: at most 2"),
        ("ready after kill -9, s", common.median(killed), "goal: at most 2"),
    ]
    common.report(options, "restart", rows, {"orderly": orderly, "killed": killed})


main()
