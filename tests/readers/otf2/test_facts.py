"""Real traces through ``wattribute.read``: every fact of the oracles."""

import json
from collections import Counter

import numpy as np
import pytest

import wattribute

KINDS = {"CPU_THREAD": "cpu", "GPU": "gpu", "METRIC": "metric"}


@pytest.fixture(scope="module")
def oracles(shared):
    return json.loads((shared / "oracles" / "oracles.json").read_text())


@pytest.fixture(scope="module")
def simple(shared):
    return wattribute.read(shared / "traces" / "simple-mi300")


@pytest.fixture(scope="module")
def frontier(shared):
    recording = wattribute.read(shared / "traces" / "frontier-hpl-partial")
    recording.spans.count_events()
    return recording


def agrees(recording, facts):
    clock = facts["clock"]
    assert recording.clock.ticks_per_s == clock["timer_resolution"]
    assert recording.clock.offset_ticks == clock["global_offset"]
    assert recording.clock.length_ticks == clock["trace_length_ticks"]
    assert recording.clock.epoch_ns is None
    assert len(recording.locations) == facts["locations"]
    kinds = {KINDS[kind]: count for kind, count in facts["location_types"].items()}
    assert Counter(recording.locations.kind) == kinds
    assert recording.metadata["frames"] == facts["regions"]
    assert recording.locations.events.sum() == facts["declared_events"]
    for row, group in enumerate(facts["location_groups_list"]):
        mine = recording.processes.row(row)
        assert (mine["id"], mine["name"], mine["kind"]) == (group["id"], group["name"], group["type"].lower())
        assert recording.nodes.id[mine["node"]] == group["parent_tree_node"]
        assert mine["creator"] == (-1 if group["creator"] is None else group["creator"])
    for row, node in enumerate(facts["system_tree"]):
        mine = recording.nodes.row(row)
        assert (mine["id"], mine["name"], mine["kind"]) == (node["id"], node["name"], node["cls"])
        assert mine["parent"] == (-1 if node["parent"] is None else node["parent"])
    streams = [row for row, kind in enumerate(recording.locations.kind) if kind == "gpu"]
    for row, stream in zip(streams, facts["gpu_locations"], strict=True):
        mine = recording.locations.row(row)
        assert (mine["id"], mine["name"], mine["events"]) == (stream["id"], stream["name"], stream["n"])
        assert recording.processes.id[mine["process"]] == stream["group"]


def test_simple_mi300(simple, oracles):
    facts = oracles["simple_mi300"]["facts"]
    agrees(simple, facts)
    simple.spans.count_events()
    assert simple.spans.events == facts["event_kinds_readable"]
    assert not simple.missing
    about = wattribute.describe(simple)
    assert [node["name"] for node in about["nodes"]] == ["Linux", "faraday.ftpn.ornl.gov", "0", "1"]
    assert about["nodes"][2]["properties"]["UUID"] == "GPU-a70564cccd47836c"
    assert about["frames_by_paradigm"] == {"user": 1, "measurement_system": 2, "compiler": 3, "hip": 15}
    assert about["locations"][-1]["properties"] == {"hipNullStream": "1"}
    assert len(simple.signals) == 30  # 29 members, "HIP Memory" recorded for each of two streams' contexts
    assert [p.kind for p in simple.problems] == ["declared"]


def test_times_are_relative_to_the_global_offset(simple):
    [main] = [row for row, name in enumerate(simple.frames.name) if name == "main"]
    spans = simple.spans.spans(0)
    at = int(np.flatnonzero(spans.frame == main)[0])
    assert simple.clock.seconds(spans.start[at]) == 0.005989017049473849
    assert simple.clock.seconds(spans.end[at]) == 7.196134243640209
    assert (simple.frames.file[main].rsplit("/")[-1], simple.frames.line[main]) == ("kernel.cpp", 68)


def test_kernels_on_all_streams_not_only_the_master_thread(simple, oracles):
    exact = oracles["simple_mi300"]["exact"]["GPU-0"]
    kernels = {}
    for row in simple.spans.locations():
        if simple.locations.kind[row] == "gpu":
            spans = simple.spans.spans(row)
            assert len(spans) == 1
            name = simple.frames.name[spans.frame[0]]
            kernels[name] = int(spans.end[0] - spans.start[0])
            assert simple.frames.role[spans.frame[0]] == "kernel"
            assert simple.frames.paradigm[spans.frame[0]] == "hip"
    assert kernels[exact["kernel"]] == exact["duration_ticks"]
    assert len(kernels) == 2


