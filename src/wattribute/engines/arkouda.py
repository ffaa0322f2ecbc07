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
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..archive import ArchivedSpans
from ..attribution.clip import Clipped
from ..attribution.join import DeviceCurves, Part, Plan, Solved, asked, books, curves, masks, users
from ..attribution.rows import write_rows
from ..errors import ClusterError, OptionError, WattributeError
from ..model import Curve, Problem, Recording, Spans
from ..model.select import SelectedSpans
from ..model.spans import spans_of
from . import arrays
from .verbs import COLUMNS, Numbers, Verbs
from .work import Done, Work

if TYPE_CHECKING:
    import polars as pl

_PORT = 5555
_REACH_S = 5
_LIVE_S = 10  # without a heartbeat, which a busy server has as well, it is gone
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
        found = self.client.read_parquet(names, datasets=[*COLUMNS], null_handling="none")
        return {name: found[name] for name in COLUMNS}

    def arange(self, count: int) -> Any:
        return self.client.arange(count)

    def zeros(self, count: int, like: type) -> Any:
        return self.client.zeros(count, dtype={bool: "bool", int: "int64", float: "float64"}[like])

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.client.where(condition, yes, no)

    def join(self, arrays: Sequence[Any]) -> Any:
        return self.client.concatenate(list(arrays))

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
        found = []
        for column in columns:
            sums = self.get(groups.sum(column)[1])
            whole = np.zeros(size, np.float64 if sums.dtype.kind == "f" else np.int64)
            whole[at] = sums
            found.append(whole)
        return found

    def any(self, mask: Any) -> bool:
        return bool(self.client.any(mask))


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
    """Connect to a running Arkouda server; ``attribute(…, engine="arkouda")`` then runs there."""
    global _current
    client = _client()
    address = f"{server}:{port}"
    try:
        socket.create_connection((server, port), _REACH_S).close()
    except (OSError, OverflowError, UnicodeError) as error:  # the latter: a port or a name that cannot be
        why = getattr(error, "strerror", None) or error
        raise ClusterError(f"no Arkouda server at {address} ({why}); start arkouda_server there") from error
    with warnings.catch_warnings():  # of differing versions, which get a line of their own
        warnings.simplefilter("error", RuntimeWarning)
        try:
            client.connect(server, port, timeout=_LIVE_S)
        except RuntimeWarning as warning:
            raise ClusterError(f"the Arkouda client does not fit the server at {address}; {_RELEASE}") from warning
        except Exception as error:  # whatever is listening there, it is no server of this client
            line = (str(error).splitlines() or [type(error).__name__])[0]
            raise ClusterError(f"{address} does not answer as an Arkouda server ({line})") from error
    _current = Server(Arkouda(client), address)
    return _current


def _client() -> Any:
    try:
        # it greets on stdout and warns of its own imports, which is nothing to us
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


def run(work: Work) -> Done:
    """Solve every group on the server; if it is lost on the way, what was finished is kept and marked."""
    global _current
    _check(work.plan)
    server = _server(work.where)
    solved: list[Solved] = []
    for group in work.groups:
        try:
            solved.append(_solve(work, group, server.verbs))
        except WattributeError:  # some of ours are RuntimeErrors as well
            raise
        except (ConnectionError, RuntimeError) as error:
            _current = None
            line = (str(error).splitlines() or [type(error).__name__])[0]
            lost = f"the Arkouda server {server.address} failed or was lost ({line})"
            if not solved:
                raise ClusterError(f"{lost}; nothing was finished") from error
            left = len(work.groups) - len(solved)
            return Done(
                solved, [Problem("partial", f"{lost}; {left} of {len(work.groups)} groups are not in the result")]
            )
    return Done(solved)


def _check(plan: Plan) -> None:
    options = plan.options
    if options.sliced or options.statistics or options.method == "solve":
        raise OptionError(
            "engine 'arkouda' has no rows by reading or bin, statistics or method 'solve'; use engine 'local' or 'dask'"
        )


