"""The engine of a cluster: groups of location files are Dask tasks; sums per row come back.

What every task needs (tables, the span source, which names files) is scattered once. A task names its devices' readings
and its files, which the worker reads itself after checking that they, and its own code, are the client's. Busy
intervals and curves of a group that several tasks share go from worker to worker. Sums are exact, so that they have the
same bits wherever and however often they were computed: a lost worker costs time and changes nothing.
"""

from __future__ import annotations

import errno
import pickle
import shutil
from asyncio import CancelledError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from ..alignment.sanity import Signals
from ..archive import write_location
from ..attribution import rollup
from ..attribution.join import DeviceCurves, GroupResult, books, busy, curves, parts, users
from ..attribution.rollup import Grouping, RowSums
from ..attribution.rows import SpanFolder, write_rows
from ..errors import ClusterError, NoDataError, OutputError, WattributeError
from ..model import Intervals, Problem, Recording
from . import cluster, identity
from .identity import CopyError, Files
from .readings import Readings, SignalSurvey, gather, hosts, install, look, of_signals, packed, remote
from .tasks import TASKS_PER_SLOT, Large, Task, batches, cut
from .work import LINES, EngineResult, Work, reduce, solve, together

RETRIES = 2  # of a task that failed; Dask itself repeats what a dead worker was doing
ROUNDS = 3  # how often what was scattered may be lost with its workers
_UNREADABLE_KINDS = ("missing", "permission", "io")

T = TypeVar("T")
P = ParamSpec("P")


def reach(where: str, threads: int | None) -> None:
    """Connect to a cluster and check its workers."""
    with cluster.connected(where, threads) as client:
        cluster.check(client, threads)


def run(work: Work) -> EngineResult:
    """Solve every group on the workers of a cluster."""
    with cluster.connected(work.where, work.threads) as client:
        tasks = cut(work, cluster.check(client, work.threads))
        whole = Task(work.plan, (), tuple(range(len(work.plan.sources))), 0)
        locations = [*whole.locations, *_recorders(whole)]
        return _identified(work.recording.spans, locations, lambda files: _Run(client, work, tasks, files).finish())


def survey(where: str, threads: int | None, readings: Readings, locations: Sequence[int]) -> Signals:
    """The signals of locations, whose readings are read by the workers and stay in their files."""
    with cluster.connected(where, threads) as client:
        slots = cluster.check(client, threads)
        shares = hosts(readings, locations, slots * TASKS_PER_SLOT)
        common = client.scatter(packed((identity.code(), readings)), broadcast=True, hash=False)

        def ask(files: Files) -> list[SignalSurvey]:
            futures = [
                client.submit(_look, common, share, _some(files, share), pure=False, retries=RETRIES)
                for share in shares
            ]
            return [pickle.loads(answer) for _, answer in _completed(client, futures) if answer is not None]

        answers = _identified(readings.source, locations, ask)
    return gather(readings, answers, readings.source.absorb)


def write_spans(
    where: str, threads: int | None, folder: Path, recording: Recording, _: int, progress: Any
) -> Recording:
    """Write the spans of every location into a folder of an archive; see ``engines.convert``."""
    locations = list(recording.spans.locations())
    with cluster.connected(where, threads) as client:
        each = [[location] for location in locations]
        tasks = batches(recording, each, cluster.check(client, threads) * TASKS_PER_SLOT)

        def ask(files: Files) -> list[Problem]:
            return _write_batches(client, folder, recording, tasks, files, progress)

        noticed = _identified(recording.spans, locations, ask)
    for leftover in folder.glob(".*"):  # of a worker that died
        shutil.rmtree(leftover, ignore_errors=True)
    noticed.sort(key=lambda problem: -1 if problem.location is None else problem.location)
    return replace(recording, noticed=(*recording.noticed, *noticed))


def _write_batches(
    client: Any, folder: Path, recording: Recording, tasks: Sequence[list[int]], files: Files, progress: Any
) -> list[Problem]:
    """Have batches of locations written, those that were lost with their workers again."""
    noticed: list[Problem] = []
    written, left = 0, tasks
    for attempt in range(RETRIES + 1):
        if attempt:
            cluster.check(client)  # all may have died, and be starting again
        common = client.scatter(packed((identity.code(), recording.spans)), broadcast=True, hash=False)
        futures = {}
        for batch in left:
            own = _some(files, batch)
            futures[client.submit(_write, common, str(folder), batch, own, pure=False, retries=RETRIES)] = batch
        left = []
        for future, answer in _completed(client, list(futures), cancelled=attempt < RETRIES):
            if answer is None:  # what was sent to the workers died with one of them: send it again
                left.append(futures[future])
                continue
            decoded, problems = pickle.loads(answer)
            if decoded is None:
                noticed += problems
            else:
                recording.spans.absorb(decoded)  # type: ignore[attr-defined]
            written += 1
            if progress:
                progress(written, len(tasks))
        if not left:
            break
    return noticed


