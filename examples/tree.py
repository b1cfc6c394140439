#!/usr/bin/env python3
"""Keeps a directory tree in SoftFlash with the ordinary Redis client for Python.

    examples/tree.py 6379 put docs        every file below docs: key = path, value = content
    examples/tree.py 6379 compare docs    does the store hold exactly what the files hold?
    examples/tree.py 6379 get docs copy   writes the stored files below copy
"""

import pathlib
import sys

import redis

port, command, tree, *rest = sys.argv[1:]
store = redis.Redis(port=int(port))
root = pathlib.Path(tree)


def files():
    return (path for path in sorted(root.rglob("*")) if path.is_file())


if command == "put":
    with store.pipeline(transaction=False) as pipeline:
        for path in files():
            pipeline.set(str(path), path.read_bytes())
            if len(pipeline) == 100:
                pipeline.execute()
        pipeline.execute()
elif command == "compare":
    different = [str(path) for path in files() if store.get(str(path)) != path.read_bytes()]
    sys.exit(f"different: {', '.join(different)}" if different else 0)
elif command == "get":
    for key in store.scan_iter(f"{root}/*", count=1000):
        path = pathlib.Path(rest[0]) / key.decode()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(key))
else:
    sys.exit(__doc__)
