#!/usr/bin/env python3
"""The simulated drive: page-mapped requests per CPU-second, memory per page, write amplification."""

import common

READS = ["--workload", "random-read-8k"]
WRITES = ["--workload", "random-write-8k"]
LARGE = ["--device", "huawei-gen3", "--requests", "86000000", "--op", "7", "--precondition", "fill"]
RUNS = [
    ("reads, no collection", READS + ["--requests", "10000000"], 8e6),
    ("writes to an empty drive, no collection", WRITES + ["--requests", "10000000", "--precondition", "none"], 8e6),
    ("writes, steady, 25 % over-provisioning", WRITES + ["--requests", "6000000", "--op", "25", "--precondition", "steady"], 3e6),
    ("writes, steady, 7 % over-provisioning", WRITES + ["--requests", "4000000", "--op", "7", "--precondition", "steady"], 1e6),
]


def sim(arguments):
    command = [common.softflash(), "bench", "sim", "--layout", "page-mapped", "-o", "json"]
    device = [] if "--device" in arguments else ["--device", "mqsim-default"]
    return common.run_json(command + device + arguments)


def main():
    options = common.arguments(__doc__, large=(0, "1: overwrite a filled 704 GB drive once as well"))
    rows, results = [], []
    for name, arguments, goal in RUNS:
        turns = [sim(arguments) for _ in range(options.rounds)]
        rate = common.median([turn["requests"] / turn["cpu_seconds"] for turn in turns])
        rows.append((f"{name}: million requests a CPU-second", rate / 1e6, f"goal: {goal / 1e6:.0f}"))
        rows.append((f"{name}: write amplification", turns[0]["waf"], ""))
        results += turns
    rows.append(("bytes of memory a flash page, at most", max(turn["bytes_per_page"] for turn in results), "goal: at most 10"))
    if options.large:
        turn = sim(WRITES + LARGE)
        seconds = turn["cpu_seconds"] + turn["precondition_cpu_seconds"]
        rows.append(("704 GB filled and overwritten once, CPU-seconds", seconds, "goal: at most 90"))
        results.append(turn)
    common.report(options, "simulator", rows, {"runs": results})


main()
