"""The engine of an Arkouda server: spans are read there, and ``arrays`` runs on its arrays.

An archive (``*.watt/``) is read by the server from its partitioned Parquet, so the server has to see it under the same
path; spans of anything else are sent to it. Readings go to the server, busy intervals of shared devices and sums by
location and row come back. What rows per moment would need (bins, readings, statistics, method solve) stays with the
other engines. The client has to be that of the server's release; the one on PyPI is years older than any server.
"""

from __future__ import annotations

import contextlib
import io
import socket
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..archive import ArchivedSpans
from ..attribution.clip import SpanWindow
from ..attribution.join import DeviceCurves, GroupResult, Part, Plan, asked, books, curves, masks, users, with_ranges
from ..attribution.rollup import RowSums, grouping, unbalanced
from ..attribution.rows import write_rows
from ..errors import ClusterError, OptionError, WattributeError
from ..model import Intervals, Recording, Spans
from ..model.spans import spans_of
from . import arrays
from .cluster import within
from .verbs import COLUMNS, Numbers, Verbs
from .work import EngineResult, Work, reduce

if TYPE_CHECKING:
    import polars as pl

_PORT = 5555
_CONNECT_TIMEOUT_S = 5
_HEARTBEAT_TIMEOUT_S = 10  # without a heartbeat, which a busy server has as well, it is gone
_SIGNATURE, _ZMTP = 10, b"\xff\x7f"  # bytes of ZeroMQ's signature; the first and the last of them
# arrays of the client 2026.02.27 took 500 bytes a span and device at the peak of a fold with bounds; sorting takes more
_BYTES_PER_SPAN = 500
_BYTES_PER_CURVE = 100  # of a span, for each device that its location uses
TOGETHER_EVENTS = 4_000_000  # of small groups, which cost more in commands than in work
_RELEASE = (
    "install the one of the server's release: pip install 'arkouda @ git+https://github.com/Bears-R-Us/arkouda@TAG'"
)


