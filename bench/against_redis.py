#!/usr/bin/env python3
"""SET and GET against redis-server (appendonly yes, appendfsync everysec), in alternating turns on the same machine.

Each round runs every server once, and begins with another one than the round before. The server is started with its
defaults, but for the durability."""

import subprocess

import common
from common import GIB, Redis, Scratch, SoftFlash


def benchmark(server, test, options):
    """Rate, 99th percentile of the latency in ms, and CPU of the server per request in us."""
    load = ["-d", options.size, "-P", options.pipeline, "-r", options.keys, "-n", options.requests, "-c", options.clients]
    before = server.cpu_seconds()
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port), "--csv", "-t", test, *map(str, load)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    header, row = [[cell.strip('"') for cell in line.split('","')] for line in lines if line.startswith('"')][-2:]
    figures = dict(zip(header, row))
    cpu = server.cpu_seconds() - before
    return {
        test: float(figures["rps"]), f"{test}_p99_ms": float(figures["p99_latency_ms"]),
        f"{test}_cpu_us": cpu / options.requests * 1e6,
    }


def measure(server, options):
    """Figures of one server: all keys are set before GET is measured."""
    figures = benchmark(server, "set", options) | benchmark(server, "get", options)
    if isinstance(server, SoftFlash):
        stats = server.client().stats()
        figures |= {"memory": server.memory_line, "flash_lookups": stats["flash_lookups"]}
    return figures


def turn(name, options):
    with Scratch(options.dir) as scratch:
        if name == "redis":
            with Redis(scratch) as server:
                return measure(server, options)
        shards, durability = name
        more = ["--memory", options.memory] if options.memory else []
        common.format_device(scratch / "data", options.device, "--shards", str(shards), "--units", "16")
        with SoftFlash(scratch / "data", "--durability", durability, *more) as server:
            return measure(server, options)


def main():
    options = common.arguments(
        __doc__,
        requests=(1_000_000, "requests per run"),
        keys=(100_000, "different keys"),
        size=(1024, "bytes per value"),
        pipeline=(16, "requests in a pipeline"),
        clients=(50, "connections"),
        memory=("", "the server's memory budget; by default the server's default"),
        device=(8 * GIB, "bytes of the device"),
        shards=("2", "numbers of shards, separated by commas, as 1,4"),
        durabilities=("1s,flash", "durabilities, separated by commas"),
    )
    common.need("redis-server", "redis-benchmark")
    ours = [(int(s), d) for s in options.shards.split(",") for d in options.durabilities.split(",")]
    turns = ["redis", *ours]
    runs = {name: [] for name in turns}
    for number in range(options.rounds):
        first = number % len(turns)
        for name in turns[first:] + turns[:first]:
            runs[name].append(turn(name, options))

    def middle(name, what):
        return common.median([run[what] for run in runs[name]])

    def rows_of(name, title):
        return [
            row
            for test in ["set", "get"]
            for row in [
                (f"{title} {test.upper()}/s", middle(name, test), ""),
                (f"{title} {test.upper()} p99, ms", middle(name, f"{test}_p99_ms"), ""),
                (f"{title} {test.upper()} CPU, us a request", middle(name, f"{test}_cpu_us"), ""),
            ]
        ]

    rows = rows_of("redis", "redis-server")
    for name in ours:
        shards, durability = name
        title = f"softflash, {shards} shards, {durability}:" if shards > 1 else f"softflash, 1 shard, {durability}:"
        has_goal = durability != "flash"

        def ratio(what):
            return common.median([a[what] / b[what] for a, b in zip(runs[name], runs["redis"])])

        rows += rows_of(name, title)
        rows += [
            (f"{title} ratio SET", ratio("set"), "goal: at least 1" if has_goal else ""),
            (f"{title} ratio GET", ratio("get"), "goal: at least 0.9"),
            (f"{title} ratio GET p99", ratio("get_p99_ms"), "goal: at most 1"),
            (f"{title} GETs that read flash", middle(name, "flash_lookups"), "goal: 0"),
        ]
    details = {name if name == "redis" else f"{name[0]} shards, {name[1]}": run for name, run in runs.items()}
    common.report(options, "redis", rows, details)


main()
