"""``--live-plot``: ``metrics_plot.png`` redrawn every few seconds while a run goes on, by a process of its own.

An observer of the run passes each status on to that process, which keeps a bounded history and draws the panels of
``plot panels`` as SVG itself: Vega takes 0.2 s of a core for a picture, this a twentieth. Neither sampler nor run waits
for it, and it is nice. The picture of the finished run is ``plot panels``.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import WattributeError
from ..files import write_file
from ..units import SUFFIXES
from . import names
from .numbers import seconds, si
from .theme import FONT, LIGHT, SIZE

if TYPE_CHECKING:
    from ..model.status import Status

PLOT = "metrics_plot.png"
EVERY_S = 4.0  # between the starts of two pictures; a status comes every second, so that none is older than 5 s
MOST_POINTS = 300  # of a line; beyond, neighbours are joined
_LEFT, _RIGHT, _TOP, _HEIGHT, _GAP = 84, 190, 84, 110, 44


class LivePlot:
    """Use as a context manager; call with each status."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()

    def __enter__(self) -> LivePlot:
        return self

    def __call__(self, status: Status) -> None:
        if self._process is None:
            self._folder = Path(status.folder)
            command = [sys.executable, "-m", __name__, str(self._folder)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
            assert self._process.stdin is not None
            os.set_blocking(self._process.stdin.fileno(), False)
        assert self._process.stdin is not None
        line = json.dumps(status.as_dict()).encode() + b"\n"
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # a status less in the picture
            os.write(self._process.stdin.fileno(), line)

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        self._process.kill()  # the signals that could be caught are held back while a run goes on
        self._process.communicate()
        for half in self._folder.glob(f".{PLOT}.*"):
            half.unlink(missing_ok=True)


@dataclass(frozen=True)
class LivePoint:
    """A value of a line, or of neighbours that were joined."""

    time_s: float
    mean: float
    low: float
    high: float


class StatusHistory:
    """Statuses as lines: (unit, device, what is read there) → points."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, str, str], list[LivePoint]] = {}
        self.limits: dict[str, dict[str, float]] = {"W": {}, "B": {}}
        self.last: Mapping[str, Any] = {}

    def add(self, status: Mapping[str, Any]) -> None:
        """Take a status as ``Status.as_dict`` gives it; devices whose sensor is dead are left out."""
        self.last = status
        for device in status["live"]:
            if device["note"]:
                continue
            for unit, name in (("W", "power_limit_w"), ("B", "memory_total_bytes")):
                if device[name] is not None:
                    self.limits[unit][device["device"]] = float(device[name])
            for unit, what, value in _values(device):
                line = self.points.setdefault((unit, device["device"], what), [])
                line.append(LivePoint(status["elapsed_s"], value, value, value))
                if len(line) > MOST_POINTS:
                    line[:] = [_joined(*line[i : i + 2]) for i in range(0, len(line), 2)]


def _values(device: Mapping[str, Any]) -> Iterable[tuple[str, str, float]]:
    units = {suffix: unit for unit, suffix in SUFFIXES.items()}
    for name, value in device.items():
        what, _, suffix = name.rpartition("_")
        is_reading = (
            isinstance(value, int | float) and suffix in units and not name.endswith(("limit_w", "total_bytes"))
        )
        if is_reading and units[suffix] != "J":
            yield units[suffix], what, float(value)


def _joined(first: LivePoint, second: LivePoint | None = None) -> LivePoint:
    if second is None:
        return first
    mean = (first.mean + second.mean) / 2
    return LivePoint(first.time_s, mean, min(first.low, second.low), max(first.high, second.high))


def picture(history: StatusHistory) -> str:
    """The panels as SVG; empty while there is no line to draw."""
    import numpy as np

    from .panel_lines import PANELS, WIDE, PanelLine, device_hues, plain_words

    panels: dict[str, list[PanelLine]] = {}
    for (unit, device, what), points in history.points.items():
        if unit in PANELS and len(points) > 1:
            times_s, mean, low, high = np.array([(p.time_s, p.mean, p.low, p.high) for p in points]).T
            alone = sum(key[:2] == (unit, device) for key in history.points) == 1
            label = device if alone else f"{device} {plain_words(what, PANELS[unit].split())}"
            line = PanelLine(label, times_s, mean, low, high, float(times_s[-1]), len(points), label, device)
            panels.setdefault(unit, []).append(line)
    panels = {unit: panels[unit] for unit in PANELS if unit in panels}
    if not panels:
        return ""
    hues = device_hues([line.device for lines in panels.values() for line in lines], LIGHT)
    status = history.last
    begin_s = min(float(line.time_s[0]) for lines in panels.values() for line in lines)
    window = begin_s, max(float(status["elapsed_s"]), begin_s + 1e-9)
    at = _TOP
    parts = []
    for unit, lines in panels.items():
        limits = history.limits.get(unit, {})
        parts.append(_panel(PANELS[unit], unit, lines, window, at, hues, limits))
        at += _HEIGHT + _GAP
    epoch_s = status["epoch_ns"] / 1e9 - status["elapsed_s"]
    parts.append(_time_axis(window, epoch_s, at - _GAP))
    energy = f"{si(status['energy_j'], 'J')} in " if status["energy_j"] is not None else ""
    date = f"{datetime.fromtimestamp(epoch_s, timezone.utc):%Y-%m-%d}"
    head = _text(14, 30, f"{energy}{seconds(status['elapsed_s'])} so far", "start", LIGHT.text, 16, 600)
    head += _text(14, 50, f"{status['host']} · {date}", "start", LIGHT.muted, 12)
    width = _LEFT + WIDE + _RIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{at}" font-family="{FONT}" '
        f'font-size="{SIZE}"><rect width="{width}" height="{at}" fill="{LIGHT.ground}"/>{head}{"".join(parts)}</svg>'
    )


def _panel(
    title: str, unit: str, lines: Sequence[Any], window: tuple[float, float], top_px: float, hues: Mapping[str, str],
    limits: Mapping[str, float],
) -> str:  # fmt: skip
    import numpy as np

    from .charts.canvas import nice_step
    from .panel_lines import DASHES, DOTS, WIDE, byte_ticks, dash_numbers, limit_lines, name_places, value_range

    bottom, top = value_range(unit, lines, limits)

    def down(value: Any) -> Any:
        return top_px + _HEIGHT * (1 - (value - bottom) / (top - bottom))

    def across(time_s: Any) -> Any:
        return _LEFT + WIDE * (time_s - window[0]) / (window[1] - window[0])

    step = nice_step((top - bottom) / 4)
    ticks = byte_ticks(top) if unit == "B" else [step * i for i in range(int(bottom / step), int(top / step) + 1)]
    out = [_text(_LEFT, top_px - 6, title, "start", LIGHT.text, SIZE, 600)]
    for tick in ticks:
        y = down(tick)
        out.append(f'<path d="M{_LEFT} {y:.1f}h{WIDE}" stroke="{LIGHT.grid}"/>')
        out.append(_text(_LEFT - 6, y + 4, si(tick, unit), "end", LIGHT.muted))
    for line, dash in zip(lines, dash_numbers(lines), strict=True):
        hue = hues[line.device]
        x, y = across(np.append(line.time_s, window[1])), down(line.mean)
        steps = "".join(f"H{right:.1f}V{level:.1f}" for right, level in zip(x[1:-1], y[1:], strict=True))
        dashes = "" if not dash else f' stroke-dasharray="{" ".join(map(str, DASHES[dash]))}"'
        drawn = f"M{x[0]:.1f} {y[0]:.1f}{steps}H{x[-1]:.1f}"
        out.append(f'<path d="{drawn}" fill="none" stroke="{hue}" stroke-width="1.4"{dashes}/>')
    for value, words, hue in limit_lines(limits, unit, hues, LIGHT):
        y = down(value)
        dots = " ".join(map(str, DOTS))
        out.append(f'<path d="M{_LEFT} {y:.1f}h{WIDE}" stroke="{hue}" stroke-dasharray="{dots}"/>')
        out.append(_text(_LEFT + 4, y - 3, words, "start", hue))
    places = name_places(lines, bottom, top, _HEIGHT)
    out += [
        _text(_LEFT + WIDE + 6, top_px + y + 4, names.shorten(lines[i].short, 25), "start", hues[lines[i].device])
        for y, i in places
    ]
    return "".join(out)


def _time_axis(window: tuple[float, float], epoch_s: float, y: float) -> str:
    """Labels of the wall clock, about eight, at round seconds."""
    from .charts.canvas import nice_step
    from .panel_lines import WIDE

    length = window[1] - window[0]
    step = max(1.0, nice_step(length / 8))
    clock = "%H:%M:%S" if length < 86_400 else "%d %b %H:%M"
    first = -(-(epoch_s + window[0]) // step) * step
    marks = [first + step * i for i in range(int((epoch_s + window[1] - first) / step) + 1)]
    out = []
    for mark in marks:
        x = _LEFT + WIDE * (mark - epoch_s - window[0]) / length
        out.append(f'<path d="M{x:.1f} {y}v4" stroke="{LIGHT.grid}"/>')
        text = f"{datetime.fromtimestamp(mark, timezone.utc):{clock}}"
        out.append(_text(x, y + 17, text, "middle", LIGHT.muted))
    out.append(_text(_LEFT + WIDE / 2, y + 33, "time (UTC)", "middle", LIGHT.muted))
    return "".join(out)


def _text(x: float, y: float, text: str, anchor: str, fill: str, size: int = SIZE, weight: int = 400) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
        f'font-weight="{weight}">{escape(names.clean(text))}</text>'
    )


def main(folder: Path, lines: Iterable[bytes]) -> None:
    """Draw statuses until the lines end, which is when the observer of the run is gone."""
    from .save import convert

    os.nice(10)
    history, began_s = StatusHistory(), float("-inf")
    for line in lines:
        with contextlib.suppress(ValueError):  # a line that was cut when the pipe was full
            history.add(json.loads(line))
        if time.monotonic() - began_s < EVERY_S or not (svg := picture(history)):
            continue
        began_s = time.monotonic()
        with contextlib.suppress(WattributeError, OSError):  # the folder just went
            write_file(folder / PLOT, bytes(convert().svg_to_png(svg, scale=1)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.buffer)
