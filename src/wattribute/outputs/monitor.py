"""The machine's devices, live, without running anything: ``wattribute.monitor`` and the verb ``monitor``.

The same flow as ``run``: a sampler's process reads the meters and observers get its statuses, made richer by ``live``.
With ``output`` its journal becomes an ordinary recording, also when we are killed; without, nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..recorders import clocks
from ..recorders.command import Ended, Recorded, surroundings
from ..recorders.sampling import Sampling, check_interval, new_folder
from .followers import Following, followed
from .live import Live, Status

LIVE_S = 1.0  # between two statuses, unless an interval was asked for
LEAST_LIVE_S = 0.1
_LOOK_S = 0.25  # a signal may have reached another thread: look for the end this often


@dataclass(frozen=True)
class Monitored:
    """How monitoring went: the last status (None when there was none), and the recording's folder and summary."""

    last: Status | None
    folder: Path | None = None
    summary: Mapping[str, Any] | None = None
    trouble: tuple[str, ...] = ()


def monitor(
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] = (),
    interval_s: float | None = None,
    duration_s: float | None = None,
    zone: str | None = None,
    intensity: float | str | None = None,
    observers: Sequence[Callable[[Status], None]] = (),
    followers: Sequence[Following] = (),
    stop: threading.Event | None = None,
) -> Monitored:
    """Meter the machine until ``stop`` is set or ``duration_s`` is over; observers are called with each status.

    ``interval_s`` is both between readings and between statuses; by default sensors are read as they update and told
    once a second. Observers run in one thread; one that raises is not called again, and its error is told at the end.
    Followers read the journal; without ``output`` it is a temporary file.
    """
    _check(interval_s, duration_s)
    from ..carbon import check

    check(zone, intensity)
    stop = stop or threading.Event()
    audience = _Audience(observers)
    with _folder(output, bool(followers)) as folder:
        with followed(followers, folder or Path(), audience.trouble, forget=output is None):
            sampling = _sampled(folder, meters, interval_s, duration_s, zone, intensity, audience, stop)
        if output is not None and folder is not None:
            return _kept(sampling, folder, audience, zone, intensity)
    failed = [f"sampling stopped: {sampling.failure}"] if sampling.failure else []
    return Monitored(audience.last, trouble=(*audience.trouble, *failed))


@contextlib.contextmanager
def _folder(output: str | os.PathLike[str] | None, needed: bool) -> Iterator[Path | None]:
    """Where the journal goes: what was asked for, a temporary folder where one is needed, or nowhere."""
    if output is not None or not needed:
        yield None if output is None else new_folder(Path(output))
        return
    with tempfile.TemporaryDirectory(prefix="wattribute-") as scratch:
        yield new_folder(Path(scratch) / "monitor.watt")


def _sampled(
    folder: Path | None,
    meters: Sequence[str],
    interval_s: float | None,
    duration_s: float | None,
    zone: str | None,
    intensity: float | str | None,
    audience: _Audience,
    stop: threading.Event,
) -> Sampling:
    """Sample until the end."""
    about = {**surroundings(), "source": "wattribute monitor", "clock": clocks.stamp()}
    about |= {"name": f"monitor of {about['host']}", "command": ["monitor"]} | ({"zone": zone} if zone else {})
    live_s = LIVE_S if interval_s is None else max(LEAST_LIVE_S, interval_s)
    sampling = Sampling(folder, meters, interval_s, [audience], live_s=live_s, about=about)
    try:
        sampling.start()
    except BaseException:
        if folder is not None:
            sampling.clean()
            folder.rmdir()
        raise
    start_ns = time.monotonic_ns()
    sampling.tell({"start": start_ns, "pid": os.getpid()})
    audience.open(Live(sampling.about, start_ns, zone, intensity), start_ns)
    end_s = float("inf") if duration_s is None else start_ns / 1e9 + duration_s
    while not stop.is_set() and sampling.alive and (left_s := end_s - time.monotonic()) > 0:
        stop.wait(min(_LOOK_S, left_s))
    sampling.tell({"end": time.monotonic_ns(), "exit_code": 0})
    sampling.finish()
    return sampling


def _check(interval_s: float | None, duration_s: float | None) -> None:
    check_interval(interval_s)
    if duration_s is not None and not duration_s > 0:
        raise OptionError(f"a duration of {duration_s:g} s; choose more than 0")


class _Audience:
    """The sampler's one observer, in its thread: makes statuses richer and hands them to all the others."""

    def __init__(self, observers: Sequence[Callable[[Status], None]]) -> None:
        self._observers, self._start_ns = list(observers), 0
        self._live: Live | None = None
        self._lock = threading.Lock()
        self.last: Status | None = None
        self.trouble: list[str] = []

    def open(self, live: Live, start_ns: int) -> None:
        with self._lock:
            self._live, self._start_ns = live, start_ns

    def __call__(self, status: Status) -> None:
        with self._lock:
            if self._live is None or status["at"] < self._start_ns:
                return
            self.last = self._live(status)
        for observer in tuple(self._observers):
            try:
                observer(self.last)
            except Exception as error:  # a screen that fails must not end the recording
                self._observers.remove(observer)
                self.trouble.append(f"showing or sending failed: {error!r}")


def _kept(
    sampling: Sampling, folder: Path, audience: _Audience, zone: str | None, intensity: float | str | None
) -> Monitored:
    """Make an ordinary recording of the journal, as ``run`` does."""
    from .run import finished

    run = finished(Recorded(Ended(0, 0, 0), sampling), folder, audience.trouble, zone, intensity, {})
    return Monitored(audience.last, folder, run.summary, run.trouble)
