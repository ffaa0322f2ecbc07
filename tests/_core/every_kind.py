"""An archive with every kind of event record, id maps and clock offsets, written with PyPI ``otf2``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np

LOCATIONS = 3
FIRST_TICK, LAST_TICK = 10**17, 10**17 + 4_000_000


def write(folder: Path, otf2: Any, rounds: int = 40, seed: int = 1) -> Path:
    """Several locations, each with all kinds in random order, values of every width; returns the anchor."""
    random = np.random.default_rng(seed)
    with otf2.writer.open(str(folder), timer_resolution=10**9) as trace:
        samples = _definitions(trace, otf2, random)
        kinds = [kind for _, kind in inspect.getmembers(otf2.events, inspect.isclass) if _is_event(otf2, kind)]
        for location in range(LOCATIONS):
            writer = trace.event_writer(f"location {location}", group=samples["group"])
            _local(writer, location, random)
            time = FIRST_TICK
            for _ in range(rounds):
                for at in random.permutation(len(kinds)):
                    time += int(random.choice([0, 1, 255, 256, 70_000, 3]))
                    attributes = {samples["attribute"]: 7} if random.random() < 0.2 else None
                    writer.write(_event(kinds[at], time, samples, random, attributes))
    return folder / "traces.otf2"


def _is_event(otf2: Any, kind: Any) -> bool:
    return issubclass(kind, otf2.events._Event) and kind is not otf2.events._Event


def _definitions(trace: Any, otf2: Any, random: Any) -> dict[str, Any]:
    """One or more of everything an event can refer to, by the name of the field's type."""
    make = trace.definitions
    group = make.location_group("process", system_tree_parent=make.system_tree_node("node"))
    regions = [make.region(f"f{i}") for i in range(300)]
    ranks = make.group("ranks", otf2.GroupType.COMM_LOCATIONS, otf2.Paradigm.MPI, members=[])
    comm = make.comm("world", ranks)
    window = make.rma_win("window", comm)
    paradigm = make.io_paradigm("POSIX", "POSIX I/O", otf2.IoParadigmClass.SERIAL, otf2.IoParadigmFlag.NONE)
    file = make.io_regular_file("file", scope=make.system_tree_node("node 2"))
    contexts = [make.calling_context(regions[0], parent=None)]
    for i in range(1, 9):
        contexts.append(make.calling_context(regions[i], parent=contexts[(i - 1) // 2]))
    types = [otf2.Type.INT64, otf2.Type.UINT64, otf2.Type.DOUBLE]
    members = [make.metric_member(f"m{i}", value_type=types[i % 3], unit="#") for i in range(7)]
    classes = [make.metric_class(members[:n]) for n in (1, 3, 7)]
    return {
        "group": group,
        "attribute": make.attribute("attribute", "", otf2.Type.UINT32),
        "RegionRef": regions,
        "CommRef": [comm],
        "RmaWinRef": [window],
        "GroupRef": [ranks],
        **{f"Parameter{k}": make.parameter(k, getattr(otf2.ParameterType, k)) for k in ("STRING", "INT64", "UINT64")},
        "StringRef": ["a string"],
        "CallingContextRef": contexts,
        "InterruptGeneratorRef": [make.interrupt_generator("timer", otf2.InterruptGeneratorMode.TIME, period=1)],
        "IoParadigmRef": [paradigm],
        "IoFileRef": [file],
        "IoHandleRef": [make.io_handle("handle", file=file, io_paradigm=paradigm, comm=comm)],
        "MetricRef": classes,
        "otf2": otf2,
    }


def _local(writer: Any, location: int, random: Any) -> None:
    """Location 1: dense region and context maps, a sparse metric map, four clock offsets. Location 2: one offset, which
    corrects nothing."""
    import _otf2

    handle = writer._def_handle
    for time in {0: [], 1: [FIRST_TICK, 2, 3, LAST_TICK], 2: [FIRST_TICK]}[location]:
        at = time if time >= FIRST_TICK else FIRST_TICK + time * 10**6
        _otf2.DefWriter_WriteClockOffset(handle, at, int(random.integers(-(10**6), 10**6)), 0.0)
    if location == 1:
        for which, ids in ((_otf2.MAPPING_REGION, 300), (_otf2.MAPPING_CALLING_CONTEXT, 9)):
            dense = _otf2.IdMap_CreateFromUint64Array([int(i) for i in random.permutation(ids)], False)
            _otf2.DefWriter_WriteMappingTable(handle, which, dense)
            _otf2.IdMap_Free(dense)
        sparse = _otf2.IdMap_Create(_otf2.ID_MAP_SPARSE, 2)
        _otf2.IdMap_AddIdPair(sparse, 0, 0)
        _otf2.IdMap_AddIdPair(sparse, 2, 2)
        _otf2.DefWriter_WriteMappingTable(handle, _otf2.MAPPING_METRIC, sparse)
        _otf2.IdMap_Free(sparse)


def _event(kind: Any, time: int, samples: dict[str, Any], random: Any, attributes: Any) -> Any:
    values = []
    for name, of, _ in kind._fields:
        if name in ("time", "attributes"):
            continue
        values.append(_value(kind.__name__, of, time, samples, random))
        if name == "metric":
            values.append([_number(member, random, samples["otf2"]) for member in values[-1].members])
            break
    return kind(time, *values, attributes=attributes)


def _number(member: Any, random: Any, otf2: Any) -> Any:
    bits = int(random.integers(0, 2**63)) >> int(random.integers(0, 63))
    if member.value_type == otf2.Type.DOUBLE:
        return float(random.normal())
    return -bits if member.value_type == otf2.Type.INT64 and random.random() < 0.5 else bits


def _value(kind: str, of: str, time: int, samples: dict[str, Any], random: Any) -> Any:
    if of in samples:
        return samples[of][int(random.integers(len(samples[of])))]
    if of == "ParameterRef":
        width = {"ParameterString": "STRING", "ParameterInt": "INT64", "ParameterUnsignedInt": "UINT64"}[kind]
        return samples[f"Parameter{width}"]
    if of == "array":  # a program's arguments
        return ["a", "b" * 300][: int(random.integers(3))]
    if of == "TimeStamp":
        return time
    if of.startswith("ctypes."):
        width = int(of.split("int")[1].split("_")[0])
        return int(random.integers(0, 2 ** (width - 1))) >> int(random.integers(0, width))
    enum = getattr(samples["otf2"].enums, of)
    return next(getattr(enum, name) for name in sorted(dir(enum)) if name.isupper())
