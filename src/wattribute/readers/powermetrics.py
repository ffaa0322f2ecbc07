"""Logs of Apple's ``powermetrics`` (text, or ``-f plist``) → Recording: the reader plug-in "powermetrics".

A sample is a mean over the time since the one before,
so it is recorded as the energy of that time, which loses nothing.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from ..errors import FormatError
from ..model import Clock, Device, Nodes, Problem, Recording, Signal
from ..model.select import select_metrics
from ..plugins import Selection
from .powermetrics_samples import KINDS, Sample, parse_plist, parse_text

_TEXT = b"*** Sampled system activity ("
_MOST = 1 << 29
_NS = 1_000_000_000


def detects(path: Path) -> bool:
    """The line above a sample, or a plist with a processor's power."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        data = file.read(1 << 20)
    plist = data.lstrip(b"\0 \n").startswith(b"<?xml") and b"<plist" in data
    return _TEXT in data or (plist and b"<key>elapsed_ns</key>" in data and b"_power</key>" in data)


def read(path: Path, selection: Selection) -> Recording:
    """A device per part of the chip."""
    if path.stat().st_size > _MOST:
        raise FormatError(path, f"holds more than {_MOST >> 20} MB; cut it into several logs")
    data = path.read_bytes()
    samples = parse_text(data.decode("utf-8", "replace")) if _TEXT in data else parse_plist(data)
    timed = [sample for sample in samples if _is_valid(sample)]
    if not timed:
        raise FormatError(path, "has no sample of power with the time it lasted")
    noticed = []
    if len(timed) < len(samples):
        text = f"{path}: {len(samples) - len(timed)} samples have no valid time or power and are left out"
        noticed.append(Problem("left-out", text))
    ends = _ends(timed)
    names = [name for name in KINDS if any(name in sample for sample in timed)]
    recording = Recording(
        clock=Clock(
            _NS, 0, int(ends[-1]), None if timed[0].epoch_ns is None else timed[0].epoch_ns - timed[0].elapsed_ns
        ),
        nodes=Nodes.of([(0, "", "node")]),
        devices=tuple(_device(name) for name in names),
        signals=tuple(_signal(name, timed, ends) for name in names),
        noticed=tuple(noticed),
        metadata={
            "name": path.name,
            "source": str(path),
            "format": "powermetrics",
            "clock": {"uncertainty_ns": _NS},  # its times are whole seconds
        },
    )
    return select_metrics(recording, selection.metric)


def _is_valid(sample: Sample) -> bool:
    """Whether it lasted, and neither a day nor at a megawatt."""
    return (
        0 < sample.elapsed_ns < 10**14
        and all(0 <= value < 10**9 for value in sample.values())
        and (max(sample.values()) * sample.elapsed_ns < 1 << 62)
    )


def _ends(samples: list[Sample]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """When each sample ended, in ns since the first began: they follow each other without a gap."""
    return np.cumsum([sample.elapsed_ns for sample in samples], dtype=np.int64)


def _device(name: str) -> Device:
    return Device(name, KINDS[name], "", {"source": "powermetrics"})


def _signal(name: str, samples: list[Sample], ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Signal:
    there = [(int(end), sample) for end, sample in zip(ends, samples, strict=True) if name in sample]
    first = there[0][0] - there[0][1].elapsed_ns
    times = np.array([first, *(end for end, _ in there)], np.int64)
    used = np.array([0, *(sample[name] * sample.elapsed_ns for _, sample in there)], np.int64)  # mW × ns
    return Signal(f"powermetrics {name} power", "delta", "J", times, used, Fraction(1, 10**12), device=name)