class Arkouda:
    """The verbs on a server."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def put(self, array: Numbers) -> Any:
        like = {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64)
        return self.client.array(np.ascontiguousarray(array, like))

    def get(self, array: Any) -> Numbers:
        return np.asarray(array.to_ndarray())

    def read(self, files: Sequence[Path]) -> dict[str, Any]:
        names = [str(file) for file in files]
        columns = self.client.read_parquet(names, datasets=[*COLUMNS], null_handling="none")
        return {name: columns[name] for name in COLUMNS}

    def arange(self, count: int) -> Any:
        return self.client.arange(count)

    def zeros(self, count: int, like: type) -> Any:
        return self.client.zeros(count, dtype={bool: "bool", int: "int64", float: "float64"}[like])

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.client.where(condition, yes, no)

    def join(self, arrays: Sequence[Any]) -> Any:
        some = [array for array in arrays if int(array.size)]
        return self.client.concatenate(some) if some else arrays[0]  # of nothing at all it raises a NameError

    def cumsum(self, array: Any) -> Any:
        return self.client.cumsum(array)

    def search(self, sorted_: Any, values: Any, side: str) -> Any:
        return self.client.searchsorted(sorted_, values, side)

    def order(self, first: Any, second: Any) -> Any:
        return self.client.coargsort([first, second])

    def distinct(self, keys: Any) -> tuple[Numbers, Any]:
        groups = self.client.GroupBy(keys)
        unique = self.get(groups.unique_keys)
        return unique, groups.broadcast(self.client.arange(len(unique)))

    def sums(self, code: Any, size: int, columns: Sequence[Any]) -> list[Numbers]:
        groups = self.client.GroupBy(code)
        at = self.get(groups.unique_keys)
        totals = []
        for column in columns:
            sums = self.get(groups.sum(column)[1])
            whole = np.zeros(size, np.float64 if sums.dtype.kind == "f" else np.int64)
            whole[at] = sums
            totals.append(whole)
        return totals

    def any(self, mask: Any) -> bool:
        return bool(self.client.any(mask))

    def free_bytes(self) -> int | None:
        return int(self.client.get_mem_avail("b"))


class Server:
    """A server that ``attribute(engine="arkouda")`` uses from now on."""

    def __init__(self, verbs: Verbs, address: str) -> None:
        self.verbs, self.address = verbs, address

    def __repr__(self) -> str:
        return f"<Arkouda server {self.address}>"

    def frame(self, table: pl.DataFrame) -> Any:
        """A table of an attribution (``rows``, ``devices``) as an ``ak.DataFrame`` on the server."""
        assert isinstance(self.verbs, Arkouda)
        client = self.verbs.client
        columns = {}
        for name in table.columns:
            values = table.get_column(name)
            if values.dtype.is_numeric() and values.null_count():
                values = values.cast(float).fill_null(float("nan"))
            if not values.dtype.is_numeric() and str(values.dtype) != "Boolean":
                values = values.cast(str).fill_null("")
            columns[name] = client.array(values.to_list() if str(values.dtype) == "String" else values.to_numpy())
        return client.DataFrame(columns)


_current: Server | None = None


def connect(server: str = "localhost", port: int = _PORT) -> Server:
    """Connect to the Arkouda ``server`` at ``port``; ``attribute(…, engine="arkouda")`` then runs there."""
    global _current
    host = server.strip("[]")  # of IPv6, which stand in addresses and in the client's, but not in the system's
    server = f"[{host}]" if ":" in host else host
    address = f"{server}:{port}"
    began = time.monotonic()
    try:
        greeting = _greeting(host, port)
    except (OSError, OverflowError, UnicodeError) as error:  # the latter: a port or a name that cannot be
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ClusterError(f"no Arkouda server at {address} ({why}); start arkouda_server there") from error
    if greeting[:1] + greeting[9:] != _ZMTP:
        answer = "it says nothing" if not greeting else "it speaks another protocol"
        raise ClusterError(f"{address} does not answer as an Arkouda server ({answer})")
    left = max(0.1, _CONNECT_TIMEOUT_S - (time.monotonic() - began))
    client = _client()  # only now: its import takes seconds
    with warnings.catch_warnings():  # of differing versions, which get a separate line
        warnings.simplefilter("error", RuntimeWarning)
        try:
            within(left, lambda: client.connect(server, port, timeout=_HEARTBEAT_TIMEOUT_S))
        except RuntimeWarning as warning:
            raise ClusterError(f"the Arkouda client does not fit the server at {address}; {_RELEASE}") from warning
        except Exception as error:  # what listens there is no server of this client
            late = isinstance(error, TimeoutError) and not str(error)
            line = (str(error).splitlines() or [type(error).__name__])[0]
            line = f"no answer within {_CONNECT_TIMEOUT_S} s" if late else line
            raise ClusterError(f"{address} does not answer as an Arkouda server ({line})") from error
    _current = Server(Arkouda(client), address)
    return _current


def _greeting(server: str, port: int) -> bytes:
    """What a server says first: one of ZeroMQ, as Arkouda's is, its signature; nothing if it waits."""
    greeting = b""
    until = time.monotonic() + _CONNECT_TIMEOUT_S
    with socket.create_connection((server, port), _CONNECT_TIMEOUT_S) as peer, contextlib.suppress(TimeoutError):
        while len(greeting) < _SIGNATURE and (left := until - time.monotonic()) > 0:
            peer.settimeout(left)
            more = peer.recv(_SIGNATURE - len(greeting))
            if not more:
                break
            greeting += more
    return greeting


def _client() -> Any:
    try:
        # it prints a greeting and warnings about its imports, which do not concern the user
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import arkouda
    except ImportError as error:
        raise ClusterError(f"the Arkouda client cannot be imported ({error}); {_RELEASE}") from error
    if not hasattr(arkouda, "searchsorted"):
        raise ClusterError(f"the Arkouda client here is too old; {_RELEASE}")
    return arkouda


def _server(where: str) -> Server:
    """The server a user named behind the colon, else the one that is connected."""
    if not where:
        return _current or connect()
    host, _, port = where.rpartition(":")
    if not host or not port.isdecimal():
        raise OptionError(f"engine 'arkouda' takes HOST:PORT behind the colon, not {where!r}")
    if _current is not None and _current.address == where:
        return _current
    return connect(host, int(port))


