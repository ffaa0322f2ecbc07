"""How the page scales: spans, lanes and names (``--spans``, ``--lanes``, ``--names``): tiles, first paint, zoom, sums.

    python benchmarks/view.py [--spans 1e8] [--lanes 64] [--names 200] [--keep FOLDER]
    python benchmarks/view.py --spans 1e7 --lanes 20000 --names 1e6

Prints one line per promise: what was measured, the limit, and whether it holds. Every phase runs in a process of
its own, so that peak memory is that phase's.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PER_S = 1_000_000_000
LENGTH_S = 100
BEST_OF = 3  # times, because other people's work on the machine only ever adds
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Lanes:
    """A span source that makes up each lane when asked: bursts of short kernels of random length, back to back."""

    def __init__(self, spans: int, lanes: int, frames: int) -> None:
        self.per_lane, self.lanes, self.frames = spans // lanes, lanes, frames

    def locations(self) -> Sequence[int]:
        return range(self.lanes)

    def spans(self, location: int):  # type: ignore[no-untyped-def]
        from wattribute.model import Spans

        n, rng = self.per_lane, np.random.default_rng(location)
        length = rng.exponential(1.0, n)
        pause = np.where(rng.random(n) < 0.001, 200 * rng.random(n), 0.0)
        scale = LENGTH_S * PER_S / float((length + pause).sum() * 1.0001)
        begin = np.cumsum(length + pause) - length
        start, end = (begin * scale).astype(np.int64), ((begin + length) * scale).astype(np.int64)
        frame = (rng.integers(0, self.frames, n) * (rng.random(n) < 0.5)).astype(np.int32)
        return Spans(start, end, frame, np.full(n, -1, np.int64), np.zeros(n, np.int32), np.zeros(n, np.bool_))

    def problems(self):  # type: ignore[no-untyped-def]
        return ()


def generate(spans: int, lanes: int, frames: int, where: Path) -> None:
    """A recording of GPU streams as a .watt archive: up to 64 lanes a counter per stream, read every 10 ms; of more
    lanes eight share one, read every 100 ms."""
    from fractions import Fraction

    from wattribute import archive
    from wattribute.model import Clock, Device, Frames, Link, Locations, Nodes, Processes, Recording, Signal

    shared = 1 if lanes <= 64 else 8
    times = np.arange(0, LENGTH_S * PER_S + 1, PER_S // (100 if shared == 1 else 10), dtype=np.int64)
    rng = np.random.default_rng(1)
    signals, devices, links = [], [], []
    for i in range(lanes // shared):
        host, device = f"node{i * shared // 8:02d}", f"GPU {i * shared % 8}"
        values = np.cumsum(rng.integers(1_000_000, 5_000_000, len(times)))
        signals.append(
            Signal(
                f"hip:::energy:device={i * shared % 8}", "counter", "J", times, values, Fraction(1, 10**6), host, device
            )
        )
        devices.append(Device(device, "gpu", host))
        links.append(Link(host, device, tuple(range(shared * i, shared * (i + 1))), "given"))
    hosts = -(-lanes // 8)
    recording = Recording(
        Clock(PER_S, 0, LENGTH_S * PER_S),
        Frames.of([(f"kernel_{i}(double*, int)", "hip", "kernel") for i in range(frames)]),
        Nodes.of([(i, f"node{i:02d}", "node", -1) for i in range(hosts)]),
        Processes.of(
            [(i, f"MPI Rank {i}", "process", i // 8) for i in range(lanes)]
            + [(lanes + i, "HIP Context", "accelerator", i // 8, i) for i in range(lanes)]
        ),
        Locations.of([(i, "HIP[0:1]", "gpu", lanes + i, 2 * spans // lanes) for i in range(lanes)]),
        Lanes(spans, lanes, frames),  # type: ignore[arg-type]
        tuple(signals),
        tuple(devices),
        tuple(links),
        metadata={"name": f"{spans:,} spans in {lanes} lanes, {frames:,} names"},
    )
    archive.save(recording, where)


def build(path: Path) -> dict[str, float]:
    """Make the tiles; seconds, peak memory, bytes on disk."""
    from wattribute.views.page import cache_folder as places
    from wattribute.views.page.session import Session

    began = time.perf_counter()
    session = Session(path)
    seconds = time.perf_counter() - began
    where = places.folder(path)
    size = sum(file.stat().st_size for file in where.iterdir())
    bins = (where / "lanes.bins").stat().st_size
    session.close()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"seconds": seconds, "peak": peak, "disk": size, "bins": bins}


def zoom(path: Path) -> dict[str, float]:
    """Views of all lanes at random places and depths, as the server answers them."""
    from wattribute.views.page.session import Session

    began = time.perf_counter()
    session = Session(path)
    opened = time.perf_counter() - began
    length, lanes = session.tiles.length, ",".join(str(lane) for lane in list(session.tiles.lanes)[:64])
    rng = np.random.default_rng(2)
    took, sizes = [], []
    for depth in [*range(0, 28), *range(0, 28)]:
        span = max(64, length >> depth)
        at = int(rng.integers(0, max(1, length - span)))
        query = {"lanes": lanes, "devices": "0,1,2,3,4,5", "from": str(at), "to": str(at + span), "width": "1400"}
        walls = []
        for _ in range(BEST_OF):
            began = time.perf_counter()
            drawn, power = session.answer("view", query), session.answer("power", query)
            walls.append(time.perf_counter() - began)
        took.append(min(walls))
        sizes.append(len(drawn) + len(power))
    seconds = {}
    for name, query in (
        ("sums", {"from": str(length // 3), "to": str(length // 2)}),
        ("rows", {"from": str(length // 3), "to": str(length // 3 + length // 100)}),
        ("flame", {}),
        ("heat", {}),
        ("half flame", {"from": "0", "to": str(length // 2)}),
        ("half heat", {"from": "0", "to": str(length // 2)}),
    ):
        began = time.perf_counter()
        session.answer({"sums": "burned", "rows": "table"}.get(name, name.removeprefix("half ")), query)
        seconds[name] = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    session.close()
    return {
        **seconds,
        "opened": opened,
        "median": statistics.median(took),
        "worst": max(took),
        "bytes": max(sizes),
        "peak": peak,
    }


def browse(path: Path) -> dict[str, float]:
    """First paint in Chromium after the tiles exist, and the time a frame takes while zooming; the best of a few."""
    runs = [_browse(path) for _ in range(BEST_OF)]
    return {name: min(run[name] for run in runs) for name in runs[0]}


def _browse(path: Path) -> dict[str, float]:
    from playwright.sync_api import sync_playwright

    from wattribute.views.page import view

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        tab = browser.new_page(viewport={"width": 1600, "height": 2400})
        began = time.perf_counter()
        with view(path) as page:
            tab.goto(page.url)
            tab.wait_for_selector("body[data-loaded]")
            painted = time.perf_counter() - began
            box = tab.locator("#lanes").bounding_box()
            assert box
            tab.mouse.move(box["x"] + 900, box["y"] + 200)
            frames, shown = [], 0
            for step in range(60):
                tab.mouse.wheel(0, -100 if step < 45 else 100)
                tab.wait_for_timeout(60)
                frames.append(tab.evaluate("wattribute.frameMs"))
            shown = tab.evaluate("wattribute.lanes.visible().length")
        browser.close()
    return {"painted": painted, "median": statistics.median(frames), "worst": max(frames), "lanes": shown}


def phase(name: str, *arguments: object) -> dict[str, float]:
    """Run one phase in a process of its own."""
    command = [sys.executable, __file__, "--phase", name, *(str(argument) for argument in arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def say(what: str, value: float, limit: float, unit: str) -> None:
    print(f"{'ok  ' if value <= limit else 'FAIL'}  {what:58s} {value:10.3f} {unit}  (limit {limit:g})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spans", type=float, default=1e8)
    parser.add_argument("--lanes", type=int, default=64)
    parser.add_argument("--names", type=float, default=200)
    parser.add_argument("--keep", type=Path, help="make the recording here and keep it; use it if it is there")
    parser.add_argument("--phase", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.phase:
        name, *rest = given.phase
        if name == "generate":
            generate(int(rest[0]), int(rest[1]), int(rest[2]), Path(rest[3]))
            print("{}")
        else:
            print(json.dumps({"build": build, "zoom": zoom, "browse": browse}[name](Path(rest[0]))))
        return
    folder = given.keep or Path(tempfile.mkdtemp(prefix="wattribute-view-"))
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{int(given.spans)}-{given.lanes}-{int(given.names)}.watt"
    try:
        if not path.exists():
            began = time.perf_counter()
            phase("generate", int(given.spans), given.lanes, int(given.names), path)
            print(
                f"      generated {given.spans:g} spans in {given.lanes} lanes in {time.perf_counter() - began:.1f} s"
            )
        shutil.rmtree(path.with_name(f"{path.name}.tiles"), ignore_errors=True)
        report(phase("build", path), phase("zoom", path), phase("browse", path))
    finally:
        if not given.keep:
            shutil.rmtree(folder, ignore_errors=True)


def machine() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def report(built: dict[str, float], zoomed: dict[str, float], browsed: dict[str, float]) -> None:
    print(f"      {machine()}")
    print(f"      tiles in {built['seconds']:.1f} s; {built['disk'] / 1e9:.2f} GB, bins {built['bins'] / 1e6:.0f} MB")
    say("peak memory while building tiles", built["peak"] / 1e9, 2, "GB")
    say("peak memory while serving", zoomed["peak"] / 1e9, 2, "GB")
    say("tiles opened", zoomed["opened"], 2, "s")
    say("first paint in Chromium, server start included", browsed["painted"], 2, "s")
    say("zoom step on the server, median", zoomed["median"] * 1e3, 200, "ms")
    say("zoom step on the server, worst", zoomed["worst"] * 1e3, 200, "ms")
    say("sums of a brushed range", zoomed["sums"], 0.2, "s")
    say("rows of a brushed hundredth", zoomed["rows"], 2, "s")
    say("flame graph of everything", zoomed["flame"], 5, "s")
    say("heatmap of everything", zoomed["heat"], 5, "s")
    say("flame graph of a brushed half", zoomed["half flame"], 5, "s")
    say("heatmap of a brushed half", zoomed["half heat"], 5, "s")
    say("bytes per view, worst", zoomed["bytes"] / 1e6, 2, "MB")
    say(f"frame in Chromium, median ({browsed['lanes']:.0f} rows on screen)", browsed["median"], 50, "ms")
    say("frame in Chromium, worst", browsed["worst"], 50, "ms")


if __name__ == "__main__":
    main()