def _identified(source: Any, locations: Sequence[int], ask: Callable[[Files], T]) -> T:
    """Ask with the identities of files; if a worker has what may be copies, again with hashes of all bytes."""
    files = identity.of_locations(source, locations)
    try:
        return ask(files)
    except CopyError:
        return ask(identity.with_content(source, files))


def _some(files: Files, locations: Iterable[int]) -> Files:
    return {location: files[location] for location in locations if location in files}


def _completed(client: Any, futures: Sequence[Any], cancelled: bool = False) -> Iterator[tuple[Any, bytes | None]]:
    """Futures with their answers as they come; an error of ours as it is, any other as one of the cluster.

    With ``cancelled`` a future that Dask gave up has the answer None.
    """
    from distributed import as_completed

    try:
        for future in as_completed(futures, loop=client.loop):
            if cancelled and future.status in ("cancelled", "lost"):
                yield future, None
                continue
            yield future, future.result()
            future.release()
    except WattributeError:
        raise
    except (Exception, CancelledError) as error:  # Dask has no one kind for what can happen on the way
        raise ClusterError(f"the Dask cluster cannot do the work ({_reason(error)})") from error


def _reason(error: BaseException) -> str:
    """One line about an error of Dask's; one of a task that was cancelled has a reason."""
    return getattr(error, "reason", "") or f"{type(error).__name__}: {error}".splitlines()[0]


# ------------------------------------------------------------------------------------------------------- on a worker


class Common(NamedTuple):
    """What every task needs."""

    recording: Recording
    spans: SpanFolder | None
    code: str
    places: tuple[Any, Any]  # Grouping.location and Grouping.shown
    token: str = ""  # of the readings
    readings: Readings | None = None


class Order(NamedTuple):
    """A task on its way: what is asked, how it is added up, and which files it is asked of."""

    task: Task
    how: Grouping
    files: Files


