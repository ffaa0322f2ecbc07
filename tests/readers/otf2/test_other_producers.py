"""Traces as lo2s, Score-P before 8 and APEX write them: who uses what, and what it is called.

Names follow the producers' sources: lo2s' ``trace.cpp`` (packages, cores and cpus below the machine, "<idle>", "samples
for cpu N") and ``x86_energy/metrics.cpp`` (one metric class, an instance per package or core); Score-P's CUPTI adapter
("CUDA[0:7]" in the process itself); APEX's ``proc_read.cpp`` ("Package-0 Energy", joules since the last reading).
"""

from __future__ import annotations

import pytest

import wattribute
from wattribute.readers.otf2.writer import Writer


def readings(location, metric, *values, every=10):
    for at, value in enumerate(values):
        location.metric(at * every, metric, value)


@pytest.fixture(params=["<idle>", "<idle> (0)"])
def lo2s(request, tmp_path):
    """Two packages with two cpus each: cpu k works from 0 to 10 s and idles until 20 s, except cpu 3, which idles."""
    with Writer(tmp_path / "lo2s", ticks_per_s=1, creator="lo2s") as trace:
        machine = trace.node("n01", "machine", domain="shared_memory")
        packages = [trace.node(str(p), "package", machine, "socket") for p in (0, 1)]
        cores = [trace.node(f"{k // 2}:{k}", "core", packages[k // 2], "core") for k in range(4)]
        pus = [trace.node(str(k), "cpu", cores[k], "pu") for k in range(4)]
        groups = [trace.process(f"cpu {k}", pus[k]) for k in range(4)]
        metrics = trace.process("Metric Location Group", machine)
        work, idle = trace.region("python (4711)"), trace.region(request.param)
        cpus = [trace.location(f"samples for cpu {k}", groups[k]) for k in range(4)]
        for k, cpu in enumerate(cpus):
            first = idle if k == 3 else work
            for region, begin, end in ((first, 0, 10), (idle, 10, 20)):
                cpu.enter(begin, region)
                cpu.leave(end, region)
        package = trace.metric_class([trace.member("Intel RAPL Package", "J", type="double")])
        core = trace.metric_class([trace.member("Intel RAPL Core", "J", type="double")])
        own = trace.metric_class([trace.member("watts of a probe", "W", "absolute_point", "double")])
        cycles = trace.metric_class([trace.member("cpu-cycles", "#")])
        wall = trace.metric_class([trace.member("n01 wall", "W", "absolute_point", "double")])
        made = []
        for p in (0, 1):
            recorder = trace.location(f"metrics for package {p}", metrics, "metric")
            metric = trace.metric_instance(package, recorder.number, "node", packages[p])
            made.append((recorder, metric, (0, 100, 200 - 50 * p)))
        for k in range(4):
            recorder = trace.location(f"metrics for cpu {k}", metrics, "metric")
            made.append((recorder, trace.metric_instance(core, recorder.number, "node", cores[k]), (0, 10, 20)))
            place = cpus[k].number
            made.append((recorder, trace.metric_instance(own, recorder.number, "location", place), (k + 1.0,) * 3))
            values = (0, 1000 * (k + 1), 1000 * (k + 1))
            made.append((recorder, trace.metric_instance(cycles, recorder.number, "location", place), values))
        recorder = trace.location("metrics for n01", metrics, "metric")
        made.append((recorder, trace.metric_instance(wall, recorder.number, "node", machine), (50.0, 50.0, 50.0)))
        for at in range(3):
            for recorder, metric, values in made:
                recorder.metric(10 * at, metric, values[at])
    return wattribute.read(tmp_path / "lo2s")


def devices(found):
    return {row["device"]: row for row in found.devices.to_dicts()}


def test_packages_and_cores_are_used_by_their_own_cpus(lo2s):
    found = wattribute.attribute(lo2s, metric="RAPL", by="signal,device,location")
    books = devices(found)
    assert {name: books[name]["users"] for name in books} == {
        "package 0": 2, "package 1": 2, "core 0:0": 1, "core 0:1": 1, "core 1:2": 1, "core 1:3": 1,
    }  # fmt: skip
    assert books["package 1"]["reason"] == "declared for package 1"
    # 100 J while cpus 0 and 1 work, 100 J while both are in <idle>; on package 1 cpu 2 works alone
    assert (books["package 0"]["attributed_j"], books["package 0"]["idle_j"]) == (100, 100)
    rows = {(row["device"], row["location"]): row["self_j"] for row in found.rows.to_dicts()}
    assert rows["package 0", "samples for cpu 0"] == rows["package 0", "samples for cpu 1"] == 50
    assert rows["package 1", "samples for cpu 2"] == 100
    assert books["core 1:3"]["idle_j"] == 20  # cpu 3 was in <idle> all the time


def test_the_idle_thread_is_no_row(lo2s):
    assert wattribute.attribute(lo2s, by="frame").rows["frame"].to_list() == ["python (4711)"]


def test_a_location_of_the_idle_thread_is_no_user(tmp_path):
    with Writer(tmp_path / "idle", ticks_per_s=1, creator="lo2s") as trace:
        machine, work = trace.node("n01", "machine"), trace.region("work")
        for process, thread in (("<idle>", "thread 0"), ("python", "thread 4711"), ("shell", "<idle> (0)")):
            location = trace.location(thread, trace.process(process, machine))
            location.enter(0, work)
            location.leave(10, work)
        recorder = trace.location("metrics", trace.process("Metric Location Group", machine), "metric")
        readings(recorder, trace.metric_class([trace.member("Intel RAPL Package 0", "J", type="double")]), 0, 90)
    found = wattribute.attribute(tmp_path / "idle", by="location")
    assert dict(zip(found.rows["location"], found.rows["self_j"], strict=True)) == {"python/thread 4711": 90}


def test_metrics_of_a_location_are_of_that_location(lo2s):
    found = wattribute.attribute(lo2s, metric="cpu-cycles", by="location")
    got = dict(zip(found.rows["location"], found.rows["self_value"], strict=True))
    assert got == {"samples for cpu 0": 1000, "samples for cpu 1": 2000, "samples for cpu 2": 3000}
    probes = devices(wattribute.attribute(lo2s, metric="probe", by="signal,device"))
    assert {name: row["users"] for name, row in probes.items()} == {
        f"watts of a probe (samples for cpu {k})": 1 for k in range(4)
    }


def test_a_wall_meter_is_the_node(lo2s):
    found = wattribute.attribute(lo2s, by="device,frame")
    books = devices(found)
    assert books["n01 wall"]["why"] == "counts as its parts and the rest of it"
    assert books["rest of n01 wall"]["measured_j"] == pytest.approx(20 * 50 - 200 - 150)
    counted = sum(row["measured_j"] for row in books.values() if row["counted"])
    assert counted == pytest.approx(1000)


def ranks(folder, metric, scope, processes=("MPI Rank 0", "MPI Rank 1"), own=False):
    """Two processes with two equally named threads; thread k has 10^k watts of a metric of its own, or its process."""
    with Writer(folder, ticks_per_s=1) as trace:
        host, main = trace.node("n01", domain="shared_memory"), trace.region("main")
        power = trace.metric_class([trace.member(metric, "W", "absolute_point", "double")])
        watts = 1.0
        for process in processes:
            rank = trace.process(process, host)
            for thread in ("Master thread", "OMP thread 1"):
                location = trace.location(thread, rank)
                location.enter(0, main)
                if scope == "location" or thread == "Master thread":
                    recorder = location if own else trace.location("", rank, "metric")
                    place = location.number if scope == "location" else rank
                    readings(recorder, trace.metric_instance(power, recorder.number, scope, place), watts, watts)
                location.leave(10, main)
                watts *= 10
    return folder


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("metric", ["probe", "probe 12"])
def test_equally_named_threads_have_their_own_metrics(tmp_path, metric, own):
    found = wattribute.attribute(ranks(tmp_path / "x", metric, "location", own=own), by="location")
    got = dict(zip(found.rows["location"], found.rows["self_j"], strict=True))
    assert got == {
        "MPI Rank 0/Master thread": 10, "MPI Rank 0/OMP thread 1": 100,
        "MPI Rank 1/Master thread": 1000, "MPI Rank 1/OMP thread 1": 10_000,
    }  # fmt: skip
    assert f"{metric} (MPI Rank 1/Master thread)" in devices(found)


@pytest.mark.parametrize("own", [False, True])
def test_equally_named_processes_have_their_own_metrics(tmp_path, own):
    found = wattribute.attribute(ranks(tmp_path / "x", "probe", "process", ("py", "py"), own), by="device,process")
    assert {name: row["users"] for name, row in devices(found).items()} == {
        "probe (n01/py #0)": 2, "probe (n01/py #1)": 2,
    }  # fmt: skip
    assert found.rows["self_j"].to_list() == [1000, 10]


@pytest.mark.parametrize("metric", ["A2craypm:::PM_POWER:NODE", "n01 wall"])
def test_a_rank_that_reads_its_nodes_meter_is_not_its_only_user(tmp_path, metric):
    found = devices(wattribute.attribute(ranks(tmp_path / "x", metric, "process"), by="device"))
    assert [row["users"] for row in found.values()] == [4]


def test_cores_of_two_packages_with_equal_numbers_are_told_apart(tmp_path):
    with Writer(tmp_path / "x", ticks_per_s=1) as trace:
        host, main = trace.node("n01", domain="shared_memory"), trace.region("main")
        core = trace.metric_class([trace.member("Intel RAPL Core", "J", type="double")])
        for p in range(2):
            package = trace.node(str(p), "package", host, "socket")
            for k in range(2):
                node = trace.node(str(k), "core", package, "core")
                location = trace.location(f"cpu {2 * p + k}", trace.process("", node))
                location.enter(0, main)
                location.leave(10, main)
                recorder = trace.location("", trace.process("metrics", host), "metric")
                readings(recorder, trace.metric_instance(core, recorder.number, "node", node), 0, 2 * p + k + 1)
    found = wattribute.attribute(tmp_path / "x", by="device,location")
    got = {(row["device"], row["location"]): row["self_j"] for row in found.rows.to_dicts()}
    assert got == {(f"core (package {n // 2}/core {n % 2})", f"cpu {n}"): n + 1 for n in range(4)}


def test_a_group_of_locations_uses_what_is_declared_for_it(tmp_path):
    with Writer(tmp_path / "x", ticks_per_s=1) as trace:
        main, rank = trace.region("main"), trace.process("MPI Rank 0", trace.node("n01"))
        threads = [trace.location(f"thread of {name}", rank) for name in "abc"]
        for thread in threads:
            thread.enter(0, main)
            thread.leave(10, main)
        trace.window("", [thread.number for thread in threads[:2]])  # defines group 0 of these locations
        recorder = trace.location("", rank, "metric")
        power = trace.metric_class([trace.member("probe", "W", "absolute_point", "double")])
        readings(recorder, trace.metric_instance(power, recorder.number, "group", 0), 5.0, 5.0)
    found = wattribute.attribute(tmp_path / "x", by="location")
    assert dict(zip(found.rows["location"], found.rows["self_j"], strict=True)) == {
        "thread of a": 25, "thread of b": 25,
    }  # fmt: skip
    assert [row["reason"] for row in found.devices.to_dicts()] == ["declared for group 0"]


def streams(tmp_path, names, gpus=2):
    """A rank per stream, without contexts or device nodes, and a counter per GPU."""
    with Writer(tmp_path / "old", ticks_per_s=1, creator="Score-P 6.0") as trace:
        host = trace.node("n01", domain="shared_memory")
        main, kernel = trace.region("main"), trace.region("kernel", "cuda", "kernel")
        ranks = [trace.process(f"MPI Rank {i}", host) for i in range(len(names))]
        for rank, name in zip(ranks, names, strict=True):
            thread, stream = trace.location("Master thread", rank), trace.location(name, rank, "gpu")
            for location, region in ((thread, main), (stream, kernel)):
                location.enter(0, region)
                location.leave(10, region)
        for gpu in range(gpus):
            recorder = trace.location("", ranks[0], "metric")
            member = trace.member(f"A2rocm_smi:::energy_count:device={gpu}")
            metric = trace.metric_instance(trace.metric_class([member]), recorder.number, "node", host)
            readings(recorder, metric, 0, (gpu + 1) * 10**6)
    return wattribute.read(tmp_path / "old")


def test_streams_of_old_scorep_use_the_gpu_of_their_number(tmp_path):
    found = wattribute.attribute(streams(tmp_path, ["CUDA[0:7]", "CUDA[1:7]"]), by="device,process")
    rows = {(row["device"], row["process"]): row["self_j"] for row in found.rows.to_dicts()}
    assert rows == {("GPU 0", "MPI Rank 0"): 1, ("GPU 1", "MPI Rank 1"): 2}
    assert devices(found)["GPU 1"]["reason"] == "stream 'CUDA[1:7]' says device 1"
    host = wattribute.attribute(streams(tmp_path / "2", ["CUDA[0:7]", "CUDA[1:7]"]), of="host", by="device,process")
    assert {(row["device"], row["process"]) for row in host.rows.to_dicts()} == set(rows)


def test_two_ranks_that_both_say_device_0_are_doubted(tmp_path):
    found = devices(wattribute.attribute(streams(tmp_path, ["CUDA[0:7]", "CUDA[0:7]"]), by="device"))
    assert found["GPU 0"]["users"] == 2
    assert "each may count the GPUs it sees" in found["GPU 0"]["reason"]


def test_a_stream_that_says_nothing_uses_the_only_gpu(tmp_path):
    found = devices(wattribute.attribute(streams(tmp_path, ["gpu kernel events for process 4711"], 1), by="device"))
    assert found["GPU 0"]["attributed_j"] == 1
    assert found["GPU 0"]["reason"].startswith("the only GPU metered")


def test_energy_of_apex_is_joules_since_the_last_reading(tmp_path):
    with Writer(tmp_path / "apex", ticks_per_s=1, creator="APEX") as trace:
        main = trace.region("main")
        thread = trace.location("thread 0", trace.process("process 4711", trace.node("n01")))
        energy = trace.metric_class([trace.member("Package-0 Energy", "count", "absolute_point", "double")])
        thread.enter(0, main)
        readings(thread, energy, 30.0, 40.0, 60.0)
        thread.leave(20, main)
    recording = wattribute.read(tmp_path / "apex")
    (signal,) = recording.signals
    assert (signal.kind, signal.unit, signal.device) == ("delta", "J", "package 0")
    found = wattribute.attribute(recording, by="location")
    assert found.rows["self_j"].to_list() == [100]
    assert found.rows["location"].to_list() == ["process 4711/thread 0"]


@pytest.mark.parametrize("recorders", ["each", "none", "one"])
def test_counters_that_ranks_record_of_themselves_are_devices_of_their_own(tmp_path, recorders):
    """A class without an instance applies to the location that records it, as energy too; one recorder of a host
    speaks for the host."""
    with Writer(tmp_path / "t", ticks_per_s=1) as trace:
        node = trace.node("n01", "node", domain="shared_memory")
        work = trace.region("work")
        threads = [trace.location("Master thread", trace.process(f"MPI Rank {r}", node)) for r in (0, 1)]
        member = trace.member("PROBE", "#")
        only = recorders == "one"
        metrics = [
            trace.metric_class([member], "strict", -1 if recorders == "none" else thread.number)
            for thread in (threads[:1] if only else threads)
        ]
        for r, thread in enumerate(threads):
            thread.enter(0, work)
            if r < len(metrics):
                readings(thread, metrics[r], 0, 100 * (r + 1), 200 * (r + 1))
            thread.leave(20, work)
    recording = wattribute.read(tmp_path / "t", metric_kinds=["PROBE=counter:J"])
    rows = wattribute.attribute(recording, by=("device", "process")).rows
    joules = {(row["device"], row["process"]): row["self_j"] for row in rows.to_dicts() if row["self_j"]}
    if only:
        assert joules == {("PROBE", "MPI Rank 0"): 100, ("PROBE", "MPI Rank 1"): 100}
    else:
        names = [f"PROBE (MPI Rank {r}/Master thread)" for r in (0, 1)]
        assert joules == {(names[0], "MPI Rank 0"): 200, (names[1], "MPI Rank 1"): 400}
