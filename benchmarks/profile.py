"""What profiling costs and how right it is: wattribute's three modes beside cProfile, pyinstrument, scalene and py-spy.

    python benchmarks/profile.py [--peers FOLDER/bin] [--repeats 5] [--seconds 4] [--what energy]

First the errors: programs that clock their own functions (computing, sleeping, native calls that hold or release the
GIL, locks, generators, threads) run under each profiler; a number is the largest error of a function's share of the
time, in points of a hundred. Then the same of energy: a simulated RAPL counter draws 60 W in one function and 20 W in
the other, as they say themselves; profilers that know time only are taken at a share of the time, and "!" marks a
range of ours that does not contain the truth. Then the cost: the same script bare and under each. ``--what`` chooses.

Runs take turns, so that a busy machine is busy for all; times are medians of the script's own clock around its work,
start-up is the whole process's wall time minus that. CPU seconds are those of the process (with its children).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SCRIPT = """
import sys, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def words(n):
    found = {}
    for i in range(n):
        key = str(i % 997)
        found[key] = found.get(key, 0) + len(key)
    return found
def matrix(n):
    rows = [[(i * j) % 7 for j in range(n)] for i in range(n)]
    return [[sum(a * b for a, b in zip(row, column)) for column in zip(*rows)] for row in rows]
wall, cpu = time.perf_counter(), time.process_time()
for _ in range(10):
    fib(21); words(150_000); matrix(60)
with open(sys.argv[1], "w") as file:
    file.write(f"{time.perf_counter() - wall} {time.process_time() - cpu}")
"""


# Each has functions a and b, calls them in turns for MS milliseconds each, and says how long they took in all.
TURNS = """
import hashlib, json, os, struct, sys, threading, time
MS, SECONDS = float(sys.argv[2]), float(sys.argv[3])
took = {"a": 0.0, "b": 0.0}
WATTS = {"a": 60.0, "b": 20.0, "": 0.0}
meter = os.open(os.environ["TURNS_METER"], os.O_RDWR) if "TURNS_METER" in os.environ else None
before = struct.unpack("ddd", os.pread(meter, 24, 0))[0] if meter is not None else 0.0
def draws(name, now):
    if meter is not None:
        joules = before + sum(WATTS[one] * seconds for one, seconds in took.items())
        os.pwrite(meter, struct.pack("ddd", joules, now, WATTS[name]), 0)
def spin():
    end = time.thread_time() + MS / 1000
    while time.thread_time() < end: pass
def turns(a, b):
    begin = at = time.monotonic()
    while at < begin + SECONDS:
        draws("a", at); a(); between = time.monotonic()
        took["a"] += between - at
        draws("b", between); b(); at = time.monotonic()
        took["b"] += at - between
    draws("", at)
BODY
with open(sys.argv[1], "w") as file: json.dump(took, file)
"""
DATA = "data = bytes(int(1.5e6 * MS))"  # about a millisecond of hashing per 1.5 MB
PROGRAMS = {
    "compute, sleep": "def a(): spin()\ndef b(): time.sleep(MS / 1000)\nturns(a, b)",
    "compute, compute": "def a(): spin()\ndef b(): spin(); spin()\nturns(a, b)",
    "native with GIL, sleep": "n = int(4e4 * MS)\ndef a(): sum(range(n))\ndef b(): time.sleep(MS / 1000)\nturns(a, b)",
    "native without GIL, sleep": DATA + "\ndef a(): hashlib.sha256(data)\ndef b(): time.sleep(MS / 1000)\nturns(a, b)",
    "native without GIL, compute": DATA + "\ndef a(): hashlib.sha256(data)\ndef b(): spin()\nturns(a, b)",
    "generator, lock": """
lock = threading.Lock(); lock.acquire()
def generator():
    while True: spin(); yield
steps = generator()
def a(): next(steps)
def b(): lock.acquire(timeout=MS / 1000)
turns(a, b)""",
    "thread beside a computing one": """
done = False
def other():
    while not done: sum(range(1000))
thread = threading.Thread(target=other); thread.start()
def a(): spin()
def b(): time.sleep(MS / 1000)
turns(a, b)
done = True; thread.join()""",
}
TURNS_MS = (1, 5, 20, 100)
WATTS = {"a": 60.0, "b": 20.0}  # as in TURNS

# A counter in a file, as the kernel's: joules of the moment from what a program of TURNS says of its power.
WRITER = """
import os, struct, sys, time
state, counter = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY)
micro = 0  # never falls, also where the program's power changes between reading it and the clock
while True:
    joules, since, watts = struct.unpack("ddd", os.pread(state, 24, 0))
    micro = max(micro, int(1e6 * (joules + watts * (time.monotonic() - since))))
    os.pwrite(counter, b"%020d\\n" % micro, 0)
    time.sleep(0.001)
