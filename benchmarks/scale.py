"""More events than one cares to wait for: Dask against threads, a worker lost on the way, and memory that stays.

``python benchmarks/scale.py [--events 300_000_000] [--folder DIR] [--repeats 3] [--keep]``: an archive of 32 ranks (and
as many meters) with so many events, and one with a tenth of them, are generated; the ranks' event files are links to
four.
Each measurement is a process of its own. Two processors are used, whatever the machine has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from helpers import archive, peer

RANKS, DISTINCT, WORKERS = 32, 4, 2
READING_TICKS = 100_000_000  # 10 Hz; a reading is kept, 16 bytes each, however many events are between two
FAR = 10**10
HEAD = f"{'':34} {'events':>13} {'wall s':>8} {'M/s':>7} {'peak MB':>8}"
QUESTIONS: dict[str, dict[str, Any]] = {
    "a counter per rank": {
        "maps": [f"host{rank // 16}/device={rank % 16}$ -> MPI Rank {rank}" for rank in range(RANKS)]
    },
    "a counter per node, shared by its 16 ranks": {"metric": "device=0$"},
}


def main() -> None:
    given = _given()
    if given.child:
        print(json.dumps(CHILDREN[given.child[0]](*given.child[1:], given.repeats)))
        return
    small, big = _generate(given.folder, given.events // 10), _generate(given.folder, given.events)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before; best of {given.repeats}")
    for question in QUESTIONS:
        print(f"\n{question}\n{HEAD}")
        few = _row("local, 2 threads", given, "local", small, question)
        many = _row("local, 2 threads", given, "local", big, question)
        fewer = _row("Dask, 2 workers, warm", given, "dask", small, question)
        more = _row("Dask, 2 workers, warm", given, "dask", big, question)
        lost = _row("Dask, one worker killed", given, "killed", big, question)
        times = more["wall_s"] / many["wall_s"]
        peer.verdict("Dask against threads", f"{times:.2f}× wall", "≤ 1.25×", times <= 1.25)
        same = more["bits"] == many["bits"] and fewer["bits"] == few["bits"]
        peer.verdict("Dask's bits", "identical" if same else "others", "identical", same)
        peer.verdict(
            "bits after the kill",
            "identical" if lost["bits"] == many["bits"] else "others",
            "identical",
            lost["bits"] == many["bits"] and lost["killed"],
        )
        for name, a, b in (("local", few, many), ("a Dask worker", fewer, more)):
            growth = b["peak_mb"] / a["peak_mb"]
            peer.verdict(
                f"peak memory of {name}, ten times the events", f"{growth:.2f}×", "0.90 … 1.10×", growth <= 1.1
            )
        slope = (many["wall_s"] - few["wall_s"]) / (many["events"] - few["events"])
        far = many["wall_s"] + slope * (FAR - many["events"])
        print(f"  10^10 events, extrapolated from these two (not measured): {far:.0f} s on two threads")
    _per_span(given)
    if not given.keep:
        shutil.rmtree(given.folder)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=lambda text: int(text.replace("_", "")), default=300_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "wattribute-scale")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="leave the archives for another run")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _generate(folder: Path, events: int) -> Path:
    begin = time.perf_counter()
    each = -(-events // RANKS // archive.BLOCK) * archive.BLOCK
    made = archive.generate(folder / str(events), RANKS, each, DISTINCT, READING_TICKS)
    print(f"{events:,} events in {made.parent} ({time.perf_counter() - begin:.0f} s)", flush=True)
    return made


def _row(name: str, given: argparse.Namespace, child: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, __file__, "--repeats", str(given.repeats), "--child", child, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    rate = found["events"] / found["wall_s"] / 1e6
    print(f"{name:34} {found['events']:13,} {found['wall_s']:8.2f} {rate:7.1f} {found['peak_mb']:8.1f}", flush=True)
    return found


def _per_span(given: argparse.Namespace) -> None:
    """One row per span, and archives, at a tenth of the events."""
    print(f"\none row per span to Parquet, and a *.watt folded by row groups\n{HEAD}")
    few, many = (_generate(given.folder, given.events // n) for n in (100, 10))
    for child, name in (("spans", "attribute --spans"), ("watt", "attribute X.watt")):
        a, b = (_row(name, given, child, anchor) for anchor in (few, many))
        growth = b["peak_mb"] / a["peak_mb"]
        peer.verdict(f"peak memory of {name}, ten times the events", f"{growth:.2f}×", "0.90 … 1.10×", growth <= 1.1)


# ---------------------------------------------------------------------------------------- each in a process of its own


def _attribute(anchor: str, question: str, **how: Any) -> Any:
    import wattribute

    return wattribute.attribute(anchor, by=("process", "frame"), **QUESTIONS[question], **how)


def _found(run: Callable[[], Any], repeats: int, peak: Callable[[], int]) -> dict[str, Any]:
    """The best of several runs, and a hash of every bit of the answer."""
    walls = []
    for _ in range(repeats):
        begin = time.perf_counter()
        answer = run()
        walls.append(time.perf_counter() - begin)
    columns = b"".join(table.write_ipc(None).getvalue() for table in (answer.rows, answer.devices))
    events = int(sum(answer.recording.locations.events))
    bits = hashlib.sha256(columns).hexdigest()
    return {"events": events, "wall_s": min(walls), "peak_mb": peak() / 1e6, "bits": bits}


def local(anchor: str, question: str, repeats: int) -> dict[str, Any]:
    return _found(lambda: _attribute(anchor, question, threads=WORKERS), repeats, _peak)


def dask(anchor: str, question: str, repeats: int) -> dict[str, Any]:
    from wattribute.engines import cluster

    with cluster.connected("", WORKERS) as client:
        engine = f"dask:{client.scheduler.address}"
        _attribute(anchor, question, engine=engine, threads=WORKERS)  # warm
        return _found(
            lambda: _attribute(anchor, question, engine=engine, threads=WORKERS),
            repeats,
            lambda: max(client.run(_peak).values()),
        )


def killed(anchor: str, question: str, repeats: int) -> dict[str, Any]:
    """A worker dies when a quarter of the work is done; its nanny starts another."""
    from wattribute.engines import cluster

    with cluster.connected("", WORKERS) as client:
        engine = f"dask:{client.scheduler.address}"
        run = partial(_attribute, anchor, question, engine=engine, threads=WORKERS)
        run()
        begin = time.perf_counter()
        run()
        quarter = (time.perf_counter() - begin) / 4
        victim = min(client.run(os.getpid).values())
        timer = threading.Timer(quarter, os.kill, (victim, signal.SIGKILL))
        timer.start()
        found = _found(run, 1, _peak)
        timer.cancel()
        return found | {"killed": victim not in client.run(os.getpid).values()}


def spans(anchor: str, repeats: int) -> dict[str, Any]:
    out = Path(anchor).parent / "spans"
    question = next(iter(QUESTIONS))
    found = _found(lambda: _attribute(anchor, question, threads=WORKERS, spans=out), 1, _peak)
    shutil.rmtree(out)
    return found


def watt(anchor: str, repeats: int) -> dict[str, Any]:
    """Converted by a process of its own, whose memory is not looked at."""
    out = Path(anchor).parent / "trace.watt"
    if not out.exists():
        subprocess.run([sys.executable, "-m", "wattribute", "convert", anchor, str(out)], stdout=2, check=True)
    question = next(iter(QUESTIONS))
    return _found(lambda: _attribute(str(out), question, threads=WORKERS), repeats, _peak)


def _peak() -> int:
    """The most memory this process held."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


CHILDREN: dict[str, Callable[..., dict[str, Any]]] = {
    "local": local,
    "dask": dask,
    "killed": killed,
    "spans": spans,
    "watt": watt,
}

if __name__ == "__main__":
    main()
