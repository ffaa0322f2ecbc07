"""How a sensor measures: period, window, lag, gain, floor and cap by (vendor, card, driver, field), with a source.

``table.toml`` beside this module is the packaged table; files of the same form, named by a user or lying in the user's
folder, come before it. ``SensorTable.line`` answers with the first line that fits what is known of a signal
(``Evidence``).
A reading is gain × (mean power over a window that ended ``lag`` before the update) + offset. Lines of the packaged
table only widen ranges; a line of a user's file also corrects the values.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..files import user_folder as folder_of_user

LINE_KINDS = ("boxcar", "running mean", "low pass", "counter", "unknown")
MAX_RELATIVE_WINDOW_RANGE = 1.1  # a window whose range is wider is not known well enough to move readings
HARD_SPREADS = 3.0  # the hard range allows for so many times the spread of the gain, the 95 % one for once
_DRIVER = re.compile(r"(>=|<|)\s*(\d+)$")
_TEXTS = ("vendor", "card", "driver", "field", "draw", "kind", "source")
_TRIPLES = ("period_s", "window_s", "lag_s", "gain", "offset_w")
_PAIRS = ("measured", "outliers")
_NUMBERS = ("spread", "floor_w", "cap_w")
_KEYS = (*_TEXTS, *_TRIPLES, *_PAIRS, *_NUMBERS, "seen_s")

Pair = tuple[float, float]  # gain, offset in watts: reading = gain × truth + offset


@dataclass(frozen=True)
class Triple:
    """A quantity with its range: least and most are the ends of a 95 % interval."""

    least: float
    likely: float
    most: float

    @classmethod
    def of(cls, value: Any) -> Triple:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return cls(float(value), float(value), float(value))
        least, likely, most = (float(number) for number in value)
        if not least <= likely <= most:
            raise ValueError("three numbers have to ascend: least, likely, most")
        return cls(least, likely, most)


@dataclass(frozen=True)
class Evidence:
    """What is known of a signal: its name, the card, the driver, and what the log itself shows."""

    name: str
    kind: str = "gauge"  # of the signal
    card: str = ""
    driver: str = ""
    draw: str = ""  # "instant" where power.draw repeats power.draw.instant, "average" where it does not
    seen_s: float | None = None  # time between updates as seen in the readings


@dataclass(frozen=True)
class Line:
    """One line of the table; times in seconds, powers in watts."""

    vendor: str = ""
    card: str = ""
    driver: str = ""
    field: str = ""
    draw: str = ""
    seen_s: tuple[float, float] | None = None
    kind: str = "unknown"
    period_s: Triple = Triple(0.0, 0.0, 1.0)
    window_s: Triple = Triple(0.0, 0.0, 1.0)
    lag_s: Triple = Triple(0.0, 0.0, 0.25)
    pairs: tuple[Pair, ...] = ((1.0, 0.0),)  # 95 %: the truth lies between what these make of a reading
    hard_pairs: tuple[Pair, ...] = ((1.0, 0.0),)
    likely: Pair = (1.0, 0.0)
    floor_w: float = 0.0
    cap_w: float | None = None
    source: str = ""
    origin: str = ""  # the file of a user's line; "" for the packaged table

    @property
    def corrects(self) -> bool:
        """Whether values are corrected: only a user's file may."""
        return bool(self.origin) and self.likely != (1.0, 0.0)

    @property
    def known(self) -> bool:
        """Whether the window is known well enough, to about itself, to move readings to where they belong."""
        window = self.window_s
        tight = window.most - window.least <= MAX_RELATIVE_WINDOW_RANGE * max(window.likely, self.period_s.likely)
        return self.kind not in ("unknown", "counter") and tight

    @property
    def label(self) -> str:
        """One line for people: which sensor this is taken to be, and who says so."""
        if self.kind == "unknown":
            return f"{self.source}"
        card = self.card.split("|")[0].replace("\\b", "") if self.card else "card not known"
        if self.kind == "counter":
            return f"{self.vendor}: counter, truth/reading {self._gains()}; {self.origin or self.source}"
        what = "time constant" if self.kind == "low pass" else "window"
        return (
            f"{self.vendor} ({card}): {self.kind}, {what} {_ms(self.window_s)}, every {_ms(self.period_s)}, lag "
            f"{_ms(self.lag_s)}, truth/reading {self._gains()} at 200 W; {self.origin or self.source}"
        )

    def _gains(self) -> str:
        low, high = (ends / 200 for ends in truths(self.pairs, 200.0))
        return f"{low:.2f} to {high:.2f}"

    def fits(self, evidence: Evidence) -> bool:
        if (self.kind == "counter") != (evidence.kind != "gauge") and self.kind != "unknown":
            return False
        if self.kind == "unknown" and evidence.kind != "gauge":
            return False
        if not re.search(self.field, evidence.name, re.IGNORECASE):
            return False
        if self.card and not (evidence.card and re.search(self.card, evidence.card.replace("_", " "), re.IGNORECASE)):
            return False
        if self.driver and not _driver_fits(self.driver, evidence.driver):
            return False
        if self.draw and self.draw != evidence.draw:
            return False
        if self.seen_s is not None:
            return evidence.seen_s is not None and self.seen_s[0] <= evidence.seen_s <= self.seen_s[1]
        return True


