"""Shared parts of both OTF2 decoders: the names of records, their inputs, and a file's status."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Columns = dict[str, Any]

# names by record type, from 10 on
_NAMES = """
BufferFlush MeasurementOnOff Enter Leave MpiSend MpiIsend MpiIsendComplete MpiIrecvRequest MpiRecv MpiIrecv
MpiRequestTest MpiRequestCancelled MpiCollectiveBegin MpiCollectiveEnd OmpFork OmpJoin OmpAcquireLock
OmpReleaseLock OmpTaskCreate OmpTaskSwitch OmpTaskComplete Metric ParameterString ParameterInt
ParameterUnsignedInt RmaWinCreate RmaWinDestroy RmaCollectiveBegin RmaCollectiveEnd RmaGroupSync RmaRequestLock
RmaAcquireLock RmaTryLock RmaReleaseLock RmaSync RmaWaitChange RmaPut RmaGet RmaAtomic RmaOpCompleteBlocking
RmaOpCompleteNonBlocking RmaOpTest RmaOpCompleteRemote ThreadFork ThreadJoin ThreadTeamBegin ThreadTeamEnd
ThreadAcquireLock ThreadReleaseLock ThreadTaskCreate ThreadTaskSwitch ThreadTaskComplete ThreadCreate ThreadBegin
ThreadWait ThreadEnd CallingContextEnter CallingContextLeave CallingContextSample IoCreateHandle IoDestroyHandle
IoDuplicateHandle IoSeek IoChangeStatusFlags IoDeleteFile IoOperationBegin IoOperationTest IoOperationIssued
IoOperationComplete IoOperationCancelled IoAcquireLock IoReleaseLock IoTryLock ProgramBegin ProgramEnd
NonBlockingCollectiveRequest NonBlockingCollectiveComplete CommCreate CommDestroy MpiProbe MpiMrecv
MpiImrecvRequest MpiImrecv
"""
KINDS = _NAMES.split()
FIRST_KIND = 10
TYPE = {name: FIRST_KIND + row for row, name in enumerate(KINDS)}

# records whose payload is one compressed integer without a length byte; the format promises no more of them
SINGLETONS = frozenset((12, 13, 16, 17, 20, 21, 24, 28, 29, 30))
HEADER_BYTES = 18
SMALLEST_CHUNK = 32
UNDEFINED = 0xFFFFFFFFFFFFFFFF
REGION_MAP, METRIC_MAP, CONTEXT_MAP = 3, 5, 10

# how a file can be, in the order of enum wat_code
MESSAGES = {
    "": "",
    "missing": "is not there",
    "permission": "may not be read by this user",
    "io": "cannot be read as a file",
    "empty": "is empty",
    "endian": "was written on a big-endian machine, which is not supported",
    "truncated": "ends early",
    "corrupt": "is damaged",
    "count": "holds another number of events than its own headers say",
    "memory": "needs more memory than there is",
}


CODES = list(MESSAGES)
OTHERWISE, SPACE = len(CODES), len(CODES) + 1  # WAT_OTHERWISE, WAT_SPACE: nothing about the file


class LocationFiles(NamedTuple):
    """One location's files, and what the archive says about them."""

    evt: str
    local: str  # "": no id maps, no clock offsets
    evt_chunk: int
    def_chunk: int
    offset_ticks: int  # subtracted from every corrected time
    declared: int  # number of events the definitions promise


class LocationBatch(NamedTuple):
    """Several locations' files, which lie in one folder and are named by ids; otherwise as :class:`LocationFiles`."""

    folder: str
    ids: npt.NDArray[np.uint64]
    declared: npt.NDArray[np.uint64]
    evt_chunk: int
    def_chunk: int
    offset_ticks: int

    def files(self, row: int) -> LocationFiles:
        """The files of one location."""
        stem, declared = f"{self.folder}{os.sep}{self.ids[row]}", int(self.declared[row])
        return LocationFiles(f"{stem}.evt", f"{stem}.def", self.evt_chunk, self.def_chunk, self.offset_ticks, declared)


class LookUpTables(NamedTuple):
    """What the global definitions say, as look-up tables; −1 is undefined everywhere."""

    region: npt.NDArray[np.int32]  # region id → frame row
    context_frame: npt.NDArray[np.int32]  # calling context id → frame row
    context_parent: npt.NDArray[np.int32]  # calling context id → the context that called it
    keep: npt.NDArray[np.uint8]  # by frame row; 0: spans of that frame are not opened
    put: int = -1  # frame rows of the pseudo-frames; −1: make no such spans
    get: int = -1
    atomic: int = -1
    flush: int = -1
    off: int = -1
    metric: npt.NDArray[np.uint8] | None = None  # by metric id: 0 is counted and skipped (None: keep all)


class Read(NamedTuple):
    """Decoded rows of several locations, one after the other."""

    columns: Columns
    ends: npt.NDArray[np.int64]  # by location: where its rows end (of metrics: its events, and their members)
    counts: npt.NDArray[np.int64]  # by location and kind of record
    plain: npt.NDArray[np.bool_]  # by location: as declared and in order, no details to report
    details: Callable[[int], Columns]  # of one location: what ``decode`` returns besides its rows


def status(code: str, byte: int, events: int, path: str) -> Columns:
    """The status of a file; ``message`` is one line that names file and position."""
    message = ""
    if code:
        where = "" if code in ("missing", "permission", "io", "empty", "memory") else f" at byte {byte}"
        message = f"{path}: {MESSAGES[code]}{where}"
    return {"code": code, "byte": byte, "events": events, "message": message}
