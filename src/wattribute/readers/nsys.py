"""SQLite exports of Nsight Systems (``nsys export --type sqlite``) → Recording.

Kernels and copies become spans of their streams, below a device node with the GPU's number and UUID; NVTX ranges and
CUDA API calls spans of their threads. The session's start in UTC is the wall clock: a power log joins by itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ..errors import FormatError
from ..model import Recording
from ..plugins import Selection
from .building import FARTHEST, Builder
from .files import head

_MAGIC = b"SQLite format 3\0"
_MARKS = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
_GPU = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "kernel",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copy",
    "CUPTI_ACTIVITY_KIND_MEMSET": "copy",
}
_COPIES = {1: "Memcpy HtoD", 2: "Memcpy DtoH", 8: "Memcpy DtoD", 10: "Memcpy PtoP"}
_PUSH_POP, _START_END = 59, 60  # kinds of NVTX ranges


def detects(path: Path) -> bool:
    """A database that has a table of CUDA work or of NVTX ranges."""
    if head(path, len(_MAGIC)) != _MAGIC:
        return False
    try:
        with closing(_connected(path)) as database:
            return bool(_tables(database) & {"StringIds"}) and bool(_tables(database) & {*_MARKS, *_GPU})
    except sqlite3.Error:
        return False


def _connected(path: Path) -> sqlite3.Connection:
    """Read-only: a profile is never changed, not even by a journal beside it."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def _tables(database: sqlite3.Connection) -> set[str]:
    return {row[0] for row in database.execute("select name from sqlite_master where type = 'table'")}


def read(path: Path, selection: Selection) -> Recording:
    out = Builder(path, selection, "nsys")
    try:
        with closing(_connected(path)) as database:
            export = _Export(out, database)
            export.gpu_work()
            export.calls()
            export.ranges()
            epoch = export.epoch_ns()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter from messages of sqlite's own
        if not len(out.locations):
            raise FormatError(path, f"is cut or not an export of Nsight Systems ({error})") from error
        out.problem("truncated", f"could not be read to its end ({error})")
        epoch = None
    return out.recording(epoch, {"uncertainty_ns": 1_000_000})


class _Export:
    """One database on its way into a recording; older exports lack some tables and columns."""

    def __init__(self, out: Builder, database: sqlite3.Connection) -> None:
        self.out, self.database = out, database
        self.tables = _tables(database)
        self.strings = dict(self._rows("StringIds", "id", "value"))
        self.processes = {_pid(at): name for at, name in self._rows("PROCESSES", "globalPid", "name")}
        named = self._rows("ThreadNames", "globalTid", "nameId")
        self.threads = {at: self.strings.get(name) for at, name in named}
        self.gpus = {number: (name, uuid) for number, name, uuid in self._rows("TARGET_INFO_GPU", "id", "name", "uuid")}
        host = [value for name, value in self._rows("TARGET_INFO_SYSTEM_ENV", "name", "value") if name == "Hostname"]
        out.host = str(host[0]) if host and host[0] else ""

    def _rows(self, table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        """Rows of a table, None for the columns it lacks; nothing if it is not there."""
        if table not in self.tables:
            return
        there = {row[1] for row in self.database.execute(f"pragma table_info({table})")}
        asked = ", ".join(column if column in there else "null" for column in columns)
        yield from self.database.execute(f"select {asked} from {table}")

    def epoch_ns(self) -> int | None:
        starts = [at for (at,) in self._rows("TARGET_INFO_SESSION_START_TIME", "utcEpochNs") if isinstance(at, int)]
        return starts[0] if starts else None

    def _span(self, location: int, begins: Any, ends: Any, frame: int) -> bool:
        if not isinstance(begins, int) or not isinstance(ends, int) or not -FARTHEST < begins <= ends < FARTHEST:
            negative = isinstance(begins, int) and isinstance(ends, int) and ends < begins
            self.out.counts["spans of negative duration" if negative else "rows without a valid time"] += 1
            return False
        self.out.span(location, begins, ends, frame)
        return True

    def _process(self, global_id: Any) -> int:
        pid = _pid(global_id)
        name = self.processes.get(pid)
        return self.out.process(pid, f"{Path(str(name)).name} [{pid}]" if name else f"process {pid}", pid)

    def gpu_work(self) -> None:
        for table, role in _GPU.items():
            name = "demangledName" if role == "kernel" else "copyKind"
            columns = ("start", "end", "deviceId", "streamId", "globalPid", name, "shortName", "correlationId")
            for begins, ends, number, stream, owner, what, short, correlation in self._rows(table, *columns):
                number = number if isinstance(number, int) and 0 <= number < 1 << 16 else 0
                model, uuid = self.gpus.get(number, ("", ""))
                about = {"Device name": str(model or ""), "UUID": str(uuid or "")}
                gpu = self.out.gpu(number, self._process(owner) if owner is not None else -1, "CUDA device", about)
                location = self.out.thread(stream, gpu, f"stream {stream}", stream, "gpu")
                title = self._title(table, what, short)
                if self._span(location, begins, ends, self.out.frame(title, "cuda", role)):
                    self.out.launched(correlation, location, begins)

    def _title(self, table: str, what: Any, short: Any) -> str:
        if table.endswith("KERNEL"):
            return str(self.strings.get(what) or self.strings.get(short) or "kernel")
        return "Memset" if table.endswith("MEMSET") else _COPIES.get(what, "Memcpy")

    def _thread(self, global_tid: Any) -> int:
        tid = global_tid % (1 << 24) if isinstance(global_tid, int) else 0
        return self.out.thread(
            tid, self._process(global_tid), str(self.threads.get(global_tid) or f"thread {tid}"), tid
        )

    def calls(self) -> None:
        columns = ("start", "end", "globalTid", "nameId", "correlationId")
        for begins, ends, thread, name, correlation in self._rows("CUPTI_ACTIVITY_KIND_RUNTIME", *columns):
            title, location = str(self.strings.get(name) or "CUDA call"), self._thread(thread)
            if self._span(location, begins, ends, self.out.frame(title, "cuda", "function")):
                self.out.launch(correlation, location, begins)

    def ranges(self) -> None:
        """NVTX push/pop ranges; those of start/end may belong to several threads and mark nothing that nests."""
        columns = ("start", "end", "eventType", "globalTid", "text", "textId")
        for begins, ends, kind, thread, text, number in self._rows("NVTX_EVENTS", *columns):
            if kind == _PUSH_POP and ends is not None:
                title = str(text or self.strings.get(number) or "range")
                self._span(self._thread(thread), begins, ends, self.out.frame(title, "user", "region"))
            elif kind in (_PUSH_POP, _START_END):
                self.out.counts["NVTX ranges that are open or of no one thread"] += 1


def _pid(global_id: Any) -> int:
    """The pid in a global id of a process or thread: bits 24 … 47."""
    return (global_id >> 24) % (1 << 24) if isinstance(global_id, int) else 0