def reach(where: str, threads: int | None) -> None:
    """Connect to a server."""
    _server(where)


def run(work: Work) -> EngineResult:
    """Solve every group on the server; if it is lost on the way, what was finished is kept and marked."""
    global _current
    _check(work.plan)
    server = _server(work.where)
    solved: list[RowSums] = []
    left, how = len(work.groups), grouping(work.recording, work.plan)
    for groups in _together(work):
        try:
            [sums] = reduce(work, [_solve(work, groups, server.verbs)], how)
        except WattributeError:  # some of ours are RuntimeErrors as well
            raise
        except (ConnectionError, RuntimeError) as error:
            _current = None
            line = (str(error).splitlines() or [type(error).__name__])[0]
            lost = f"the Arkouda server {server.address} failed or was lost ({line})"
            if not solved:
                raise ClusterError(f"{lost}; nothing was finished") from error
            return EngineResult(solved, (), f"{lost}; {left} of {len(work.groups)} groups are not in the result")
        wrong = unbalanced(work.plan, sums)
        if wrong:
            raise ClusterError(f"the answer of the Arkouda server {server.address} does not balance ({wrong})")
        solved.append(sums)
        left -= len(groups)
    return EngineResult(solved)


def _together(work: Work) -> list[list[tuple[int, ...]]]:
    """Groups that are solved with the same commands: small ones of one view."""
    batches: list[list[tuple[int, ...]]] = []
    room = 0
    last = None
    for group in sorted(work.groups, key=lambda group: work.plan.sources[group[0]].of):
        of = work.plan.sources[group[0]].of
        events = sum(max(1, int(work.recording.locations.events[user])) for user in users(work.plan, group))
        if not batches or of != last or events > room:
            batches.append([])
            room = TOGETHER_EVENTS
        batches[-1].append(group)
        room, last = room - events, of
    return batches


def _check(plan: Plan) -> None:
    question = plan.question
    if question.sliced or question.statistics or question.method == "solve" or question.per is not None:
        raise OptionError(
            "engine 'arkouda' has no rows by reading or bin, statistics, method 'solve' or --per; "
            "use engine 'local' or 'dask'"
        )


def _solve(work: Work, groups: Sequence[tuple[int, ...]], verbs: Verbs) -> GroupResult:
    """The parts and books of some groups of one view, which share no location."""
    recording, plan = work.recording, work.plan
    where = _Locations(recording, plan, groups, verbs)
    crowd = sorted({location for group in groups for location in asked(plan, group)})
    locations = sorted({location for group in groups for location in users(plan, group)})
    known: dict[int, Intervals] = {}
    if crowd:
        lanes = [lane for lane, location in enumerate(locations) if location in set(crowd)]
        found_busy = arrays.busy(where.spans(locations)[0], lanes)
        known = {locations[lane]: found_busy[lane] for lane in lanes}
    devices: dict[int, DeviceCurves] = {}
    for group in groups:
        devices |= curves(recording, plan, group, known=known)
    parts: list[Part] = []
    for some in _fitting(locations, devices):
        spans, row = where.spans(some)
        sources = [tuple(at for at in devices if location in devices[at].split.curves) for location in some]
        against = [
            [devices[at].split.curves[location] for at in own] for location, own in zip(some, sources, strict=True)
        ]
        paths_of = len(recording.frames) if plan.keys.by_path else None
        folds = arrays.fold(spans, row, len(plan.keys), against, paths_of)
        folded = (Part((at,), own, fold) for at, own, fold in zip(some, sources, folds, strict=True))
        for part in folded:
            parts += with_ranges(recording, plan, [part], devices)
    if work.spans is not None:
        for group in groups:
            own = {at: devices[at] for at in group}
            write_rows(recording, plan, own, users(plan, group), work.spans)
    return GroupResult(parts, books(devices))


