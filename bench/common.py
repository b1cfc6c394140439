"""Shared code of the benchmarks: servers, clients, fio, medians, table and JSON output.

Only the standard library; needs redis-server, redis-benchmark and fio on the path and a build of softflash
with the profile `dist` (made here if it is missing).
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
GIB = 1 << 30
PACKAGES = {"redis-server": "redis-server", "redis-benchmark": "redis-tools", "fio": "fio", "qemu-nbd": "qemu-utils"}


def arguments(description, examples="", quick=None, **extra):
    """The options of every benchmark, and `extra` ones as NAME=(default, help). `quick` are the defaults under --quick."""
    parser = argparse.ArgumentParser(
        description=description, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dir", default=str(ROOT / "target" / "bench"), help="where data goes; use a real disk")
    parser.add_argument("--rounds", type=int, default=3, help="number of runs; the median is reported")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    for name, (default, text) in extra.items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=type(default), default=default, help=f"{text} ({default})")
    if quick is None:
        return parser.parse_args()
    short = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in quick.items())
    parser.add_argument("--quick", action="store_true", help=f"a short form, by other defaults: {short}")
    if parser.parse_args().quick:
        parser.set_defaults(**quick)
    return parser.parse_args()


def run(main, told="data were removed"):
    """Runs `main`; Ctrl-C and SIGTERM end it with its clean-up, without a traceback, and tell what happened."""

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(f"interrupted; {told}")


def softflash():
    """The program: `SOFTFLASH_BIN`, or a build of it."""
    return os.environ.get("SOFTFLASH_BIN") or built("softflash")


def softflash_bench():
    """The program of further benchmarks."""
    return built("softflash-bench")


def built(package):
    """The program of a package, built with the profile `dist` if it is missing."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    binary = target / "dist" / package
    if not binary.exists():
        subprocess.run(["cargo", "build", "--profile", "dist", "--locked", "--package", package], cwd=ROOT, check=True)
    return str(binary)


def run_json(command):
    """The JSON output of a command."""
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


class Child:
    """Runs a command to its end; then has its output, its exit status, CPU seconds and peak memory in bytes."""

    def __init__(self, command):
        with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(list(map(str, command)), stdout=output, stderr=errors)
            try:
                _, status, usage = os.wait4(process.pid, 0)
            except BaseException:
                # Its data can be removed when it has ended.
                process.terminate()
                process.wait()
                raise
            process.returncode = os.waitstatus_to_exitcode(status)
            self.status = process.returncode
            self.output, self.errors = (file.seek(0) or file.read() for file in (output, errors))
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.peak_memory_bytes = usage.ru_maxrss * 1024


