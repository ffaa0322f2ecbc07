"""Lines of panels (a quantity over time, a line per signal) and where they stand, whoever draws them.

A device has one colour in all panels; further signals of it in a panel are dashed. Limits of devices are dotted lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .numbers import si
from .theme import WIDTH, Theme

Floats = npt.NDArray[np.float64]
# unit → title of its panel, in the order in which panels stand
PANELS = {"%": "utilisation", "W": "power", "°C": "temperature", "B": "memory", "Hz": "clock"}
WIDE = WIDTH - 150
DASHES = [[1, 0], [5, 3], [2, 2]]  # of a device's first, second and further signals in a panel
DOTS = [1, 3]
_EMPTY_WORDS = ("input", "percent")  # of sensors' names, which say nothing beside a value with its unit


@dataclass(frozen=True)
class PanelLine:
    """A signal's values over time; binned ones keep mean, least and greatest."""

    label: str
    time_s: Floats
    mean: Floats
    low: Floats
    high: Floats
    last_s: float
    readings: int
    short: str = ""  # the label beside the line
    device: str = ""  # lines of one device have one colour


def device_key(host: str, device: str) -> str:
    """Key of a device in a picture."""
    return f"{host}/{device}"


def device_hues(devices: Sequence[str], theme: Theme) -> dict[str, str]:
    """A colour per device, the same in all panels; neighbours differ."""
    return {key: theme.series[i % len(theme.series)] for i, key in enumerate(sorted(set(devices), key=_numeric))}


def _numeric(key: str) -> list[tuple[int, str]]:
    """Sorts "GPU 2" before "GPU 10"."""
    return [(int(part) if part.isdecimal() else 0, part) for part in re.split(r"(\d+)", key)]


def plain_words(name: str, known: Sequence[str]) -> str:
    """A sensor's name as words, without those that the reader knows already: "nvml sm_clock" is "sm"."""
    words = re.split(r"[\s_:]+", name.strip("_: "))
    telling = [word for word in words if word.lower() not in {*(one.lower() for one in known), *_EMPTY_WORDS}]
    return " ".join(telling or words)


def dash_numbers(lines: Sequence[PanelLine]) -> list[int]:
    """0 for the first line of a device in a panel, then 1, 2 …, as far as there are dashes."""
    seen: dict[str, int] = {}
    numbers = []
    for line in lines:
        numbers.append(min(seen.get(line.device, 0), len(DASHES) - 1) if line.device else 0)
        seen[line.device] = seen.get(line.device, 0) + 1
    return numbers


def value_range(unit: str, lines: Sequence[PanelLine], limits: Mapping[str, float]) -> tuple[float, float]:
    """The ends of a panel's axis: from 0 or below, with room for the greatest value and limit."""
    tops = [float(line.high.max()) for line in lines if len(line.high)]
    bottom = min([0.0, *(float(line.low.min()) for line in lines if len(line.low))])
    if limits:
        return bottom, max([*tops, *limits.values()]) * 1.18  # room for the words above a limit
    top = max(tops, default=1.0)
    return bottom, 100.0 if unit == "%" and 50 < top <= 100 else top * 1.05 or 1.0


def limit_lines(
    limits: Mapping[str, float], unit: str, hues: Mapping[str, str], theme: Theme
) -> list[tuple[float, str, str]]:
    """Height, words and colour of each limit; one that devices share is one line."""
    owners: dict[float, list[str]] = {}
    for key, value in limits.items():
        owners.setdefault(value, []).append(key)
    return [
        (value, f"limit {si(value, unit)}", hues.get(keys[0], theme.muted) if len(keys) == 1 else theme.muted)
        for value, keys in owners.items()
    ]


def name_places(lines: Sequence[PanelLine], bottom: float, top: float, height: int) -> list[tuple[float, int]]:
    """(pixels from the top, number of a line) of the names that have room; pushed apart so that none covers another."""
    ends = sorted(
        ((float(line.mean[-1]) if len(line.mean) else 0.0, i) for i, line in enumerate(lines)), key=lambda end: -end[0]
    )
    room = height // 12 + 1
    shown = ends if len(ends) <= room else ends[: room - 1]
    places = []
    lowest = -6.0
    for number, (value, i) in enumerate(shown):
        wanted = height * (1 - (value - bottom) / (top - bottom))
        at = max(lowest, min(wanted, height - 12.0 * (len(shown) - number - 1)))
        places.append((at, i))
        lowest = at + 12
    return places


def byte_ticks(top: float) -> list[float]:
    """Round numbers of bytes: powers of two, about four of them."""
    step = 2.0 ** max(0, int(np.ceil(np.log2(max(top, 1.0) / 5))))
    return [step * i for i in range(int(top / step) + 1)]
