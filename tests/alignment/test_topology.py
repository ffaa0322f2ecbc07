"""Who uses which device: inferred, said by the source, or said by the user; always with a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wattribute.alignment.overrides import not_found, overrides, parse_map
from wattribute.alignment.topology import Topology, users
from wattribute.errors import FormatError, NotFoundError, OptionError
from wattribute.model import Device, Link, Processes
from wattribute.testing.recordings import RecordingBuilder


def machine(names=("0", "1", "2", "3"), buses=(193, 198, 201, 206), model="AMD Instinct MI250X", dead=(1, 3)):
    """A host with four dies, a rank and a stream on each, and counters for GPU 0 … 3."""
    made = RecordingBuilder().host("n01")
    for i in range(4):
        made.process(f"MPI Rank {i}").thread((), "Master thread")
    for i, (name, bus) in enumerate(zip(names, buses, strict=True)):
        about = {"PCI Bus ID": str(bus), "Device name": model, "UUID": f"GPU-{bus}"}
        made.process(f"MPI Rank {i}").stream((), f"HIP[{i}:0]", gpu=name, context=f"HIP Context {i}", **about)
    for i in range(4):
        made.counter(f"GPU {i}", [0, 0 if i in dead else 9], every=5, name=f"energy:device={i}")
    return made.recording()


def streams(recording, device, maps=(), topology=None):
    found = Topology(recording, overrides(recording, topology, maps))
    row = recording.devices.index(device)
    return users(recording, found.links(device, recording.signals[row]), ["gpu"], range(8))


def test_two_dies_share_the_even_counter():
    recording = machine()
    assert [streams(recording, device) for device in recording.devices] == [(4, 5), (), (6, 7), ()]
    (gpu, host) = Topology(recording).links(recording.devices[0])
    assert "PCI bus 193; one counter for two dies" in gpu.reason
    assert host.locations == (0, 1)
    assert host.reason.endswith("MPI Rank 0, MPI Rank 1")


def test_one_counter_per_die():
    recording = machine(model="AMD Instinct MI300A", dead=())
    assert [streams(recording, device) for device in recording.devices] == [(4,), (5,), (6,), (7,)]


def test_dead_odd_counters_tell_of_pairs_even_when_the_model_does_not():
    recording = machine(model="")
    assert streams(recording, recording.devices[2]) == (6, 7)


def test_pci_order_counts_where_names_contradict_it_or_repeat():
    # the job's device 0 sits on the highest bus: rocm-smi's numbers follow the bus
    recording = machine(buses=(206, 201, 198, 193), model="", dead=())
    assert [streams(recording, device) for device in recording.devices] == [(7,), (6,), (5,), (4,)]
    recording = machine(names=("0", "0", "0", "0"), model="", dead=())  # every rank sees one device only
    assert [streams(recording, device) for device in recording.devices] == [(4,), (5,), (6,), (7,)]


def test_a_uuid_decides():
    recording = machine(model="", dead=())
    device = Device("GPU 0", "gpu", "n01", {"uuid": "GPU-206"})
    assert users(recording, Topology(recording).links(device), ["gpu"], range(8)) == (7,)


def test_older_traces_without_device_nodes_go_by_the_context_name():
    recording = machine(model="", dead=())
    flat = Processes.of([row if row[2] == "process" else (*row[:3], 0, row[4]) for row in _rows(recording.processes)])
    recording = replace(recording, processes=flat)
    assert streams(recording, recording.devices[2]) == (6,)


def _rows(table):
    return [tuple(table.row(i).values()) for i in range(len(table))]


def test_a_gpu_without_context_belongs_to_all_threads_of_its_host():
    recording = machine()
    (link,) = Topology(recording).links(Device("GPU 7", "gpu", "n01"))
    assert link.locations == (0, 1, 2, 3)
    assert "no process owns a context" in link.reason


def test_packages_and_nodes_belong_to_all_of_their_host():
    recording = machine()
    streams_, threads = Topology(recording).links(Device("package 0", "cpu", "n01"))
    assert (streams_.locations, threads.locations) == ((4, 5, 6, 7), (0, 1, 2, 3))
    assert Topology(recording).links(Device("package 0", "cpu", "elsewhere")) == ()


def test_what_the_source_says_goes_before_what_we_infer():
    recording = replace(machine(), topology=(Link("n01", "GPU 0", (7,), "the meter said so"),))
    assert streams(recording, recording.devices[0]) == (7,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("device=1$ -> HIP Context 3", (7,)),
        ("n01/device=1$ -> HIP Context 3, HIP[0:*]", (4, 7)),
        ("device=1$ -> MPI Rank 2", (6,)),
        ("device=1$ -> hip[*]", (4, 5, 6, 7)),
        ("n02/device=1$ -> HIP Context 3", ()),  # not a host: all of it is a pattern, which no signal matches
    ],
)
def test_maps(text, expected):
    recording = machine()
    if not expected:
        with pytest.raises(OptionError, match="unknown signal in the map"):
            streams(recording, recording.devices[1], [text])
        return
    assert streams(recording, recording.devices[1], [text]) == expected
    assert streams(recording, recording.devices[2], [text]) == (6, 7)


def test_wrong_maps():
    for text in ("no arrow", "-> name", "signal ->", "( -> name"):
        with pytest.raises(OptionError):
            parse_map(text, ["n01"])
    recording = machine()
    with pytest.raises(OptionError, match="did you mean 'HIP Context 1'"):
        not_found(recording, overrides(recording, None, ["device=0 -> HIP Contxt 1"]))


def test_a_list_of_names_may_hold_some_that_this_recording_has_not():
    """An earlier tool's list of streams names those of all nodes and runs."""
    recording = machine()
    given = overrides(recording, None, ["device=1$ -> HIP[3:0], HIP[9:0]"])
    assert Topology(recording, given).links(recording.devices[1])[0].locations == (7,)
    (said,) = not_found(recording, given)
    assert said.message.endswith("not in this recording: HIP[9:0]")


