#!/usr/bin/env python3
"""Keeps a directory tree in SoftFlash with the ordinary Redis client for Python.

    examples/tree.py 6379 put docs        every file below docs: key = path, value = content
    examples/tree.py 6379 compare docs    does the store hold exactly what the files hold?
    examples/tree.py 6379 get docs copy   writes the stored files below copy
"""

import pathlib
import sys

# The number of words of each command, itself and the port included.
WORDS = {"put": 3, "compare": 3, "get": 4}

words = sys.argv[1:]
if len(words) < 2 or len(words) != WORDS.get(words[1]) or not words[0].isdecimal():
    print(__doc__, file=sys.stderr)
    sys.exit(2)

try:
    import redis  # after the usage, which needs no client
except ImportError:
    sys.exit("tree.py: the Redis client is missing: apt install python3-redis, or pip install redis")

port, command, tree, *rest = words
store = redis.Redis(port=int(port))
root = pathlib.Path(tree)
try:
    store.ping()
except redis.RedisError as error:
    sys.exit(f"tree.py: {error}")
if command != "get" and not root.is_dir():
    sys.exit(f"tree.py: {root}: no such directory")


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
else:
    for key in store.scan_iter(f"{root}/*", count=1000):
        # Relative, so that nothing is written outside the new place.
        path = pathlib.Path(rest[0]) / key.decode().lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(key))
