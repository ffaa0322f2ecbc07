"""What profiling costs: the same script bare, under wattribute's three modes, cProfile, pyinstrument and scalene.

    python benchmarks/profile.py [--peers FOLDER/bin] [--repeats 5]

Runs take turns, so that a busy machine is busy for all; times are medians of the script's own clock around its work,
start-up is the whole process's wall time minus that. CPU seconds are those of the process (with its children).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def commands(script: str, peers: Path, folder: Path) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "wattribute", "profile", "-q", "--meters", f"replay:{folder / 'meter.csv'}"]
    python = str(peers / "python") if (peers / "python").exists() else sys.executable
    found = {"bare": [sys.executable, script]}
    for mode in ("sample", "trace", "cprofile"):
        found[f"wattribute {mode}"] = [*ours, "--mode", mode, "-o", "{folder}.watt", script]
    found["cProfile"] = [sys.executable, "-m", "cProfile", "-o", os.devnull, script]
    found["pyinstrument"] = [python, "-m", "pyinstrument", "-o", os.devnull, script]
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
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "script.py"
        script.write_text(SCRIPT)
        rows = "\n".join(f"{i / 100},{i}" for i in range(20_000))
        (folder / "meter.csv").write_text(f"time_s,package 0:energy_j\n{rows}\n")
        ways = commands(str(script), given.peers, folder)
        results: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
        number = 0
        for _ in range(given.repeats):
            for way, command in ways.items():
                number += 1
                if (took := once(command, folder, number)) is not None:
                    results[way].append(took)
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