def _task(function: Callable[P, T]) -> Callable[P, T]:
    """A task: an error of its worker's disk names the worker, whose disk need not be the client's."""

    @wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return function(*arguments, **options)
        except OSError as error:
            if not isinstance(error, OutputError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OutputError(f"worker {cluster.here()}: {error}") from error

    return run


@_task
def _look(data: bytes, locations: Sequence[int], files: Files) -> bytes:
    """Survey the signals of some locations."""
    code, readings = _unpacked(data)
    _check(code, readings.source, files, locations)
    surveyed = look(readings, locations)
    _seen(surveyed.problems, locations)
    return packed(surveyed)


@_task
def _write(data: bytes, folder: str, locations: Sequence[int], files: Files) -> bytes:
    """Some locations' files of an archive; each gets its name when complete, also if several workers write it."""
    code, source = _unpacked(data)
    _check(code, source, files, locations)
    _check_folder(folder)
    source = source.resumed() if hasattr(source, "resumed") else source
    with TemporaryDirectory(prefix=".", dir=folder) as own:
        for location in locations:
            write_location(Path(own), location, source.spans(location))
            written = Path(own) / f"{location}.parquet"
            if written.exists():
                written.replace(Path(folder) / written.name)
    problems = _seen(source.problems(), locations)
    return packed((source.decoded() if hasattr(source, "decoded") else None, problems))


@lru_cache(2)
def _unpacked(data: bytes) -> Any:
    """What all tasks of a question have in common, made of its bytes once."""
    return pickle.loads(data)


def _check(code: str, source: Any, files: Files, locations: Sequence[int]) -> None:
    """Refuse work for which this worker has other code or other files than its client."""
    if identity.code() != code:
        raise ClusterError(f"worker {cluster.here()} {cluster.other_code('')}")
    path = identity.different(source, files, locations)
    if path:
        raise NoDataError(
            f"worker {cluster.here()} has another file than the client under {path} (its size or its bytes differ); "
            "use a file system that all workers see, or copies of the client's files"
        )


def _check_folder(folder: str) -> None:
    if not Path(folder).is_dir():
        raise OutputError(f"the folder {folder} is not there; write to a file system that all workers see")


def _opened(data: bytes, ordered: bytes, locations: Sequence[int] | None = None) -> tuple[Common, Task, Grouping]:
    """What a task needs and asks, if this worker has the code and the files of its client."""
    common: Common = _unpacked(data)
    install(common.token, common.readings)
    if common.spans is not None:
        _check_folder(common.spans.path)
    order: Order = pickle.loads(ordered)
    chosen = order.task.locations if locations is None else locations
    _check(common.code, common.recording.spans, order.files, [*chosen, *_recorders(order.task)])
    return common, order.task, order.how._replace(location=common.places[0], shown=common.places[1])


def _recorders(task: Task) -> list[int]:
    """The locations whose files hold readings that a task has to read."""
    signals = [signal for source in task.plan.sources for signal in (source.signal, *source.parts)]
    return sorted({signal.location for signal in signals if remote(signal) is not None})


@_task
def _solved(data: bytes, order: bytes) -> bytes:
    """Solve whole groups."""
    common, task, how = _opened(data, order)
    work = _work(common, task)
    sums = reduce(work, (solve(work, group) for group in together(work, task.groups)), how, task.sources)
    return _answer(rollup.merged(task.plan.keys, sums), _seen(common.recording.spans.problems(), task.locations))


@_task
def _busy(data: bytes, order: bytes, locations: Sequence[int]) -> dict[int, Intervals]:
    """Some locations of a large group; what comes out stays on the workers."""
    common, task, _ = _opened(data, order, locations)
    intervals = busy(common.recording, task.plan, task.groups[0], locations)
    _seen(common.recording.spans.problems(), locations)
    return intervals


@_task
def _curves(data: bytes, order: bytes, *known: Mapping[int, Intervals]) -> dict[int, DeviceCurves]:
    """Build the curves of a large group."""
    common, task, _ = _opened(data, order, ())
    when = {location: intervals for some in known for location, intervals in some.items()}
    return curves(common.recording, task.plan, task.groups[0], known=when)


@_task
def _parts(data: bytes, order: bytes, by_row: Mapping[int, DeviceCurves], locations: Sequence[int]) -> bytes:
    """Some locations of a large group against its curves; the books come with the first of them."""
    common, task, how = _opened(data, order, locations)
    work = _work(common, task)
    solved = GroupResult(parts(work.recording, work.plan, by_row, locations), [])
    if work.spans is not None:
        write_rows(work.recording, work.plan, by_row, locations, work.spans)
    if locations[0] == users(task.plan, task.groups[0])[0]:
        solved = solved._replace(books=books(by_row))
    return _answer(rollup.per_device(task.plan, how, [solved]), _seen(common.recording.spans.problems(), locations))


def _whole(data: bytes, order: bytes, *shares: bytes) -> bytes:
    """Combine the parts of a large group."""
    _, task, how = _opened(data, order, ())
    answers = [pickle.loads(share) for share in shares]
    whole = rollup.merged(task.plan.keys, [reduced for reduced, _ in answers])
    problems = [problem for _, some in answers for problem in some]
    return _answer(rollup.collapsed(how, whole, task.sources), problems)


def _work(common: Common, task: Task) -> Work:
    spans = None if common.spans is None else replace(common.spans, sources=task.sources)
    return Work(common.recording, task.plan, task.groups, 1, "", spans)


def _answer(reduced: RowSums, problems: Sequence[Problem]) -> bytes:
    """Pack an answer as bytes: they travel ten times as fast as single arrays."""
    return pickle.dumps((reduced, problems), protocol=5)


def _seen(problems: Sequence[Problem], locations: Sequence[int]) -> list[Problem]:
    """Problems from decoding these locations; an error if the client has files that this worker cannot read."""
    chosen = set(locations)
    relevant = [problem for problem in problems if problem.location in chosen]
    for problem in relevant:
        if problem.kind in _UNREADABLE_KINDS:
            raise NoDataError(
                f"worker {cluster.here()} cannot read the recording: {problem.message}; it has to be on a file system "
                "that all workers see, under the same absolute path"
            )
    return relevant


# ------------------------------------------------------------------------------------------------------ on the client


class _Run:
    """One question on its way: what was sent, what came back, what was lost and goes again."""

    def __init__(self, client: Any, work: Work, tasks: Sequence[Task | Large], files: Files) -> None:
        self.client, self.work = client, work
        self.left: dict[int, Task | Large] = dict(enumerate(tasks))
        self.how = rollup.grouping(work.recording, work.plan)
        self.files = files
        self.sums: list[RowSums] = []
        self.problems: list[Problem] = []
        self.sent: dict[Any, int] = {}

    def finish(self) -> EngineResult:
        """Send the tasks, gather answers, resend lost tasks; report those that stay lost."""
        reason, there = "", True
        try:
            for _ in range(ROUNDS):
                reason = self._round()
                there = not self.left or cluster.answers(self.client)
                if not (self.left and there):
                    break
        except BaseException:  # Ctrl-C among them: nothing waits for these any more
            if cluster.answers(self.client):
                self.client.cancel(list(self.sent), force=True)
            raise
        if self.left and there:
            raise ClusterError(f"the Dask cluster cannot do the work ({reason or 'its workers die of it'})")
        if self.left and not self.sums:
            raise ClusterError(f"the Dask scheduler went away before anything was finished ({reason})")
        self.problems.sort(key=lambda problem: -1 if problem.location is None else problem.location)
        return EngineResult(
            self.sums, list(dict.fromkeys(self.problems)), self._unfinished(reason) if self.left else ""
        )

    def _round(self) -> str:
        """Send the remaining tasks and gather answers; return why some are missing."""
        from distributed import as_completed

        reason = ""
        try:
            try:
                self.client.wait_for_workers(1, timeout=cluster.WORKERS_S)  # all may have died, and be starting again
            except cluster.TIMEOUTS:
                return f"its workers died, and none came within {cluster.WORKERS_S} s"
            self.sent = self._send()
            for future in as_completed(list(self.sent), loop=self.client.loop):
                reason = self._take(future) or reason
        except WattributeError:
            raise
        except (Exception, CancelledError) as error:  # Dask has no one kind for what can happen on the way
            reason = _reason(error)
        return reason

    def _send(self) -> dict[Any, int]:
        """Futures of answers, and which task each is."""
        submit = self.client.submit
        work = self.work
        # a task brings its own signals; those that tell a load may be of any device
        question = work.plan.question
        signals = work.recording.signals if question.share == "load" or question.per is not None else ()
        slim = replace(work.recording, signals=signals, metadata={"name": work.recording.metadata.get("name", "")})
        readings = of_signals(work.recording.signals)
        data = packed(Common(slim, work.spans, identity.code(), (self.how.location, self.how.shown), *readings))
        common = self.client.scatter(data, broadcast=True, hash=False)
        orders = [self._order(one.task if isinstance(one, Large) else one) for one in self.left.values()]
        sent: dict[Any, int] = {}
        for (number, one), order in zip(self.left.items(), self.client.scatter(orders, hash=False), strict=True):
            how = {"pure": False, "retries": RETRIES, "priority": -number}  # the largest first
            if isinstance(one, Task):
                sent[submit(_solved, common, order, **how)] = number
                continue
            known = [submit(_busy, common, order, some, **how) for some in one.asked]
            curves = submit(_curves, common, order, *known, **how)
            shares = [submit(_parts, common, order, curves, some, **how) for some in one.shares]
            sent[submit(_whole, common, order, *shares, **how)] = number
        return sent

    def _order(self, task: Task) -> bytes:
        how = self.how.of(task.sources)._replace(location=np.empty(0, np.int64), shown=np.empty(0, bool))
        needed = (*task.locations, *_recorders(task))
        return packed(Order(task, how, _some(self.files, needed)))

    def _take(self, future: Any) -> str:
        """Keep the answer of a task, or the reason why it was lost."""
        number = self.sent[future]
        if future.status == "error":
            error = future.exception()
            if isinstance(error, WattributeError):
                raise error
            return _reason(error)
        try:
            answer = future.result()
        except (OSError, CancelledError) as error:  # its worker died with it, or the scheduler did
            return _reason(error)
        future.release()
        reduced, problems = pickle.loads(answer)  # made by our own workers a moment ago
        wrong = rollup.unbalanced(self.work.plan, reduced)
        if wrong:
            raise ClusterError(
                f"a worker's answer does not balance ({wrong}); run it again, and check that worker's memory"
            )
        self.problems += problems
        self.sums.append(reduced)
        if len(self.sums) > 1 and sum(map(len, self.sums[1:])) > max(LINES, len(self.sums[0])):
            self.sums = [rollup.merged(self.work.plan.keys, self.sums)]  # rows are held, not rows of every task
        del self.left[number]
        return ""

    def _unfinished(self, reason: str) -> str:
        tasks = [one.task if isinstance(one, Large) else one for one in self.left.values()]
        lost = {location for task in tasks for location in task.locations}
        whole = {user for source in self.work.plan.sources for user in source.users}
        return (
            f"{len(lost)} of {len(whole)} locations are not in these numbers: the Dask scheduler went away ({reason}); "
            "the rest is whole"
        )