def need(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        packages = sorted({PACKAGES[program] for program in missing})
        sys.exit(f"missing: {', '.join(missing)}; on Debian: apt-get install -y {' '.join(packages)}")


class Scratch:
    """A directory that is removed at the end."""

    def __init__(self, parent):
        pathlib.Path(parent).mkdir(parents=True, exist_ok=True)
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=parent))

    def __enter__(self):
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server process that is killed at the end."""

    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=120)
        if status != 0:
            sys.exit(f"the server ended with {status}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    def client(self):
        return Client(self.port)


class SoftFlash(Server):
    """`softflash serve` on a data directory; `ready_after` is the time until it was ready, `memory_line` what it prints
    before."""

    def __init__(self, data, *more):
        port = free_port()
        started = time.monotonic()
        super().__init__(
            [softflash(), "serve", "--data", str(data), "--resp", f"127.0.0.1:{port}", "--http", "127.0.0.1:0", *more], port
        )
        self.memory_line = ""
        for line in self.process.stdout:
            if line.startswith("ready"):
                break
            self.memory_line = line.strip()
        else:
            sys.exit(f"softflash does not start on {data}")
        self.ready_after = time.monotonic() - started


class Redis(Server):
    """`redis-server` with an append-only file that is flushed every second."""

    def __init__(self, directory):
        port = free_port()
        super().__init__(
            ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(directory), "--save", "",
             "--appendonly", "yes", "--appendfsync", "everysec"],
            port,
        )
        for _ in range(200):
            try:
                Client(port).call("PING")
                return
            except OSError:
                time.sleep(0.05)
        sys.exit("redis-server does not start")


class Client:
    """A minimal RESP2 client: loads data and reads counters."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    @staticmethod
    def encode(*parts):
        parts = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)

    def call(self, *parts):
        self.socket.sendall(self.encode(*parts))
        return self.reply()

    def reply(self):
        line = self.replies.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            length = int(rest)
            return None if length < 0 else self.replies.read(length + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def load(self, pairs, ahead=256):
        """Sets keys in batches; every reply must be OK."""
        waiting, batch = 0, []
        for key, value in pairs:
            batch.append(self.encode(b"SET", key, value))
            if len(batch) == ahead:
                self.socket.sendall(b"".join(batch))
                waiting, batch = waiting + len(batch), []
                while waiting > ahead:
                    self.reply()
                    waiting -= 1
        self.socket.sendall(b"".join(batch))
        for _ in range(waiting + len(batch)):
            self.reply()

    def stats(self):
        """The counters of FLASH.STATS."""
        lines = self.call("FLASH.STATS").decode().splitlines()
        pairs = (line.split(":", 1) for line in lines if ":" in line)
        return {name: int(value) for name, value in pairs if value.strip().lstrip("-").isdigit()}


def difference(before, after):
    return {name: after[name] - before.get(name, 0) for name in after}


def format_device(data, size, *more):
    subprocess.run([softflash(), "format", str(data), "--size", str(size), *more], check=True, capture_output=True)


def benchmark(port, *options):
    """Requests per second that redis-benchmark reports, by test."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "--csv", *map(str, options)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [[cell.strip('"') for cell in line.split('","')] for line in lines if line.startswith('"')]
    return {row[0]: float(row[1]) for row in rows if row[0] != "test"}


def fio(path, **options):
    """JSON of one fio job: on a file with direct I/O through io_uring, or with the engine in `options`."""
    file = {"filename": path, "direct": 1, "ioengine": "io_uring"} if path else {}
    job = {"name": "job", **file, "group_reporting": 1, **options}
    command = ["fio", "--output-format=json", *(f"--{name}={value}" for name, value in job.items())]
    done = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(done[done.index("{"):])["jobs"][0]


def noise(number, length):
    """Incompressible bytes, different for every number."""
    import random

    return random.Random(number).randbytes(length)


def median(values):
    return statistics.median(values)


def parse_size(text):
    """Bytes of a size such as `16KiB`, `2GiB` or `100`."""
    for unit, factor in [("KiB", 1 << 10), ("MiB", MIB), ("GiB", GIB), ("", 1)]:
        number = text.removesuffix(unit) if unit else text
        if number != text or not unit:
            try:
                return int(float(number) * factor)
            except ValueError:
                break
    sys.exit(f"`{text}` is not a size; write bytes, or a number with KiB, MiB or GiB")


def size_name(size):
    """The size as `parse_size` reads it."""
    for unit, factor in [("GiB", GIB), ("MiB", MIB), ("KiB", 1 << 10)]:
        if size >= factor and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def print_table(header, rows):
    """Prints columns; all but the first are aligned to the right. A row may have a remark behind its columns."""
    columns = range(len(header))
    widths = [max(len(row[column]) for row in [header, *rows]) for column in columns]
    for row in [header, *rows]:
        cells = [row[0].ljust(widths[0]), *(row[column].rjust(widths[column]) for column in columns[1:])]
        print("  ".join([*cells, *row[len(header):]]).rstrip())


def report(options, name, rows, details):
    """Prints rows of (what, value, goal) and the same as JSON."""
    if not options.json:
        width = max(len(what) for what, _, _ in rows)
        for what, value, goal in rows:
            shown = f"{value:,.3f}" if isinstance(value, float) and abs(value) < 100 else f"{value:,.0f}"
            print(f"{what:<{width}}  {shown:>14}  {goal}")
        print()
    print_json(name, {what: value for what, value, _ in rows}, details)


def print_json(name, results, details):
    """Prints the line of JSON of a benchmark."""
    machine = {"cores": os.cpu_count(), "kernel": os.uname().release}
    print(json.dumps({"benchmark": name, "machine": machine, "results": results, "details": details}))
