"""The power of a machine as series, for servers that are pushed to and for scrapers: what ``processes`` says now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from ..model import Device
from ..model.status import DeviceStatus
from ..outputs.timeseries.series import POWER, PROCESS_POWER, STATIC_POWER, Labels, Series, clean
from .processes import SCAN_NS, ProcessPowers, floors_w


class PowerSplit:
    """The power of this machine as series: what processes draw of it, and what it draws at rest."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._powers: dict[Labels, Series] = {}
        self._processes: ProcessPowers | None = None
        self._at = 0

    def series(self, new: Iterable[Series], devices: Mapping[str, Device]) -> list[Series]:
        """The split after these series of devices have come, at most once a second."""
        self._powers |= {each.labels: each for each in new if each.metric is POWER}
        powers = list(self._powers.values())
        at_ns = max((int(each.times_ns[-1]) for each in powers), default=0)
        if at_ns - self._at < SCAN_NS:
            return []
        self._at = at_ns
        if self._processes is None:
            host = dict(powers[0].labels).get("host", "")
            self._processes = ProcessPowers(floors_w(devices, host), self._proc)
        known = []
        for each in powers:
            labels, power_w = dict(each.labels), float(each.values[-1])
            known.append(DeviceStatus(labels["device"], labels["kind"], power_w=power_w, apart=labels.get("apart", "")))
        common = {name: value for name, value in powers[0].labels if name in ("host", "run", "zone")}
        watts = [(PROCESS_POWER, {"process": clean(row.name)}, row.power_w) for row in self._processes(at_ns, known)]
        watts.append((STATIC_POWER, {}, self._processes.static_w(known)))
        times_ns = np.array([at_ns], np.int64)
        return [
            Series(metric, tuple(sorted((common | more).items())), times_ns, np.array([power_w]), at_ns)
            for metric, more, power_w in watts
            if power_w is not None
        ]
