#!/usr/bin/env python3
"""The array model in virtual time: page operations per CPU-second and memory per page."""

import common


def main():
    options = common.arguments(__doc__)
    runs = [common.run_json([common.softflash_bench(), "array", "-o", "json"]) for _ in range(options.rounds)]
    rows = [
        ("page operations per CPU-second", common.median([run["page_ops_per_cpu_second"] for run in runs]), "goal: at least 8,000,000"),
        ("bytes of memory per page", common.median([run["bytes_per_page"] for run in runs]), "goal: at most 4"),
    ]
    common.report(options, "array", rows, runs)


main()
