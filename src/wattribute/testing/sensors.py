"""Simulated power sensors with a known truth: boxcar, running mean and low pass, as ``sensors.table`` describes them.

``Load`` is true power over time; ``Simulated`` reads it as a sensor would (period, window, lag, jitter, gain, offset,
noise, quantisation) and is polled as a tool would. ``recording`` puts spans and readings into one Recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model import Clock, Device, Frames, Link, Locations, Nodes, Processes, Recording, Signal, Spans, SpanTable

Floats = npt.NDArray[np.float64]
TICKS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Load:
    """True power: ``watts[i]`` from ``times[i]`` to ``times[i + 1]`` (seconds)."""

    times: Floats
    watts: Floats

    @classmethod
    def of_spans(
        cls,
        spans: Sequence[tuple[float, float, float]],
        idle_w: float,
        begin: float,
        end: float,
        ramp_s: float = 0.0,
        step_s: float = 0.0005,
        noise: float = 0.0,
        generator: np.random.Generator | None = None,
    ) -> Load:
        """Spans (start, end, watts) over idle power; the chip follows with a time constant and flickers."""
        times = np.arange(begin, end + step_s, step_s)
        wanted = np.full(len(times) - 1, idle_w)
        middle = (times[:-1] + times[1:]) / 2
        for start, stop, power in spans:
            wanted[np.searchsorted(middle, start) : np.searchsorted(middle, stop)] = power
        watts = _low_passed(wanted, np.exp(-step_s / ramp_s), float(wanted[0])) if ramp_s > 0 else wanted
        if noise and generator is not None:
            watts = watts * (1 + noise * generator.standard_normal(len(watts)))
        return cls(times, np.maximum(watts, 0.0))

    @property
    def joules(self) -> Floats:
        """Energy from the first time to each of ``times``."""
        return np.concatenate([[0.0], np.cumsum(self.watts * np.diff(self.times))])

    def between(self, start: Any, end: Any) -> Any:
        """Energy between moments."""
        joules = self.joules
        return np.interp(end, self.times, joules) - np.interp(start, self.times, joules)


def _low_passed(values: Floats, left: float, first: float) -> Floats:
    """y[i] = left·y[i−1] + (1 − left)·x[i], in blocks so that powers of ``left`` do not underflow."""
    out = np.empty(len(values))
    block = max(1, min(len(values), int(50 / max(-np.log(left), 1e-9))))
    before = first
    for at in range(0, len(values), block):
        part = values[at : at + block]
        powers = left ** np.arange(1, len(part) + 1)
        out[at : at + block] = powers * (before + (1 - left) * np.cumsum(part / powers))
        before = float(out[at + len(part) - 1])
    return out


@dataclass(frozen=True)
class Simulated:
    """A sensor: reading = gain × mean over a window + offset, renewed every period, seen when polled."""

    kind: str = "boxcar"  # "boxcar", "running mean" or "low pass" (window_s is its time constant)
    period_s: float = 0.1
    window_s: float = 0.1
    lag_s: float = 0.0
    jitter_s: float = 0.0  # of the updates
    poll_s: float = 0.01
    poll_jitter_s: float = 0.0
    gain: float = 1.0
    offset_w: float = 0.0
    noise_w: float = 0.0
    quantum_w: float = 0.01
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def updates(self, load: Load) -> tuple[Floats, Floats]:
        """(moments, readings) of the sensor's own updates."""
        draw = self.generator
        warm = max(self.window_s * (6 if self.kind == "low pass" else 1) + self.lag_s, self.period_s)
        first = load.times[0] + warm + draw.uniform(0, self.period_s)
        moments = np.arange(first, load.times[-1], self.period_s)
        moments = np.sort(moments + self.jitter_s * draw.uniform(-1, 1, len(moments)))
        moments = moments[(moments > load.times[0] + warm) & (moments < load.times[-1])]
        until = moments - self.lag_s
        if self.kind == "low pass":
            step = float(np.median(np.diff(load.times)))
            smooth = _low_passed(load.watts, float(np.exp(-step / self.window_s)), float(load.watts[0]))
            seen = np.interp(until, load.times[1:], smooth)
        else:
            seen = load.between(until - self.window_s, until) / self.window_s
        reading = self.gain * seen + self.offset_w + self.noise_w * draw.standard_normal(len(seen))
        return moments, np.round(reading / self.quantum_w) * self.quantum_w if self.quantum_w else reading

    def readings(self, load: Load) -> tuple[Floats, Floats]:
        """(times, watts) as a tool polls them."""
        moments, values = self.updates(load)
        times = np.arange(moments[0], load.times[-1], self.poll_s)
        times = np.sort(times + self.poll_jitter_s * self.generator.uniform(0, 1, len(times)))
        at = np.searchsorted(moments, times, side="right") - 1
        return times[at >= 0], values[at[at >= 0]]


def recording(
    spans: Sequence[tuple[float, float, str]],
    readings: Sequence[tuple[str, Floats, Floats]],
    model: str = "",
    begin: float = 0.0,
) -> Recording:
    """One stream of a GPU with spans (start, end, frame; seconds) and gauges (name, times, watts) of that GPU."""
    names = list(dict.fromkeys(name for _, _, name in spans))
    start, end = (_ticks([span[i] for span in spans], begin) for i in (0, 1))
    count = len(spans)
    table = Spans(
        start,
        end,
        np.array([names.index(name) for _, _, name in spans], np.int32),
        np.full(count, -1, np.int64),
        np.zeros(count, np.int32),
        np.zeros(count, bool),
    )
    signals = tuple(
        Signal(name, "gauge", "W", _ticks(times, begin), np.asarray(watts, np.float64), host="n", device="GPU 0")
        for name, times, watts in readings
    )
    last = max([int(end.max(initial=0)), *(int(signal.times.max(initial=0)) for signal in signals)])
    return Recording(
        clock=Clock(TICKS_PER_S, 0, last),
        frames=Frames.of([(name, "user", "kernel") for name in names]),
        nodes=Nodes.of([(0, "n", "node")]),
        processes=Processes.of([(0, "p", "process", 0)]),
        locations=Locations.of([(0, "stream", "gpu", 0, 0)]),
        spans=SpanTable({0: table}),
        signals=signals,
        devices=(Device("GPU 0", "gpu", "n", {"model": model} if model else {}),),
        topology=(Link("n", "GPU 0", (0,), "simulated"),),
        metadata={"name": "simulated"},
    )


def _ticks(seconds: Any, begin: float) -> npt.NDArray[np.int64]:
    return np.rint((np.asarray(seconds, np.float64) - begin) * TICKS_PER_S).astype(np.int64)
