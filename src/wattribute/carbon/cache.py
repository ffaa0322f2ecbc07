"""Disk cache of the answers of live sources: one small JSON file per source, zone and day.

A step that lay in the past when it was fetched will not change and is kept for good; one that was still a forecast is
trusted for half an hour, and longer only when the server cannot be asked. A cache that cannot be read or written is no
cache: nothing here raises.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..files import user_folder, write_file
from .intensity_curve import Step

_DAY_NS = 86_400 * 10**9
_FRESH_NS = 1800 * 10**9


@dataclass
class Cache:
    """Steps of intensity by source and zone."""

    root: Path = field(default_factory=lambda: user_folder("CACHE", "carbon"))
    now_ns: Callable[[], int] = time.time_ns

    def load(self, source: str, zone: str, start_ns: int, end_ns: int, stale: bool = False) -> list[Step]:
        """The steps known between two moments; with ``stale`` also old forecasts."""
        steps: list[Step] = []
        for day in range(start_ns // _DAY_NS, (end_ns - 1) // _DAY_NS + 1):
            for start, end, figure, fetched in self._read(self._path(source, zone, day)):
                final = end <= fetched or self.now_ns() - fetched < _FRESH_NS
                if (final or stale) and start < end_ns and end > start_ns:
                    steps.append(Step(start, end, figure, source))
        return steps

    def save(self, source: str, zone: str, steps: Iterable[Step]) -> None:
        """Remember steps; newer figures replace older ones."""
        days: dict[int, list[Step]] = {}
        for step in steps:
            days.setdefault(step.start_ns // _DAY_NS, []).append(step)
        for day, fresh in days.items():
            path = self._path(source, zone, day)
            known = {row[0]: row for row in self._read(path)}
            known |= {s.start_ns: (s.start_ns, s.end_ns, s.g_per_kwh, self.now_ns()) for s in fresh}
            self._write(path, [known[start] for start in sorted(known)])

    def _path(self, source: str, zone: str, day: int) -> Path:
        safe = re.sub(r"[^A-Za-z0-9-]", "_", zone)  # a zone may be typed by anyone
        return self.root / source / f"{safe}-{day}.json"

    @staticmethod
    def _read(path: Path) -> list[tuple[int, int, float, int]]:
        with suppress(OSError, ValueError, TypeError, RecursionError):
            rows = json.loads(path.read_bytes())
            return [(int(start), int(end), float(figure), int(fetched)) for start, end, figure, fetched in rows]
        return []

    @staticmethod
    def _write(path: Path, rows: list[tuple[int, int, float, int]]) -> None:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, json.dumps(rows))