def test_energy_counters(simple, oracles):
    exact = oracles["simple_mi300"]["exact"]["GPU-0"]
    [signal] = [s for s in simple.signals if s.name.endswith("energy_count:device=0")]
    assert (signal.kind, signal.unit, signal.device, signal.host) == ("counter", "J", "GPU 0", "faraday.ftpn.ornl.gov")
    assert len(signal) == exact["n_samples"]
    assert (int(signal.values[0]), int(signal.values[-1])) == (exact["first_uJ"], exact["last_uJ"])
    assert signal.values.dtype == np.uint64
    assert int(signal.times[0]) + simple.clock.offset_ticks == exact["first_sample_tick"]
    assert signal.declared["mode"] == "accumulated_start"
    assert {d.name for d in simple.devices if d.kind == "gpu"} == {f"GPU {n}" for n in range(4)}


def test_frontier_reads_what_is_there_and_names_what_is_not(frontier, oracles):
    facts = oracles["frontier_hpl_partial"]["facts"]
    agrees(frontier, facts)
    assert frontier.spans.events == facts["event_kinds_readable"]
    assert sum(frontier.spans.events.values()) == 787_423
    missing = {str(frontier.locations.id[one.location]): one.events for one in frontier.missing}
    assert missing == facts["missing_declared_events"]
    for one in frontier.missing:
        [problem] = [p for p in frontier.problems if p.location == one.location]
        assert problem.kind == "missing"
        assert f"MPI Rank {frontier.locations.id[one.location]}," in problem.message
        assert f"/{frontier.locations.id[one.location]}.evt" in problem.message
        assert str(one.events) in problem.message


def test_frontier_hosts_ranks_and_equal_names(frontier):
    assert list(frontier.hosts()) == ["frontier09408", "frontier09412"]
    rows = [row for row, name in enumerate(frontier.locations.name) if name == "HIP[0:1]"]
    assert [frontier.location_host(row) for row in rows] == ["frontier09408", "frontier09412"]
    assert [frontier.processes.name[frontier.owner(row)] for row in rows] == ["MPI Rank 0", "MPI Rank 4"]
    per_host = Counter(s.host for s in frontier.signals if "energy_count" in s.name)
    assert per_host == {"frontier09408": 8, "frontier09412": 8}


def test_frontier_zero_length_ties_and_copies(frontier, oracles):
    kernels = copies = zero = ties = 0
    for row in frontier.spans.locations():
        spans = frontier.spans.spans(row)
        copy = np.array([role == "copy" for role in frontier.frames.role])[spans.frame]
        start, end = spans.start[~copy], spans.end[~copy]
        kernels += len(start)
        copies += int(copy.sum())
        zero += int((start == end).sum())
        ties += int((start[1:] == end[:-1]).sum())
        assert (end >= start).all()
    facts = oracles["frontier_hpl_partial"]
    assert kernels == facts["facts"]["event_kinds_readable"]["Enter"]
    assert copies == 2_866 + 960  # puts + gets
    assert zero == facts["zero_length_kernels"]
    assert ties == facts["back_to_back_same_tick"]


def test_synchronous_metrics_with_several_members(shared):
    recording = wattribute.read(shared / "traces" / "ping-pong-papi")
    assert [s.name for s in recording.signals[:3]] == ["PAPI_TOT_CYC", "PAPI_L2_TCM", "PAPI_BR_MSP"]
    assert [len(s) for s in recording.signals] == [42] * 6
    assert {(s.unit, s.kind, s.device) for s in recording.signals} == {("#", "counter", "")}
    assert not recording.devices


def test_a_trace_without_gpu_or_metrics(shared):
    recording = wattribute.read(shared / "traces" / "mpi-otf2-3")
    assert not recording.signals
    assert [len(recording.spans.spans(row)) for row in recording.spans.locations()] == [4] * 4
    names = [c["name"] for c in recording.metadata["communicators"]]
    assert names == ["Process x Threads CPU Locations", "MPI_COMM_WORLD", "MPI_COMM_SELF"]
