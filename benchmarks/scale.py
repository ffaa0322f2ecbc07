"""Many events and many ranks: Dask against threads, a lost worker, memory of workers and of the client.

``python benchmarks/scale.py [--events 300_000_000] [--ranks 10_000] [--folder DIR] [--repeats 3] [--keep]``: an archive
of 32 ranks (and as many meters) with so many events, and one with a tenth of them, are generated; the event files of
ranks are links to four. ``--only client`` shows what grows on the client of four worker processes: with
ten times the events, and with ten times the ranks. Each measurement is a process of its own.
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
CLIENT_WORKERS, CLIENT_EVENTS = 4, 400  # worker processes; events of a rank, and ten times as many
PLAN_S = 5  # the most that planning an archive of ten thousand locations may take
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
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} before; best of {given.repeats}")
    if given.only in (None, "client"):
        _client(given)
    if given.only == "client":
        return
    small, big = _generate(given.folder, given.events // 10), _generate(given.folder, given.events)
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
    parser.add_argument("--ranks", type=lambda text: int(text.replace("_", "")), default=10_000)
    parser.add_argument("--only", choices=["client", "events"])
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
    found = _child(given, child, *arguments)
    rate = found["events"] / found["wall_s"] / 1e6
    print(f"{name:34} {found['events']:13,} {found['wall_s']:8.2f} {rate:7.1f} {found['peak_mb']:8.1f}", flush=True)
    return found


def _client(given: argparse.Namespace) -> None:
    """What the client of a cluster holds and does: with more events, and with more ranks."""
    few, many = given.ranks // 10, given.ranks
    archives = {
        (ranks, events): archive.generate(given.folder / f"ranks-{ranks}-{events}", ranks, events, DISTINCT, 100_000)
        for ranks, events in ((few, CLIENT_EVENTS), (few, 10 * CLIENT_EVENTS), (many, CLIENT_EVENTS))
    }
    print(f"\nthe client of {CLIENT_WORKERS} worker processes; a counter per node, rows by frame")
    print(f"{'':34} {'events':>13} {'wall s':>8} {'plan s':>8} {'CPU s':>8} {'peak MB':>8} {'rows':>7}")
    found = {}
    for (ranks, events), anchor in archives.items():
        found[ranks, events] = one = _child(given, "client", anchor)
        name = f"{ranks:,} ranks, {2 * ranks:,} locations"
        numbers = (
            f"{one['wall_s']:8.2f} {one['plan_s']:8.2f} {one['cpu_s']:8.2f} {one['peak_mb']:8.1f} {one['rows']:7,}"
        )
        print(f"{name:34} {one['events']:13,} {numbers}", flush=True)
    base, longer, wider = found.values()
    for name, other in (("events", longer), ("ranks", wider)):
        grown, times = other["peak_mb"] - base["peak_mb"], other["peak_mb"] / base["peak_mb"]
        each = grown * 1e6 / (2 * (many - few)) if name == "ranks" else 0.0
        told = f"{times:.2f}× ({grown:+.0f} MB{f', {each:,.0f} B a location' if each else ''})"
        peer.verdict(f"peak memory of the client, ten times the {name}", told, "≤ 1.10×", times <= 1.1)
    peer.verdict(
        f"{2 * many:,} locations planned", f"{wider['plan_s']:.2f} s", f"< {PLAN_S} s", wider["plan_s"] < PLAN_S
    )
    share = wider["cpu_s"] / wider["wall_s"]
    peer.verdict("the client's processor time", f"{share:.0%} of the wall time", "≤ 25 %", share <= 0.25)
    peer.verdict("bits", "those of threads here", "identical", all(one["same"] for one in found.values()))
    print("\nwritten by the workers, four processes, and by two threads here")
    for child in ("spans", "convert"):
        times = [_child(given, f"{child}_{where}", archives[few, 10 * CLIENT_EVENTS]) for where in ("cluster", "here")]
        walls = " and ".join(f"{one['wall_s']:.2f} s" for one in times)
        same = times[0]["bits"] == times[1]["bits"]
        peer.verdict(
            f"{child} ({walls}; client {times[0]['peak_mb']:.0f} MB)", "same rows" if same else "others", "same", same
        )


def _child(given: argparse.Namespace, child: str, *arguments: object) -> dict[str, Any]:
    command = [sys.executable, __file__, "--repeats", str(given.repeats), "--child", child, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
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


_BY_NODE: dict[str, Any] = {"metric": "device=0$", "by": "frame"}


def client(anchor: str, repeats: int) -> dict[str, Any]:
    """The second question of a session, as the first starts the workers and imports."""
    import wattribute
    from wattribute.engines import cluster
    from wattribute.engines import dask as engine

    planned: list[float] = []
    cut = engine.cut

    def noted(*given: Any) -> Any:
        planned.append(time.perf_counter())
        return cut(*given)

    engine.cut = noted
    asked = _BY_NODE | {"engine": "dask", "threads": CLIENT_WORKERS}
    with cluster.session():
        wattribute.attribute(_tiny(anchor), **asked)
        began, cpu = time.perf_counter(), time.process_time()
        answer = wattribute.attribute(anchor, **asked)
        wall_s, cpu_s, peak = time.perf_counter() - began, time.process_time() - cpu, _peak()
    here = wattribute.attribute(anchor, threads=WORKERS, **_BY_NODE)
    return {
        "events": int(sum(answer.recording.locations.events)),
        "wall_s": wall_s,
        "plan_s": planned[-1] - began,
        "cpu_s": cpu_s,
        "peak_mb": peak / 1e6,
        "rows": answer.rows.height,
        "same": answer.rows.equals(here.rows) and answer.devices.equals(here.devices),
    }


def _tiny(anchor: str) -> str:
    return str(archive.generate(Path(anchor).parents[1] / "tiny", 16, CLIENT_EVENTS, DISTINCT, 100_000))


def _written(anchor: str, child: str, engine: str) -> dict[str, Any]:
    """Rows per span, or an archive, written to a folder: the wall time, the client's memory, and what is in it."""
    import polars as pl

    import wattribute
    from wattribute.engines import cluster
    from wattribute.engines.convert import convert

    out = Path(anchor).parent / f"{child}-{engine}"
    shutil.rmtree(out, ignore_errors=True)
    how = {"engine": engine, "threads": CLIENT_WORKERS if engine == "dask" else WORKERS}
    with cluster.session():
        if engine == "dask":
            wattribute.attribute(_tiny(anchor), **_BY_NODE, **how)
        began = time.perf_counter()
        if child == "spans":
            wattribute.attribute(anchor, spans=out, **_BY_NODE, **how)
        else:
            convert(anchor, out, **how)
        wall_s, peak = time.perf_counter() - began, _peak()
    files = sorted(out.glob("*.parquet" if child == "spans" else "spans/*.parquet"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + pl.read_parquet(file).write_ipc(None).getvalue())
    shutil.rmtree(out)
    return {"wall_s": wall_s, "peak_mb": peak / 1e6, "bits": digest.hexdigest()}


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
    "client": client,
    "spans_cluster": lambda anchor, _: _written(anchor, "spans", "dask"),
    "spans_here": lambda anchor, _: _written(anchor, "spans", "local"),
    "convert_cluster": lambda anchor, _: _written(anchor, "convert", "dask"),
    "convert_here": lambda anchor, _: _written(anchor, "convert", "local"),
}

if __name__ == "__main__":
    main()
