#!/usr/bin/env python3
"""SET and GET against redis-server (appendonly yes, appendfsync everysec), alternating on the same machine."""

import common
from common import GIB, Redis, Scratch, SoftFlash


def measure(server, options):
    """Rates of one server: all keys are set once before GET is measured."""
    load = ["-d", options.size, "-P", 16, "-r", options.keys, "-n", options.requests, "-c", 50]
    before = server.cpu_seconds()
    sets = common.benchmark(server.port, "-t", "set", *load)["SET"]
    set_cpu = server.cpu_seconds() - before
    before = server.cpu_seconds()
    gets = common.benchmark(server.port, "-t", "get", *load)["GET"]
    get_cpu = server.cpu_seconds() - before
    return {"set": sets, "get": gets, "set_cpu_s": set_cpu, "get_cpu_s": get_cpu}


def main():
    options = common.arguments(
        __doc__,
        requests=(1_000_000, "requests per run"),
        keys=(100_000, "different keys"),
        size=(1024, "bytes per value"),
        memory=("512MiB", "the server's memory budget"),
        device=(8 * GIB, "bytes of the device"),
    )
    common.need("redis-server", "redis-benchmark")
    runs = {"redis": [], "interval": [], "flash": []}
    for _ in range(options.rounds):
        with Scratch(options.dir) as scratch:
            with Redis(scratch) as server:
                runs["redis"].append(measure(server, options))
        for name, durability in [("interval", "1s"), ("flash", "flash")]:
            with Scratch(options.dir) as scratch:
                common.format_device(scratch / "data", options.device)
                with SoftFlash(scratch / "data", "--durability", durability, "--memory", options.memory) as server:
                    runs[name].append(measure(server, options))

    def rate(name, what):
        return common.median([run[what] for run in runs[name]])

    rows = [
        ("redis-server SET/s", rate("redis", "set"), ""),
        ("redis-server GET/s", rate("redis", "get"), ""),
        ("softflash SET/s, durable within 1 s", rate("interval", "set"), ""),
        ("softflash GET/s, keys in memory", rate("interval", "get"), ""),
        ("softflash SET/s, acknowledged on flash", rate("flash", "set"), ""),
        ("ratio SET, durable within 1 s", rate("interval", "set") / rate("redis", "set"), "goal: at least 1"),
        ("ratio GET", rate("interval", "get") / rate("redis", "get"), "goal: at least 0.7"),
        ("ratio SET, acknowledged on flash", rate("flash", "set") / rate("redis", "set"), ""),
    ]
    common.report(options, "redis", rows, runs)


main()
