"""libotf2 as a peer: ``libotf2_peer.c`` built against Debian's library and against the one in the wheel."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import archive

HERE = Path(__file__).parent
RANKS, EVENTS = 16, 1_040_000


def begin(doc: str | None) -> tuple[argparse.Namespace, Path, Path]:
    """The options that the programs share, and the small and the big archive."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wattribute-benchmarks")
    parser.add_argument("--scale", type=int, default=0, help="also an archive this many times as long")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    small = archive.generate(given.folder / "small", 2, 2_000)
    big = archive.generate(given.folder / "big", RANKS, EVENTS)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} before; best of {given.repeats}, fresh processes")
    return given, small, big


def build(folder: Path) -> dict[str, Path]:
    """Programs by library, those that can be built here."""
    found: dict[str, list[str]] = {"Debian": ["-lopen-trace-format2"]}
    wheel = importlib.util.find_spec("_otf2")
    if wheel is not None and wheel.submodule_search_locations:
        [library] = Path(next(iter(wheel.submodule_search_locations))).glob("_otf2*.so")
        found["wheel"] = [str(library), f"-Wl,-rpath,{library.parent}"]
    programs = {}
    for name, flags in found.items():
        program = folder / f"libotf2_{name}"
        command = ["cc", "-O2", str(HERE / "libotf2_peer.c"), "-o", str(program), *flags]
        if subprocess.run(command, capture_output=True).returncode == 0:
            programs[name] = program
        else:
            print(f"no libotf2 of {name} here (apt-get install libopen-trace-format2-dev; pip install otf2)")
    return programs


def run(program: Path, anchor: Path, what: str) -> dict[str, float]:
    text = subprocess.run([program, anchor, what], capture_output=True, text=True, check=True).stdout
    events, wall, cpu = text.split()
    return {"events": int(events), "wall_s": float(wall), "cpu_s": float(cpu)}


def work(task: str, anchor: Path, small: Path, threads: int = 1) -> dict[str, Any]:
    """Our work, in a process of its own."""
    command = [sys.executable, str(HERE / "work.py"), task, str(anchor), str(small), str(threads)]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


class Table:
    """Measures each row best of n, prints it as it is known, and keeps what ratios need."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.best: dict[str, dict[str, float]] = {}
        print(f"{'':44} {'events':>12} {'wall s':>8} {'CPU s':>8} {'M/CPU s':>8} {'peak MB':>8}")

    def row(self, name: str, measure: Any) -> dict[str, float]:
        runs = [measure() for _ in range(self.repeats)]
        best = min(runs, key=lambda run: run["wall_s"]) | {"cpu_s": min(run["cpu_s"] for run in runs)}
        rate = best["events"] / best["cpu_s"] / 1e6
        peak = f"{best['peak_bytes'] / 1e6:8.1f}" if "peak_bytes" in best else ""
        print(
            f"{name:44} {best['events']:12,} {best['wall_s']:8.3f} {best['cpu_s']:8.3f} {rate:7.1f} {peak}", flush=True
        )
        self.best[name] = best
        return best

    def ratio(self, what: str, slow: str, fast: str, wanted: float, per_event: bool = False, by: str = "cpu_s") -> None:
        """How many times faster, by wall time and by CPU time, beside what is wanted. One thread is judged by CPU time,
        which other programs disturb less."""
        a, b = self.best[slow], self.best[fast]
        scale = b["events"] / a["events"] if per_event else 1
        times = {key: a[key] / b[key] * scale for key in ("wall_s", "cpu_s")}
        found = f"{times['wall_s']:.2f}× wall, {times['cpu_s']:.2f}× CPU"
        verdict(what, found, f"≥ {wanted:g}×", times[by] >= wanted)


def verdict(what: str, found: str, wanted: str, holds: bool) -> None:
    print(f"  {'✓' if holds else '✗'} {what}: {found} (wanted {wanted})", flush=True)