def _fitting(locations: Sequence[int], devices: Mapping[int, DeviceCurves]) -> list[list[int]]:
    """Locations whose curves fit on one axis of time: all of them, unless a recording lasts for years."""
    curves = [curve for device in devices.values() for curve in device.split.curves.values()]
    most = max(1, arrays.most_curves(curves))
    return [list(locations[at : at + most]) for at in range(0, len(locations), most)]


class _Locations:
    """The spans of a group's locations that count, on the server; those last asked for are kept."""

    def __init__(self, recording: Recording, plan: Plan, groups: Sequence[tuple[int, ...]], verbs: Verbs) -> None:
        self.recording, self.verbs = recording, verbs
        rows_of_groups = [row for group in groups for row in group]
        devices = Counter(user for row in rows_of_groups for user in plan.sources[row].users)
        self.span_bytes = _BYTES_PER_SPAN + _BYTES_PER_CURVE * max(devices.values(), default=1)
        mask = masks(recording, plan.sources[rows_of_groups[0]].of)
        kinds = [str(kind) == "gpu" for kind in recording.locations.kind]
        one_of = {kind: kinds.index(kind) for kind in set(kinds)}
        rows = [plan.keys.masked(mask(one_of[kind])).row for kind in sorted(one_of)]
        self.row_of = np.stack(rows).astype(np.int64)
        self.kind = [sorted(one_of).index(kind) for kind in kinds]
        self._last: tuple[list[int], Any] = ([], None)

    def spans(self, locations: Sequence[int]) -> tuple[arrays.Lanes, Any]:
        """Spans and their rows."""
        if self._last[0] != list(locations):
            lanes = _lanes(self.verbs, self.recording.spans, locations, self.span_bytes)
            kinds = [self.kind[location] for location in locations]
            self._last = list(locations), arrays.kept(lanes, self.row_of, kinds)
        spans: tuple[arrays.Lanes, Any] = self._last[1]
        return spans


def _lanes(verbs: Verbs, source: Any, locations: Sequence[int], span_bytes: int) -> arrays.Lanes:
    """The spans of some locations of a source, on the server."""
    if isinstance(source, SpanWindow):
        return arrays.between(_lanes(verbs, source.inner, locations, span_bytes), source.begin, source.end)
    if isinstance(source, ArchivedSpans):
        files = {at: source.folder / f"{at}.parquet" for at in locations}
        sizes = [_rows(files[at]) for at in locations]
        if all(size is not None for size in sizes) and any(sizes):
            there = [files[at] for at, size in zip(locations, sizes, strict=True) if size]
            _check_memory(verbs, sum(size or 0 for size in sizes), len(locations), span_bytes)
            return arrays.lanes(verbs, verbs.read(there), [size or 0 for size in sizes])
    return _sent(verbs, spans_of(source, locations), span_bytes)


def _rows(file: Path) -> int | None:
    """Count the spans of a file; None if it cannot be read, so that reading it here raises the error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.exists():
        return 0
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException):
        return None


def _check_memory(verbs: Verbs, spans: int, locations: int, span_bytes: int) -> None:
    """Refuse spans that would fill the server's memory: it ends when an array does not fit."""
    free, need = verbs.free_bytes(), spans * span_bytes
    if free is not None and need > free:
        raise ClusterError(
            f"{spans:,} spans of {locations} locations need about {need / 1e9:.3g} GB on the Arkouda server, which has "
            f"{free / 1e9:.3g} GB free; ask for fewer (--process), start a larger server, or use engine 'local' or "
            "'dask', whose memory does not grow with spans"
        )


def _sent(verbs: Verbs, tables: Sequence[Spans], span_bytes: int = _BYTES_PER_SPAN) -> arrays.Lanes:
    _check_memory(verbs, sum(map(len, tables)), len(tables), span_bytes)
    whole = {name: np.concatenate([getattr(spans, name) for spans in tables]) for name in COLUMNS}
    wide = {name: column if column.dtype == bool else column.astype(np.int64) for name, column in whole.items()}
    return arrays.lanes(verbs, {name: verbs.put(column) for name, column in wide.items()}, [len(t) for t in tables])