def truths(pairs: Iterable[Pair], reading: float, count: float = 1.0) -> tuple[float, float]:
    """The least and the greatest truth behind a reading, or behind the sum of ``count`` readings."""
    values = [(reading - offset * count) / gain for gain, offset in pairs]
    return min(values), max(values)


def _ms(triple: Triple) -> str:
    least, most = triple.least * 1e3, triple.most * 1e3
    return f"{least:g} ms" if least == most else f"{least:g} to {most:g} ms"


def _driver_fits(wanted: str, driver: str) -> bool:
    match, version = _DRIVER.match(wanted), re.match(r"\d+", driver)
    if match is None or version is None:
        return False
    limit, number = int(match[2]), int(version[0])
    return {">=": number >= limit, "<": number < limit, "": number == limit}[match[1]]


@dataclass(frozen=True)
class SensorTable:
    """Lines in the order in which they are asked."""

    lines: tuple[Line, ...]

    def line(self, evidence: Evidence) -> Line | None:
        """The first line that fits; None for a counter that no line describes."""
        return next((line for line in self.lines if line.fits(evidence)), None)


def known_lines(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (), folder: Path | None = None
) -> SensorTable:
    """The lines of named files, then those of the user's folder, then the packaged table."""
    folder = user_folder() if folder is None else folder
    named = [files] if isinstance(files, str | os.PathLike) else files
    paths = [*(Path(file) for file in named), *(sorted(folder.glob("*.toml")) if folder.is_dir() else ())]
    own = (line for path in paths for line in read_lines(path))
    return SensorTable((*own, *_packaged()))


def user_folder() -> Path:
    """Where a user's sensor files lie: $XDG_CONFIG_HOME/wattribute/sensors, by default in ~/.config."""
    return folder_of_user("CONFIG", "sensors")


@cache
def _packaged() -> tuple[Line, ...]:
    path = Path(__file__).with_name("table.toml")
    return tuple(replace(line, origin="") for line in read_lines(path))


def read_lines(path: Path) -> list[Line]:
    """The lines of one file; an OptionError names the file, the line and what was expected."""
    tomllib: Any = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise OptionError(f"sensor file {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"sensor file {path} is not TOML: {error}") from error
    rows = content.get("sensor")
    if not isinstance(rows, list) or not rows:
        raise OptionError(
            f"sensor file {path} has no [[sensor]] table; `wattribute calibrate` writes one as it has to be"
        )
    return [_line(row, f"{path}: sensor {number}", str(path)) for number, row in enumerate(rows, 1)]


def _line(row: Mapping[str, Any], where: str, origin: str) -> Line:
    unknown = sorted(set(row) - set(_KEYS))
    if unknown:
        raise OptionError.unknown(f"key in {where}", unknown[0], _KEYS)
    try:
        given: dict[str, Any] = {name: str(row[name]) for name in _TEXTS if name in row}
        triples = {name: Triple.of(row[name]) for name in _TRIPLES if name in row}
        given |= {name: triples[name] for name in ("period_s", "window_s", "lag_s") if name in triples}
        given |= {name: float(row[name]) for name in ("floor_w", "cap_w") if name in row}
        if "seen_s" in row:
            least, most = (float(number) for number in row["seen_s"])
            given["seen_s"] = (least, most)
        spread = float(row.get("spread", 0.0))
        given |= _gains(
            triples, [_pair(p) for p in row.get("measured", ())], [_pair(p) for p in row.get("outliers", ())], spread
        )
        for name in ("card", "field"):
            re.compile(given.get(name, ""))
    except (TypeError, ValueError, re.error) as error:
        raise OptionError(f"{where}: {error}") from error
    line = Line(**given, origin=origin)
    if line.kind not in LINE_KINDS:
        raise OptionError.unknown(f"kind in {where}", line.kind, LINE_KINDS)
    if line.driver and not _DRIVER.match(line.driver):
        raise OptionError(f"{where}: driver {line.driver!r} is not of the form '>=530', '<530' or '530'")
    if line.window_s.least < 0 or line.period_s.least < 0 or any(gain <= 0 for gain, _ in line.hard_pairs):
        raise OptionError(f"{where}: period_s, window_s and gain have to be positive")
    return line


def _pair(value: Any) -> Pair:
    gain, offset = (float(number) for number in value)
    return gain, offset


def _gains(
    triples: Mapping[str, Triple], measured: Sequence[Pair], outliers: Sequence[Pair], spread: float
) -> dict[str, Any]:
    """The pairs of (gain, offset) that the 95 % and the hard range have to contain, and the likely one."""
    if not measured:
        gain, offset = triples.get("gain", Triple(1, 1, 1)), triples.get("offset_w", Triple(0, 0, 0))
        measured = [(g, o) for g in {gain.least, gain.most} for o in {offset.least, offset.most}]
        likely = gain.likely, offset.likely
        outliers = [
            *outliers,
            *((likely[0] + 2 * (g - likely[0]), likely[1] + 2 * (o - likely[1])) for g, o in measured),
        ]
    else:
        likely = sum(g for g, _ in measured) / len(measured), sum(o for _, o in measured) / len(measured)

    def widened(pairs: Sequence[Pair], by: float) -> tuple[Pair, ...]:
        return tuple(sorted({(g * (1 + sign * by), o) for g, o in pairs for sign in ((-1, 1) if by else (0,))}))

    return {
        "pairs": widened(measured, spread),
        "hard_pairs": widened([*measured, *outliers], HARD_SPREADS * spread),
        "likely": likely,
    }