"""


def shares_of_energy(folder: Path, peers: Path, seconds: float) -> None:
    """Print the error of each profiler for the energy of two functions of different power."""
    zone = folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("max_energy_range_uj", "262143328850"), ("energy_uj", f"{0:020d}")):
        (zone / name).write_text(text + "\n")
    state = folder / "state"
    state.write_bytes(bytes(24))
    os.environ["TURNS_METER"] = str(state)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(state), str(zone / "energy_uj")])
    try:
        chosen = ("compute, sleep", "compute, compute")
        shares_of_time(folder, peers, seconds, chosen, f"rapl:{folder / 'sys'}")
    finally:
        writer.terminate()
        writer.wait()
        del os.environ["TURNS_METER"]


def shares_of_time(
    folder: Path, peers: Path, seconds: float, chosen: tuple[str, ...] = tuple(PROGRAMS), meter: str = ""
) -> None:
    """Print the error of each profiler for each program: of time, or of the energy of a meter."""
    ways = ("sample", "trace", "cprofile", "py-spy", "pyinstrument")
    print(f"{'error in points of 100':34}{'true a':>8}" + "".join(f"{way:>14}" for way in ways))
    number = 1000 if meter else 0
    for title, body in ((title, PROGRAMS[title]) for title in chosen):
        script = folder / "turns.py"
        script.write_text(TURNS.replace("BODY", body))
        for ms in TURNS_MS:
            row, truths = "", []
            for way in ways:
                number += 1
                error = shown_error(way, [str(script)], folder, number, peers, [str(ms), str(seconds)], truths, meter)
                row += f"{error:>14}"
            print(f"{f'{title}, {ms} ms':34}{statistics.mean(truths) if truths else 0:8.1f}{row}", flush=True)


def shown_error(
    way: str,
    script: list[str],
    folder: Path,
    number: int,
    peers: Path,
    arguments: list[str],
    truths: list[float],
    meter: str = "",
) -> str:
    """The error of one profiler for one program, as it is printed."""
    took, out = folder / f"truth-{number}", folder / f"seen-{number}"
    words = [*script, str(took), *arguments]
    if way == "py-spy":
        spy = [str(peers / "py-spy"), "record", "--idle", "-r", "200", "-f", "raw", "-o", str(out), "--"]
        command = [*spy, sys.executable, *words]
    elif way == "pyinstrument":
        command = [str(peers / "python"), "-m", "pyinstrument", "-r", "json", "-o", str(out), *words]
    else:
        meters = meter or f"replay:{folder / 'meter.csv'}"
        out = out.with_suffix(".watt")
        command = [sys.executable, "-m", "wattribute", "profile", "-q", "--meters", meters, "--mode", way]
        command += ["-o", str(out), *words]
    try:
        subprocess.run(command, capture_output=True, cwd=folder, timeout=300)
    except OSError:
        return "–"
    if not took.exists() or not out.exists():
        return "–"
    truth = json.loads(took.read_text())
    if meter:
        truth = {name: WATTS[name] * took_s for name, took_s in truth.items()}
    true_a = 100 * truth["a"] / (truth["a"] + truth["b"])
    peer = {"py-spy": by_py_spy, "pyinstrument": by_pyinstrument}.get(way)
    seen = by_wattribute(out, "total_j" if meter else "total_ns") if peer is None else peer(out)
    truths.append(true_a)
    whole = sum(seen.values())
    if not whole:
        return "–"
    missed = "!" if meter and peer is None and not contains(out, truth) else ""
    return f"{abs(100 * seen['a'] / whole - true_a):.1f}{missed}"


def contains(path: Path, truth: dict[str, float]) -> bool:
    """Whether the ranges of the functions' energy contain what they used."""
    import wattribute

    found = wattribute.attribute(wattribute.read(path), by="frame", scope="machine").rows.to_dicts()
    rows = {row["frame"]: row for row in found}
    return all(rows[name]["total_low_j"] <= joules <= rows[name]["total_high_j"] for name, joules in truth.items())


