"""The machine's devices, live, without running anything: ``wattribute.monitor`` and the verb ``monitor``.

The same flow as ``run``: a sampler's process reads the meters and observers get its statuses, made by ``status``.
With ``output`` its journal becomes an ordinary recording, also when we are killed; without, nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import OptionError, names_keywords
from ..files import temporary_folder
from ..model import Summary
from ..model.status import Status
from ..outputs.timeseries.series import MONITOR
from ..recorders import clocks
from ..recorders.command import CommandEnd, CommandRecording, surroundings
from ..recorders.regions import FOLDER
from ..recorders.sampling import Sampling, check_interval, recording_folder
from .followers import RunFollower, followed
from .status import CountFolder, StatusObservers

LIVE_S = 1.0  # between two statuses, unless an interval was asked for
LEAST_LIVE_S = 0.1
_LOOK_S = 0.25  # a signal may have reached another thread: look for the end this often


@dataclass(frozen=True)
class MonitorResult:
    """How monitoring went: the last status (None when there was none), and the recording's folder and summary."""

    last: Status | None
    folder: Path | None = None
    summary: Summary | None = None
    trouble: tuple[str, ...] = ()


@names_keywords
def monitor(
    output: str | os.PathLike[str] | None = None,
    *,
    meters: Sequence[str] = (),
    interval_s: float | None = None,
    duration_s: float | None = None,
    zone: str | None = None,
    intensity: float | str | None = None,
    per: str | None = None,
    counts: str | os.PathLike[str] | None = None,
    observers: Sequence[Callable[[Status], None]] = (),
    followers: Sequence[RunFollower] = (),
    stop: threading.Event | None = None,
) -> MonitorResult:
    """Meter the machine until ``stop`` is set or ``duration_s`` is over; observers are called with each status.

    ``interval_s`` is both between readings and between statuses; by default sensors are read as they update and shown
    once a second. Observers run in one thread; one that raises is not called again, and its error is shown at the end.
    ``followers`` read the journal; without ``output`` it is a temporary file. ``meters`` are names, by default all that
    work; ``zone`` and ``intensity`` are those of :func:`wattribute.emissions`. ``per`` is a unit of work that programs
    count meanwhile, into the folder ``counts`` that their ``WATTRIBUTE_REGIONS`` names (ours, by default).
    """
    _check(interval_s, duration_s)
    from ..carbon import check

    check(zone, intensity)
    stop = stop or threading.Event()
    audience = StatusObservers(observers, zone, intensity, _counted(per, counts))
    with _folder(output, bool(followers)) as folder:
        with followed(followers, folder or Path(), audience.trouble, forget=output is None):
            sampling = _sampled(folder, meters, interval_s, duration_s, zone, audience, stop)
        if output is not None and folder is not None:
            return _kept(sampling, folder, audience, zone, intensity)
    failed = [f"sampling stopped: {sampling.failure}"] if sampling.failure else []
    return MonitorResult(audience.last, trouble=(*audience.trouble, *failed))


def _counted(per: str | None, counts: str | os.PathLike[str] | None) -> CountFolder | None:
    if per is None:
        if counts is not None:
            raise OptionError("counts are shown per unit of work: name it with per=UNIT (--per UNIT)")
        return None
    folder = counts or os.environ.get(FOLDER)
    if not folder or not Path(folder).is_dir():
        raise OptionError(
            f"--per {per}: name the folder that programs count into with --counts DIR, and start them with {FOLDER}=DIR"
        )
    return CountFolder(folder, per)


@contextlib.contextmanager
def _folder(output: str | os.PathLike[str] | None, needed: bool) -> Iterator[Path | None]:
    """Where the journal goes: what was asked for, a temporary folder where one is needed, or nowhere."""
    if output is not None or not needed:
        yield None if output is None else recording_folder(Path(output))
        return
    with temporary_folder() as scratch:
        yield recording_folder(scratch / "monitor.watt")


def _sampled(
    folder: Path | None,
    meters: Sequence[str],
    interval_s: float | None,
    duration_s: float | None,
    zone: str | None,
    audience: StatusObservers,
    stop: threading.Event,
) -> Sampling:
    """Sample until the end."""
    about = {**surroundings(), "source": MONITOR, "clock": clocks.stamp()}
    about |= {"name": f"monitor of {about['host']}", "command": ["monitor"]} | ({"zone": zone} if zone else {})
    live_s = LIVE_S if interval_s is None else max(LEAST_LIVE_S, interval_s)
    sampling = Sampling(folder, meters, interval_s, [audience], live_s=live_s, about=about)
    try:
        sampling.start(unmetered=False)
    except BaseException:
        if folder is not None:
            sampling.clean()
            folder.rmdir()
        raise
    start_ns = time.monotonic_ns()
    sampling.tell({"start": start_ns, "pid": os.getpid()})
    audience.begin(start_ns)
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


def _kept(
    sampling: Sampling, folder: Path, audience: StatusObservers, zone: str | None, intensity: float | str | None
) -> MonitorResult:
    """Make an ordinary recording of the journal, as ``run`` does."""
    from .run import finished

    run = finished(CommandRecording(CommandEnd(0, 0, 0), sampling), folder, audience.trouble, zone, intensity, {})
    return MonitorResult(audience.last, folder, run.summary, run.trouble)