def test_a_topology_file(tmp_path):
    recording = machine()
    path = tmp_path / "map.toml"
    path.write_text('[[device]]\nsignal = "device=1$"\nhost = "n0*"\nlocations = ["HIP[3:0]"]\n')
    assert streams(recording, recording.devices[1], topology=path) == (7,)
    path.write_text('[[device]]\ndevice = "GPU 3"\nlocations = ["MPI Rank 0", "HIP Context 1"]\n')
    assert streams(recording, recording.devices[3], topology=path) == (4, 5)
    for text, error, words in (
        ("not toml", FormatError, "not TOML"),
        ("", FormatError, r"no \[\[device\]\] entry.*locations = "),
        ('[[device]]\nsignal = "x"\nlocation = ["a"]\n', OptionError, "did you mean 'locations'"),
        ('[[device]]\nlocations = ["a"]\n', FormatError, "needs signal"),
        ('[[device]]\nsignal = "x"\nlocations = "a"\n', FormatError, "list of names"),
    ):
        path.write_text(text)
        with pytest.raises(error, match=words):
            streams(recording, recording.devices[0], topology=path)
    with pytest.raises(NotFoundError):
        streams(recording, recording.devices[0], topology=tmp_path / "nothing.toml")


def test_a_topology_function():
    recording = machine()

    def last_digit(signal, places):
        return [place for place in places if place.kind == "gpu" and place.owner[-1] == signal.name[-1]]

    assert streams(recording, recording.devices[3], topology=last_digit) == (7,)
    assert streams(recording, recording.devices[3], topology=lambda signal, places: [4, 5]) == (4, 5)
    assert streams(recording, recording.devices[0], topology=lambda signal, places: None) == (4, 5)
    with pytest.raises(OptionError, match="location 99"):
        streams(recording, recording.devices[3], topology=lambda signal, places: [99])


def test_a_topology_function_as_of_an_earlier_tool():
    """Names as texts: (metric name, ranks) → ranks."""
    recording = machine()

    def of_rank(metric_name, ranks):
        assert metric_name.startswith(metric_name.name[:3])
        assert metric_name.kind
        digit = metric_name.split("=")[-1]
        return [rank for rank in ranks if rank.split()[-1] == digit and rank.kind == "gpu"]

    assert streams(recording, recording.devices[3], topology=of_rank) == (7,)
    assert streams(recording, recording.devices[3], topology=lambda name, ranks: ["HIP[3:0]"]) == (7,)
    for wrong, words in (([1.5], "not of float"), (7, "not 7"), ("HIP[3:0]", "a list of locations")):
        with pytest.raises(OptionError, match=words):
            streams(recording, recording.devices[3], topology=lambda name, ranks, wrong=wrong: wrong)
    with pytest.raises(OptionError, match="did you mean"):
        streams(recording, recording.devices[3], topology=lambda name, ranks: ["HIP[3:00]"])
