"""Memory and CPU time at the end of a long recording, and of opening it again.

``python benchmarks/long_recording.py [--hours 2 24] [--gpus 8] [--hz 20] [--folder DIR] [--keep]``: a journal is
written as the sampler writes it (energy counters that update every 100 ms, two fields of power, utilisation, memory,
temperature, clocks of every GPU, CPU time of the command every quarter second). It is then finished as ``run`` and
``monitor`` do, and the recording is opened by other verbs; each is a process of its own. Printed are CPU seconds, peak
memory (all resident pages, and what of it is above that of 36 s of recording) and a checksum of the readings' tables,
which stays the same however they were written.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from wattribute.journal.file import NAME, NO_READING, Journal
from wattribute.model import Device
from wattribute.plugins import Channel
from wattribute.recorders.sampler import plain

SECOND = 1_000_000_000
START = 1000 * SECOND
SHORT_H = 0.01
FIELDS = {"gain": 1.0, "coverage": 0.25}
OPENED = {
    "attribute": ["attribute", "FOLDER"],
    "summary": ["summary", "FOLDER"],
    "carbon": ["carbon", "FOLDER"],
    "plot power": ["plot", "power", "FOLDER", "-o", "FOLDER.svg"],
}


def main() -> None:
    given = _given()
    if given.finish:
        _finish(Path(given.finish))
        return
    folder = Path(tempfile.mkdtemp(prefix="wattribute-long-", dir=given.folder))
    try:
        print(f"{given.gpus} GPUs, {given.hz:g} readings per second; load {os.getloadavg()[0]:.1f}")
        print(f"{'':22}{'CPU s':>8}{'peak MB':>9}{'above short':>13}")
        base = _row(folder, SHORT_H, given, {})
        for hours in given.hours:
            _row(folder, hours, given, base)
    finally:
        if not given.keep:
            shutil.rmtree(folder)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, nargs="+", default=[2, 24])
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--hz", type=float, default=20)
    parser.add_argument("--folder", type=Path, help="where to write (24 h take 2 GB)")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", nargs="*", choices=list(OPENED), default=list(OPENED))
    parser.add_argument("--finish", help=argparse.SUPPRESS)
    return parser.parse_args()


def _row(folder: Path, hours: float, given: argparse.Namespace, base: dict[str, float]) -> dict[str, float]:
    """Measure everything at one length; the peaks in MB."""
    place = folder / f"{hours:g}h.watt"
    shutil.rmtree(place, ignore_errors=True)
    _write_journal(place, hours, given.gpus, given.hz)
    peaks = {}
    verbs = {name: [sys.executable, "-m", "wattribute", *OPENED[name]] for name in given.only}
    for name, command in {"end of run": [sys.executable, __file__, "--finish", "FOLDER"], **verbs}.items():
        cpu_s, peak_mb = _measured([word.replace("FOLDER", str(place)) for word in command])
        above = f"{peak_mb - base[name]:13.0f}" if name in base else ""
        print(f"{hours:>5g} h {name:14}{cpu_s:>8.1f}{peak_mb:>9.0f}{above}", flush=True)
        peaks[name] = peak_mb
    print(f"{hours:>5g} h readings {_checksum(place)}", flush=True)
    return peaks


def _measured(command: list[str]) -> tuple[float, float]:
    with tempfile.TemporaryFile() as shown:
        child = subprocess.Popen(command, stdout=shown, stderr=shown)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            shown.seek(0)
            sys.exit(f"{' '.join(command)}: {shown.read().decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _checksum(place: Path) -> str:
    """Of the readings as numbers, whatever the row groups are."""
    import pyarrow.parquet as pq

    digest = hashlib.sha256()
    for path in sorted((place / "readings").glob("*.parquet")):
        columns = {name: hashlib.sha256() for name in ("signal", "ticks", "value")}
        with pq.ParquetFile(path) as parquet:
            for batch in parquet.iter_batches(1 << 16):
                for name, one in columns.items():
                    one.update(batch.column(name).to_numpy(zero_copy_only=False).tobytes())
        for one in columns.values():
            digest.update(one.digest())
    return digest.hexdigest()[:16]


def _finish(folder: Path) -> None:
    """What ``run`` does when its command has ended."""
    from wattribute.recorders.command import CommandEnd, CommandRecording
    from wattribute.recorders.sampling import Sampling
    from wattribute.sessions.run import finished

    result = finished(CommandRecording(CommandEnd(0, START, START + 1), Sampling(folder)), folder, (), "FR", None)
    assert result.saved, result.trouble
    assert result.summary is not None
    print(json.dumps(result.summary.as_dict()))


# ------------------------------------------------------------------------------------------------------- a journal


def _channels(gpus: int) -> list[tuple[Channel, float]]:
    """Each channel, and the seconds between two of its readings (0: at every look)."""
    channels = []
    for number in range(gpus):
        device = Device(f"GPU {number}", "gpu", properties={
            "model": "NVIDIA A100-SXM4-40GB", "uuid": f"GPU-{number}", "power_limit_w": "400", "source": "NVML",
        })  # fmt: skip
        milli = Channel("energy", "counter", "J", device, Fraction(1, 1000), latency_s=0.1, gain_error=0.05)
        power = replace(milli, kind="gauge", unit="W", period_s=0.1, declared=FIELDS)
        channels += [
            (milli, 0.0),
            (replace(power, name="power_instant"), 0.095),
            (replace(power, name="power_average"), 0.095),
            (Channel("utilisation", "gauge", "%", device), 1 / 6),
            (Channel("memory", "gauge", "B", device), 1.0),
            (Channel("temperature", "gauge", "°C", device), 1.0),
            (Channel("sm_clock", "gauge", "Hz", device, 10**6), 1.0),
            (Channel("memory_clock", "gauge", "Hz", device, 10**6), 1.0),
        ]
    return channels


def _write_journal(folder: Path, hours: float, gpus: int, hz: float) -> None:
    """A journal as the sampler leaves it; the command lives from START to the end."""
    channels = _channels(gpus)
    (folder / "regions").mkdir(parents=True)
    journal = Journal(folder / NAME)
    about = {
        "host": "node1", "command": ["train"], "monotonic_ns": START - SECOND, "epoch_ns": 1_700_000_000 * SECOND,
        "meters": [{"name": "nvml", "channels": [plain(channel) for channel, _ in channels]}], "refused": [],
    }  # fmt: skip
    journal.about(about, [[channel for channel, _ in channels]])
    journal.event({"start": START, "pid": 4711})
    random = np.random.default_rng(1)
    looks, block, done = int(hours * 3600 * hz), 1 << 14, 0
    joules = np.zeros(gpus)
    while done < looks:
        number = np.arange(done, min(looks, done + block))
        done += len(number)
        times = (
            START - SECOND // 10 + (number * (SECOND / hz)).astype(np.int64) + random.integers(0, 10**6, len(number))
        )
        rows = np.empty((len(number), 2 * len(channels)), np.int64)
        update = times // (SECOND // 10)
        for at, (channel, every_s) in enumerate(channels):
            gpu = at * gpus // len(channels)
            watts = 250 + 100 * np.sin(update / 600 + gpu)
            if channel.name == "energy":
                rises = np.diff(update, prepend=update[0]) * 0.1 * watts
                values = 1000 * (joules[gpu] + np.cumsum(rises))
                joules[gpu] += rises.sum() + 0.1 * watts[-1]
            elif channel.unit == "W":
                values = 1000 * (watts + random.normal(0, 5, len(number)))
            else:
                values = np.clip(50 + 40 * np.sin(update / 600 + gpu), 0, 100)
            seldom = max(1, round(every_s * hz))
            rows[:, 2 * at] = np.where(number % seldom == 0, times, NO_READING)
            rows[:, 2 * at + 1] = values.astype(np.int64)
        for i in range(len(number)):
            journal.readings(0, _Row(rows[i].tobytes()))
            if (number[i] * 4) % max(1, round(hz)) < 4:
                spent = (times[i] - START) / 1e9
                journal.event({"at": int(times[i]), "cpu_s": [[spent], [2 * spent]]})
        journal.flush()
    journal.event({"end": int(times[-1]), "exit_code": 0, "cpu_s": hours * 3600})
    journal.flush()
    journal.close()


class _Row(list[tuple[int, int]]):
    """Readings of a look as the compiled core gives them."""

    def __init__(self, raw: bytes) -> None:
        super().__init__()
        self.raw = raw


if __name__ == "__main__":
    main()