def by_py_spy(path: Path) -> dict[str, float]:
    seen = {"a": 0.0, "b": 0.0}
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        for frame in stack.split(";"):
            if frame.split(" ")[0] in seen and "turns.py" in frame:
                seen[frame.split(" ")[0]] += int(count)
    return seen


def by_pyinstrument(path: Path) -> dict[str, float]:
    seen = {"a": 0.0, "b": 0.0}

    def add(frame: dict[str, Any]) -> None:
        if frame["function"] in seen and str(frame.get("file_path", "")).endswith("turns.py"):
            seen[frame["function"]] += frame["time"]
        for child in frame["children"]:
            add(child)

    add(json.loads(path.read_text())["root_frame"])
    return seen


def by_wattribute(path: Path, column: str) -> dict[str, float]:
    import wattribute

    rows = wattribute.attribute(wattribute.read(path), by="frame", bounds=False, scope="machine").rows
    total = dict(zip(rows["frame"], rows[column], strict=True))
    return {name: float(total.get(name, 0)) for name in ("a", "b")}


def commands(script: str, peers: Path, folder: Path) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "wattribute", "profile", "-q", "--meters", f"replay:{folder / 'meter.csv'}"]
    python = str(peers / "python") if (peers / "python").exists() else sys.executable
    found = {"bare": [sys.executable, script]}
    for mode in ("sample", "trace", "cprofile"):
        found[f"wattribute {mode}"] = [*ours, "--mode", mode, "-o", "{folder}.watt", script]
    found["cProfile"] = [sys.executable, "-m", "cProfile", "-o", os.devnull, script]
    found["pyinstrument"] = [python, "-m", "pyinstrument", "-o", os.devnull, script]
    found["py-spy"] = [str(peers / "py-spy"), "record", "-f", "raw", "-o", os.devnull, "--", sys.executable, script]
    found["scalene"] = [python, "-m", "scalene", "run", "--cpu-only", "-o", str(folder / "scalene.json"), script]
    return found


def once(command: list[str], folder: Path, number: int) -> tuple[float, float, float] | None:
    """(seconds of work, CPU seconds of work, seconds of everything else)."""
    told = folder / f"took-{number}"
    command = [word.replace("{folder}", str(folder / f"run-{number}")) for word in command]
    begin = time.perf_counter()
    done = subprocess.run([*command, str(told)], capture_output=True, text=True, cwd=folder)
    whole = time.perf_counter() - begin
    if done.returncode or not told.exists():
        return None
    wall, cpu = map(float, told.read_text().split())
    return wall, cpu, whole - wall


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="length of each program of known shares")
    parser.add_argument("--what", nargs="*", choices=("time", "energy", "cost"), default=("time", "energy", "cost"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "script.py"
        script.write_text(SCRIPT)
        rows = "\n".join(f"{i / 100},{i}" for i in range(20_000))
        (folder / "meter.csv").write_text(f"time_s,package 0:energy_j\n{rows}\n")
        if "time" in given.what:
            shares_of_time(folder, given.peers, given.seconds)
        if "energy" in given.what:
            shares_of_energy(folder, given.peers, given.seconds)
        if "cost" not in given.what:
            return
        print()
        ways = commands(str(script), given.peers, folder)
        results: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
        number = 0
        for _ in range(given.repeats):
            for way, command in ways.items():
                number += 1
                if (took := once(command, folder, number)) is not None:
                    results[way].append(took)
    if given.repeats:
        show(results)


def show(results: dict[str, list[tuple[float, float, float]]]) -> None:
    medians = {
        way: tuple(statistics.median(column) for column in zip(*runs, strict=True))
        for way, runs in results.items()
        if runs
    }
    bare = medians["bare"]
    print(f"{'':20}{'work s':>9}{'× bare':>8}{'CPU s':>9}{'× bare':>8}{'start-up and end s':>20}")
    for way in results:
        if way not in medians:
            print(f"{way:20}{'did not run':>20}")
            continue
        wall, cpu, rest = medians[way]
        print(f"{way:20}{wall:9.2f}{wall / bare[0]:8.2f}{cpu:9.2f}{cpu / bare[1]:8.2f}{rest:20.2f}")
    if "pyinstrument" in medians:
        ours, theirs = medians["wattribute sample"], medians["pyinstrument"]
        wall, cpu = ours[0] / theirs[0], ours[1] / theirs[1]
        print(f"wattribute sample / pyinstrument: {wall:.2f} in time, {cpu:.2f} in CPU time")


if __name__ == "__main__":
    main()
