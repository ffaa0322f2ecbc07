"""A trace and power logs of other tools on one timeline: whose clock, how sure, whose host."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wattribute
from tests.readers.samples import DATA
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Clock, Device, ReadOptions
from wattribute.reading import as_recording
from wattribute.testing.recordings import RecordingBuilder, signal

TORCH, SMI = DATA / "chrome-pytorch.json", DATA / "nvidia_smi-two.csv"
NS = 10**9


def join(recording, logs, offset=None):
    return as_recording(recording, ReadOptions(signals=logs, offset=offset))


pytestmark = pytest.mark.usefixtures("utc")


def trace(epoch_ns=None, **about):
    """One thread on n01: "train" from 1 to 3 s, in it "step" from 2 to 2.5 s."""
    made = RecordingBuilder(NS, offset_ticks=7 * NS, length_ticks=4 * NS, epoch_ns=epoch_ns, name="trace", clock=about)
    return made.process("python").thread("train 1s..3s, step 2s..2.5s", "main").recording()


def log(epoch_ns=None, kind="gauge", rate=1000, host="", marks=(), values=(10, 20, 30, 40, 50), **about):
    """A reading per second from 0 on, on a clock that counts in ms; 10 W more each second, or joules."""
    length = (len(values) - 1) * rate
    made = RecordingBuilder(
        rate, offset_ticks=11 * rate, length_ticks=length, epoch_ns=epoch_ns, name="log", clock=about
    )
    made.location("metric", [(at, at, name) for name, at in marks] or None, "marks")
    unit, device = "W" if kind == "gauge" else "J", Device("package 0", "cpu", host)
    readings = signal(kind, values, None, "power", unit, every=rate, device="package 0", host=host)
    return made.signals(readings).recording(devices=(device,))


def self_j(attribution):
    return dict(zip(attribution.rows["frame"], attribution.rows["self_j"], strict=True))


def test_kernels_of_a_pytorch_trace_and_idle_are_what_nvidia_smi_logged():
    found = wattribute.attribute(TORCH, signals=SMI)
    books = {row["device"]: row for row in found.devices.to_dicts()}
    # GPU 0: (50 + 250) / 2 + (250 + 150) / 2; GPU 1: its [N/A] is bridged, 2 s × (40 + 60) / 2
    assert books["GPU 0"]["measured_j"] == pytest.approx(350)
    assert books["GPU 1"]["measured_j"] == pytest.approx(100)
    for device, book in books.items():
        mine = found.rows.filter(device=device)["self_j"].sum()
        assert mine == pytest.approx(book["attributed_j"], rel=1e-9)
        assert mine + book["idle_j"] == pytest.approx(book["measured_j"], rel=1e-9)
    # the log begins 0.5 s before the trace: 150 W on average up to 0.5 s. Two streams share 0.35 … 0.40 s:
    # sgemm: 150 × 0.2, on stream 20 150 × (0.05 / 2 + 0.05); relu: 150 × (0.05 + 0.05 / 2)
    joules = {row["frame"]: row["self_j"] for row in found.rows.filter(device="GPU 0").to_dicts()}
    assert joules["ampere_sgemm_128x64_nn"] == pytest.approx(30 + 11.25, rel=1e-9)
    assert joules["void relu<float>(float*, int)"] == pytest.approx(11.25, rel=1e-9)
    messages = {problem.kind: problem.message for problem in found.problems}
    assert "±2 ms" in messages["joined"]
    assert "moved by +1 h" in messages["zone"]  # 05:10 of a log without a zone, 06:10 UTC of the trace


def test_a_log_in_the_zone_of_this_machine_is_not_moved(monkeypatch):
    monkeypatch.setenv("TZ", "UTC+1")  # POSIX: an hour west
    time.tzset()
    found = wattribute.attribute(TORCH, signals=[SMI])
    assert "zone" not in {problem.kind for problem in found.problems}
    assert found.devices["measured_j"].sum() == pytest.approx(450)


def test_by_wall_clock_with_an_offset_on_top():
    # log time = trace time − 1 s: train without step is 0 … 1 and 1.5 … 2 s of the log, 15 W × 1 s + 25 W × 0.5 s
    joined = wattribute.attribute(trace(5 * NS), signals=log(6 * NS, uncertainty_ns=0))
    assert self_j(joined) == pytest.approx({"train": 15 + 12.5, "step": 12.5})
    # half a second later: step is 0.5 … 1 s of the log, and the first half second of train is not metered
    moved = wattribute.attribute(trace(5 * NS), signals=log(6 * NS), offset=0.5)
    assert self_j(moved)["step"] == pytest.approx(0.5 * 15)
    assert moved.rows.filter(frame="train")["covered_ns"][0] == 1.5 * NS


def test_clocks_of_one_boot_and_times_since_some_boot_are_exact():
    for mine, theirs in (({"boot": "b"}, {"boot": "b"}), ({"monotonic": True}, {"boot": "b"})):
        # the trace's tick 0 is 7 s after boot, the log's 11 s: power 10 + 10 (t − 4) from 4 s on, after train
        found = join(trace(**mine), [replace(log(**theirs), clock=Clock(1000, 6 * 1000, 4000))])
        assert found.signals[0].times.tolist() == [-NS, 0, NS, 2 * NS, 3 * NS]
        assert found.signals[0].clock_error_s is None
    apart = replace(trace(monotonic=True), clock=Clock(NS, 10**6 * NS, 4 * NS))
    with pytest.raises(NoDataError, match="neither a wall clock nor marks"):
        join(apart, [log(boot="b")])


def test_by_marks_whose_spread_is_the_error():
    # train begins at 1 s and step at 2 s; the log noted them at 2 and 3.2 s: moved by −1.1 ± 0.1, rows are 1 s apart
    found = join(trace(), [log(marks=[("train", 2000), ("step", 3200)])])
    assert found.signals[0].times[0] == pytest.approx(-1.1 * NS)
    assert found.signals[0].clock_error_s == pytest.approx(0.1 + 1)
    assert "marks (step, train)" in found.problems[-1].message


@given(st.floats(-0.25, 0.25), st.sampled_from(["gauge", "counter"]))
def test_bounds_hold_for_every_error_of_the_clock(shift, kind):
    values = (10, 20, 30, 40, 50) if kind == "gauge" else (0, 100, 110, 200, 210)
    power = log(6 * NS, kind, values=values, uncertainty_ns=0)
    there = trace(5 * NS, uncertainty_ns=NS // 4)
    rows = wattribute.attribute(there, signals=power).rows
    off = wattribute.attribute(there, signals=power, offset=shift).rows
    low, high = (dict(zip(rows["frame"], rows[f"self_{which}_j"], strict=True)) for which in ("low", "high"))
    for frame, joules in zip(off["frame"], off["self_j"], strict=True):
        assert low[frame] - 1e-9 <= joules <= high[frame] + 1e-9


def test_a_gauge_of_which_nothing_is_known_has_a_wide_range_and_no_hard_limit():
    rows = wattribute.attribute(trace(boot="b"), signals=replace(log(boot="b"), clock=Clock(1000, 8000, 4000))).rows
    assert (rows["self_low_j"] <= 0.9 * rows["self_j"]).all()
    assert (rows["self_high_j"] >= 1.1 * rows["self_j"]).all()
    assert rows["self_hard_high_j"].null_count() == len(rows)  # no cap is known


@pytest.mark.parametrize(
    ("signals", "offset", "error", "text"),
    [
        ([log()], None, NoDataError, "--offset 0"),
        ([log(500 * NS)], None, NoDataError, "begins 491 s after it ends"),
        ([log()], -100.0, NoDataError, "ends 96 s before it begins"),
        ([], 1.0, OptionError, "name the log"),
        ([log()], float("nan"), OptionError, "not a time"),
        ([trace()], 0.0, NoDataError, "no readings"),
    ],
)
def test_what_cannot_be_joined_says_what_to_do(signals, offset, error, text):
    with pytest.raises(error, match=text):
        join(trace(5 * NS), signals, offset)


def test_a_log_is_of_the_host_where_the_program_ran():
    assert join(trace(), [log()], 0.0).signals[0].host == "n01"
    renamed = join(trace(), [log(host="container")], 0.0)
    assert renamed.devices[0].host == "n01"
    assert "'container' is taken to be 'n01'" in renamed.problems[0].message


def test_logs_replace_readings_of_their_name_and_can_be_several():
    once = join(trace(), [log()], 0.0)
    again = join(once, [log(values=(1, 1, 1)), replace(log(), signals=(replace(log().signals[0], name="other"),))], 0.0)
    assert [(signal.name, len(signal)) for signal in again.signals] == [("power", 3), ("other", 5)]
    assert "replaced" in {problem.kind for problem in again.problems}


def test_a_joined_recording_is_saved_with_its_doubt(tmp_path):
    joined = wattribute.read(TORCH, signals=[SMI])
    wattribute.save(joined, tmp_path / "joined.watt")
    again = wattribute.load(tmp_path / "joined.watt")
    assert again.signals[0].clock_error_s == joined.signals[0].clock_error_s == 0.002
    before, after = (wattribute.attribute(one).rows for one in (joined, again))
    assert before.equals(after)


def test_an_attribution_asked_again_is_not_joined_again():
    found = wattribute.attribute(TORCH, signals=[SMI])
    again = wattribute.attribute(found.recording, found.question)
    assert again.rows.equals(found.rows)
    sums = wattribute.sql(TORCH, "select sum(self_j) as j from attribution", signals=[SMI])
    assert sums["j"][0] == pytest.approx(found.rows["self_j"].sum())


def test_a_profile_without_a_timeline_gets_mean_power_of_the_time_it_ran():
    timeless = replace(trace(5 * NS), metadata={"timeline": "none", "clock": {}})
    # wall clocks: the program ran from 1 to 5 s of the log, which ends at 4 s
    found = wattribute.attribute(timeless, signals=log(4 * NS))
    assert found.devices["estimated"].all()
    mean_w = (25 + 35 + 45) / 3
    assert self_j(found) == pytest.approx({"train": 1.5 * mean_w, "step": 0.5 * mean_w})
    # no wall clock: the mean of the whole log; counted samples share all of its energy, 120 J
    found = wattribute.attribute(replace(timeless, clock=Clock(NS, 0, 4 * NS)), signals=log())
    assert self_j(found) == pytest.approx({"train": 1.5 * 30, "step": 0.5 * 30})
    counted = replace(timeless, clock=Clock(NS, 0, 4 * NS), metadata={"timeline": "samples"})
    found = wattribute.attribute(counted, signals=log())
    assert found.devices["measured_j"][0] == pytest.approx(120)
    assert self_j(found) == pytest.approx({"train": 120 * 1.5 / 4, "step": 120 * 0.5 / 4})


def test_every_verb_that_attributes_takes_a_log(tmp_path, capsys, monkeypatch):
    from wattribute.cli import main

    for verb in (["attribute", "--format", "json"], ["export", "--to", "csv", "-o", str(tmp_path / "out")]):
        monkeypatch.setattr("sys.argv", ["wattribute", verb[0], str(TORCH), "--signals", str(SMI), *verb[1:]])
        with pytest.raises(SystemExit) as done:
            main()
        assert not done.value.code
    assert "ampere_sgemm_128x64_nn" in capsys.readouterr().out
    assert "41.25" in (tmp_path / "out" / "attribution.csv").read_text()