def _solve(work: Work, group: Sequence[int], verbs: Verbs) -> Solved:
    """The parts and books of one group."""
    recording, plan = work.recording, work.plan
    where = _Locations(recording, plan, group, verbs)
    crowd = asked(plan, group)
    known = dict(zip(crowd, arrays.busy(where.spans(crowd)[0]), strict=True)) if crowd else {}
    found = curves(recording, plan, group, known=known)
    parts: list[Part] = []
    for locations, rows, against in _batches(plan, group, found):
        spans, row = where.spans(locations)
        paths_of = len(recording.frames) if plan.keys.by_path else None
        folds = arrays.fold(spans, row, len(plan.keys.labels), against, paths_of)
        parts += [Part(location, rows, fold) for location, fold in zip(locations, folds, strict=True)]
    if work.spans is not None:
        write_rows(recording, plan, found, users(plan, group), work.spans)
    return Solved(parts, books(found))


def _batches(
    plan: Plan, group: Sequence[int], found: dict[int, DeviceCurves]
) -> list[tuple[list[int], tuple[int, ...], list[Curve]]]:
    """Locations that are folded against the same curves: (locations, rows of the plan's sources, curves)."""
    made: dict[tuple[Any, ...], tuple[list[int], tuple[int, ...], list[Curve]]] = {}
    for location in users(plan, group):
        rows = tuple(row for row in found if location in found[row].split.curves)
        against = [found[row].split.curves[location] for row in rows]
        made.setdefault((rows, *map(id, against)), ([], rows, against))[0].append(location)
    return list(made.values())


class _Locations:
    """The spans of a group's locations that count, on the server; those last asked for are kept."""

    def __init__(self, recording: Recording, plan: Plan, group: Sequence[int], verbs: Verbs) -> None:
        self.recording, self.verbs = recording, verbs
        mask = masks(recording, plan.sources[group[0]].of)
        kinds = [str(kind) == "gpu" for kind in recording.locations.kind]
        one_of = {kind: kinds.index(kind) for kind in set(kinds)}
        rows = [plan.keys.masked(mask(one_of[kind])).row for kind in sorted(one_of)]
        self.row_of = np.stack(rows).astype(np.int64)
        self.kind = [sorted(one_of).index(kind) for kind in kinds]
        self._last: tuple[list[int], Any] = ([], None)

    def spans(self, locations: Sequence[int]) -> tuple[arrays.Lanes, Any]:
        """Spans and their rows."""
        if self._last[0] != list(locations):
            found = _lanes(self.verbs, self.recording.spans, locations)
            kinds = [self.kind[location] for location in locations]
            self._last = list(locations), arrays.kept(found, self.row_of, kinds)
        spans: tuple[arrays.Lanes, Any] = self._last[1]
        return spans


def _lanes(verbs: Verbs, source: Any, locations: Sequence[int]) -> arrays.Lanes:
    """The spans of some locations of a source, on the server."""
    if isinstance(source, Clipped):
        return arrays.between(_lanes(verbs, source.inner, locations), source.begin, source.end)
    if isinstance(source, SelectedSpans):
        inner = _lanes(verbs, source.source, locations)
        return arrays.kept(inner, np.where(source.kept, 0, -1)[None].astype(np.int64), [0] * len(locations))[0]
    if isinstance(source, ArchivedSpans):
        files = {at: source.folder / f"{at}.parquet" for at in locations}
        sizes = [_rows(files[at]) for at in locations]
        if all(size is not None for size in sizes) and any(sizes):
            there = [files[at] for at, size in zip(locations, sizes, strict=True) if size]
            return arrays.lanes(verbs, verbs.read(there), [size or 0 for size in sizes])
    return _sent(verbs, spans_of(source, locations))


def _rows(file: Path) -> int | None:
    """How many spans a file holds; None if it cannot be told, so that reading it here says why."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.exists():
        return 0
    try:
        return int(pq.read_metadata(file).num_rows)
    except (OSError, pa.ArrowException):
        return None


def _sent(verbs: Verbs, tables: Sequence[Spans]) -> arrays.Lanes:
    whole = {name: np.concatenate([getattr(spans, name) for spans in tables]) for name in COLUMNS}
    wide = {name: column if column.dtype == bool else column.astype(np.int64) for name, column in whole.items()}
    return arrays.lanes(verbs, {name: verbs.put(column) for name, column in wide.items()}, [len(t) for t in tables])
