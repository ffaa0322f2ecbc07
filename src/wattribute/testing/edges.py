"""Regions on a simulated RAPL: the sampler, the regions' file and a powercap tree are real, only the clock is not.

``alternating`` records two regions that take turns, on a counter that moves every millisecond, and says what was true.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ..journal.layouts import COUNTERS
from ..meters.rapl import Rapl
from ..model import Recording
from ..recorders import regions
from ..recorders.regions import Region, region
from .sampling import SECOND, Script, Time, sample
from .simulation import Wave

RANGE_UJ = 262_143_328_850
_UPDATE_NS = 1_000_000


class PowercapClock(Time):
    """A clock that keeps a powercap tree up to date: whoever asks for the time and then reads finds what is due."""

    def __init__(self, root: Path, wave: Wave, base_uj: int = 0) -> None:
        super().__init__()
        self._wave, self._base_uj = wave, base_uj
        zone = root / "class/powercap/intel-rapl:0"
        zone.mkdir(parents=True)
        (zone / "name").write_text("package-0\n")
        (zone / "max_energy_range_uj").write_text(f"{RANGE_UJ}\n")
        self.path = zone / "energy_uj"
        self()

    def energy_j(self, at_ns: int) -> float:
        return float(self._wave.energy_j(at_ns / SECOND))

    def __call__(self) -> int:
        value = self._base_uj + int(1e6 * self.energy_j(self.now_ns // _UPDATE_NS * _UPDATE_NS))
        self.path.write_text(f"{value % RANGE_UJ:020d}\n")
        return self.now_ns


@dataclass
class MarkingScript(Script):
    """A child that marks regions: one ends where the next begins, every ``length_s``."""

    names: tuple[str, str] = ("strong", "weak")
    length_s: float = 0.02
    open: Region | None = field(default=None)
    edges_ns: list[int] = field(default_factory=list)

    def wait(self, until_ns: int) -> list[dict[str, Any]] | None:
        length_ns = int(self.length_s * SECOND)
        while len(self.messages) == 1:  # the child lives
            first_ns = -(-self.time.now_ns // (2 * length_ns)) * 2 * length_ns
            edge_ns = self.edges_ns[-1] + length_ns if self.edges_ns else first_ns
            if edge_ns > min(until_ns, self.end_ns):
                break
            self.time.now_ns = max(self.time.now_ns, edge_ns)
            if self.open is not None:
                self.open.__exit__(None, None, None)
            self.open = region(self.names[len(self.edges_ns) % 2])
            self.open.__enter__()
            self.edges_ns.append(edge_ns)
        if self.open is not None and self.messages and until_ns >= self.end_ns:
            self.time.now_ns = max(self.time.now_ns, self.end_ns)
            self.open.__exit__(None, None, None)
            self.open = None
        return super().wait(until_ns)


@dataclass(frozen=True)
class Alternation:
    """A recording of regions that took turns, and the true energy of each name."""

    recording: Recording
    true_j: dict[str, float]


def alternating(
    folder: Path, length_s: float, edges: bool = True, base_uj: int = 0, life_s: float = 2.0, strong_w: float = 78.0
) -> Alternation:
    """Record ``strong`` and ``weak`` (30 W) in turn; without ``edges`` only the sampler reads the counter."""
    clock = PowercapClock(folder / "sys", Wave(strong_w, 30.0, 2 * length_s, 0.5), base_uj)
    parts = folder / "regions"
    parts.mkdir()
    if edges:
        (parts / COUNTERS).write_text(f"{clock.path}\n")
    meter = Rapl(str(folder / "sys"), clock)
    if not meter.available():
        raise OSError(f"{clock.path} cannot be read")
    script = MarkingScript(clock, life_s, length_s=length_s)
    with patch.object(regions, "monotonic_ns", clock):
        regions.start(str(parts))
        try:
            recording = sample(folder, [meter], script, regions=parts)
        finally:
            regions.stop()
            meter.close()
    os.unlink(folder / "journal")
    true = dict.fromkeys(script.names, 0.0)
    (location,) = recording.spans.locations()
    spans, origin = recording.spans.spans(location), recording.clock.offset_ticks
    for frame, begin, end in zip(spans.frame, spans.start, spans.end, strict=True):
        joules = clock.energy_j(int(end) + origin) - clock.energy_j(int(begin) + origin)
        true[recording.frames.name[frame]] += joules
    return Alternation(recording, true)
