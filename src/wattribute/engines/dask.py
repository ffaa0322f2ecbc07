"""The engine of a cluster: groups of location files are Dask tasks; roll-ups come back, reduced in location order.

What every task needs (tables, the span source, which names files) is scattered once; a task brings its own devices'
readings; what comes back is bytes of roll-ups. Busy intervals and curves of a group that several tasks share go from
worker to worker. A location's sums never depend on where or how often they were computed, so a lost worker costs time
and changes nothing. Workers read the trace themselves, so all of them have to see it under the same path.
"""

from __future__ import annotations

import pickle
from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..attribution.join import DeviceCurves, Solved, books, busy, curves, parts, users
from ..attribution.rows import SpanFolder, write_rows
from ..errors import ClusterError, NoDataError, WattributeError
from ..model import Intervals, Problem, Recording
from . import cluster
from .tasks import Large, Task, cut
from .work import Done, Work, solve

RETRIES = 2  # of a task that failed; Dask itself repeats what a dead worker was doing
ROUNDS = 3  # how often what was scattered may be lost with its workers
_UNSEEN = ("missing", "permission", "io")


def run(work: Work) -> Done:
    """Solve every group on the workers of a cluster."""
    with cluster.connected(work.where, work.threads) as client:
        slots = cluster.check(client)
        return _Run(client, work, cut(work, slots)).finish()


# ------------------------------------------------------------------------------------------------------- on a worker


class Common(NamedTuple):
    """What every task needs."""

    recording: Recording
    spans: SpanFolder | None


def _solved(common: Common, task: Task) -> bytes:
    """Whole groups."""
    work = _work(common, task)
    found = [solve(work, group) for group in task.groups]
    return _answer(common, task, users(task.plan, range(len(task.sources))), found)


def _busy(common: Common, task: Task, locations: Sequence[int]) -> dict[int, Intervals]:
    """Some locations of a large group; what comes out stays on the workers."""
    found = busy(common.recording, task.plan, task.groups[0], locations)
    _seen(common, locations)
    return found


def _curves(common: Common, task: Task, *known: Mapping[int, Intervals]) -> dict[int, DeviceCurves]:
    """A large group's curves; the signals they were made of stay behind."""
    when = {location: found for some in known for location, found in some.items()}
    return curves(common.recording, task.plan, task.groups[0], known=when)


def _parts(common: Common, task: Task, found: Mapping[int, DeviceCurves], locations: Sequence[int]) -> bytes:
    """Some locations of a large group against its curves; the books come with the first of them."""
    work = _work(common, task)
    solved = Solved(parts(work.recording, work.plan, found, locations), [])
    if work.spans is not None:
        write_rows(work.recording, work.plan, found, locations, work.spans)
    if locations[0] == users(task.plan, task.groups[0])[0]:
        solved = solved._replace(books=books(found))
    return _answer(common, task, locations, [solved])


def _work(common: Common, task: Task) -> Work:
    spans = None if common.spans is None else replace(common.spans, sources=task.sources)
    return Work(common.recording, task.plan, task.groups, 1, "", spans)


def _answer(common: Common, task: Task, locations: Sequence[int], found: Sequence[Solved]) -> bytes:
    """Bytes travel ten times as fast as the arrays one by one."""
    problems = _seen(common, locations)
    return pickle.dumps(([task.told(solved) for solved in found], problems), protocol=5)


def _seen(common: Common, locations: Sequence[int]) -> list[Problem]:
    """What decoding these locations told; files that are there for the client and not here are an error."""
    chosen = set(locations)
    told = [problem for problem in common.recording.spans.problems() if problem.location in chosen]
    for problem in told:
        if problem.kind in _UNSEEN:
            raise NoDataError(
                f"worker {cluster.here()} cannot read the recording: {problem.message}; it has to be on a file system "
                "that all workers see, under the same absolute path"
            )
    return told


# ------------------------------------------------------------------------------------------------------ on the client


