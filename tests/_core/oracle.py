"""The official reader (PyPI ``otf2``) as oracle: the events of chosen locations as columns, and the tables a reader
would make of its definitions."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wattribute._core.records import TYPE, LocationFiles, LookUpTables


def chunk_sizes(anchor: Path) -> tuple[int, int]:
    """From the anchor file: two 64-bit integers behind the name "OTF2" and five version bytes."""
    content = anchor.read_bytes()
    events, definitions = struct.unpack_from("<QQ", content, content.index(b"OTF2\0") + 10)
    return events, definitions


def files_of(anchor: Path, location: int, declared: int = 0, offset_ticks: int = 0) -> LocationFiles:
    folder = anchor.with_suffix("")
    sizes = chunk_sizes(anchor)
    return LocationFiles(
        str(folder / f"{location}.evt"), str(folder / f"{location}.def"), *sizes, offset_ticks, declared
    )


def bit_pattern(value: Any, kind: int) -> int:
    """A metric value as the 64 bits of the file (types 10 and 9 are double and float)."""
    if kind == 10:
        return int(np.float64(value).view(np.uint64))
    if kind == 9:
        return int(np.float32(value).view(np.uint32))
    return int(value) & 0xFFFFFFFFFFFFFFFF


class Oracle:
    """One archive through the official reader; ``locations`` maps those whose event file exists to declared counts."""

    def __init__(self, anchor: Path) -> None:
        self.otf2 = pytest.importorskip("otf2", reason="the official reader has wheels for CPython ≤ 3.11 on x86 only")
        self.anchor = anchor
        with self.otf2.reader.open(str(anchor)) as trace:
            definitions = trace.definitions
            every = {loc._ref: loc.number_of_events for loc in definitions.locations}
            self.offset_ticks = definitions.clock_properties.global_offset
            self.regions = [region._ref for region in definitions.regions]
        self.locations = {ref: count for ref, count in every.items() if Path(files_of(anchor, ref).evt).exists()}
        if anchor.parent.name == "frontier-hpl-partial":  # this reader is slow: one of the eight large streams will do
            for ref in sorted(self.locations, key=self.locations.__getitem__)[-7:]:
                del self.locations[ref]

    def files(self, location: int, relative: bool = True) -> LocationFiles:
        return files_of(self.anchor, location, self.locations[location], self.offset_ticks if relative else 0)

    def tables(self) -> LookUpTables:
        """Frame rows are region ids here."""
        region = np.full(max(self.regions, default=-1) + 1, -1, np.int32)
        region[self.regions] = self.regions
        empty = np.empty(0, np.int32)
        return LookUpTables(region, empty, empty, np.ones(len(region), np.uint8))

    def events(self) -> dict[int, dict[str, Any]]:
        """By location: time, kind, ref, metric_n, metric_type, metric_bits as in ``_core``'s events()."""
        names = ("time", "kind", "ref", "metric_id", "metric_n", "metric_type", "metric_bits")
        rows: dict[int, dict[str, list[int]]] = {ref: {name: [] for name in names} for ref in self.locations}
        with self.otf2.reader.open(str(self.anchor), batch_events=10_000) as trace:
            chosen = [loc for loc in trace.definitions.locations if loc._ref in rows]
            for location, event in trace.events(chosen):
                self._add(rows[location._ref], event)
        return {
            ref: {name: np.array(values, np.uint64) for name, values in columns.items()}
            for ref, columns in rows.items()
        }

    def _add(self, into: dict[str, list[int]], event: Any) -> None:
        name = type(event).__name__
        ref = 0
        if name in ("Enter", "Leave"):
            ref = event.region._ref
        elif name.startswith("CallingContext"):
            ref = event.calling_context._ref
        elif name == "Metric":
            ref = event.metric._ref
            members = getattr(event.metric, "metric_class", event.metric).members
            types = [int(member.value_type.value) for member in members]
            into["metric_id"].append(ref)
            into["metric_n"].append(len(event.values))
            into["metric_type"].extend(types)
            into["metric_bits"].extend(map(bit_pattern, event.values, types))
        into["time"].append(event.time)
        into["kind"].append(TYPE[name])
        into["ref"].append(ref)