class _Run:
    """One question on its way: what was sent, what came back, what was lost and goes again."""

    def __init__(self, client: Any, work: Work, tasks: Sequence[Task | Large]) -> None:
        self.client, self.work = client, work
        self.left: dict[int, Task | Large] = dict(enumerate(tasks))
        self.answers: dict[tuple[int, int], bytes] = {}
        self.sent: dict[Any, tuple[int, int]] = {}

    def finish(self) -> Done:
        """Send, gather, send again what was lost; what cannot be had is said."""
        reason, there = "", True
        try:
            for _ in range(ROUNDS):
                reason = self._round()
                there = not self.left or cluster.answers(self.client)
                if not (self.left and there):
                    break
        except BaseException:  # Ctrl-C among them: nobody waits for these any more
            if cluster.answers(self.client):
                self.client.cancel(list(self.sent), force=True)
            raise
        found, problems = self._opened()
        if self.left and there:
            raise ClusterError(f"the Dask cluster cannot do the work ({reason or 'its workers die of it'})")
        if self.left and not found:
            raise ClusterError(f"the Dask scheduler went away before anything was finished ({reason})")
        return Done(found, [*problems, self._unfinished(reason)] if self.left else problems)

    def _round(self) -> str:
        """Send what is left and gather what comes; why not all of it did."""
        from distributed import as_completed

        reason = ""
        try:
            self.sent = self._send()
            for future in as_completed(list(self.sent), loop=self.client.loop):
                reason = self._take(future) or reason
        except WattributeError:
            raise
        except (Exception, CancelledError) as error:  # Dask has no one kind for what can happen on the way
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        return reason

    def _send(self) -> dict[Any, tuple[int, int]]:
        """Futures of answers, and which share of which task each is."""
        submit = self.client.submit
        work = self.work
        # a task brings its own signals; those that tell a load may be anybody's
        signals = work.recording.signals if work.plan.options.share == "load" else ()
        slim = replace(work.recording, signals=signals, metadata={"name": work.recording.metadata.get("name", "")})
        common = self.client.scatter(Common(slim, work.spans), broadcast=True, hash=False)
        tasks = [one.task if isinstance(one, Large) else one for one in self.left.values()]
        sent: dict[Any, tuple[int, int]] = {}
        for (number, one), task in zip(self.left.items(), self.client.scatter(tasks, hash=False), strict=True):
            how = {"pure": False, "retries": RETRIES, "priority": -number}  # the largest first
            if isinstance(one, Task):
                sent[submit(_solved, common, task, **how)] = number, 0
                continue
            known = [submit(_busy, common, task, some, **how) for some in one.asked]
            found = submit(_curves, common, task, *known, **how)
            for share, some in enumerate(one.shares):
                sent[submit(_parts, common, task, found, some, **how)] = number, share
        return sent

    def _take(self, future: Any) -> str:
        """Keep an answer, with whose last one a task is done; or why it was lost on the way."""
        number, share = self.sent[future]
        if future.status == "error":
            error = future.exception()
            if isinstance(error, WattributeError):
                raise error
            return f"{type(error).__name__}: {error}".splitlines()[0]
        try:
            self.answers[number, share] = future.result()
        except (OSError, CancelledError) as error:  # its worker died with it, or the scheduler did
            return str(error) or "the connection to the scheduler was lost"
        future.release()
        one = self.left[number]
        if all((number, i) in self.answers for i in range(len(one.shares) if isinstance(one, Large) else 1)):
            del self.left[number]
        return ""

    def _opened(self) -> tuple[list[Solved], list[Problem]]:
        """All answers in the order of tasks; of a group that was not finished, what has its books."""
        found: list[Solved] = []
        problems: list[Problem] = []
        for key in sorted(self.answers):
            solved, told = pickle.loads(self.answers[key])  # made by our own workers a moment ago
            found += solved
            problems += told
        known = {book.source for solved in found for book in solved.books}
        found = [Solved([part for part in s.parts if known.issuperset(part.sources)], s.books) for s in found]
        problems.sort(key=lambda problem: -1 if problem.location is None else problem.location)
        return found, list(dict.fromkeys(problems))

    def _unfinished(self, reason: str) -> Problem:
        plan = self.work.plan
        lost: list[int] = []
        for number, one in self.left.items():
            if isinstance(one, Large):
                lost += [at for i, some in enumerate(one.shares) if (number, i) not in self.answers for at in some]
            else:
                lost += users(one.plan, range(len(one.sources)))
        whole = len(np.unique([user for source in plan.sources for user in source.users]))
        return Problem(
            "partial",
            f"{len(set(lost))} of {whole} locations are not in these numbers: the Dask scheduler went away ({reason}); "
            "the rest is whole",
        )
