"""Energy per unit of work: counts belong to the spans around them, and divide what those used."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import archive, read
from wattribute.comparison import Ensemble, compare
from wattribute.engines import attribute
from wattribute.errors import NoDataError, OptionError
from wattribute.model import Signal, counts
from wattribute.testing.recordings import HOST, RecordingBuilder


def counted(times, values, location=0, name="tokens", kind="delta"):
    return Signal(
        name, kind, counts.UNIT, np.array(times, np.int64), np.array(values, float), host=HOST, location=location
    )


def server(*more, threads=("serve 0..10, prefill 0..4, decode 4..9",), signals=()):
    """One thread, 100 J in 10 ticks: 10 W all the time."""
    made = RecordingBuilder()
    for at, rows in enumerate(threads):
        made.thread(rows, f"t{at}")
    return made.counter("package 0", [0, 100], every=10).signals(*signals, *more).recording()


def test_counts_divide_the_totals_of_the_spans_around_them():
    # 8 tokens at 2 (prefill), 1 each at 4, 6, 8 (decode; 4 is its first tick), 5 at 9 (serve alone)
    recording = server(counted([2, 4, 6, 8, 9], [8, 1, 1, 1, 5]))
    found = attribute(recording, by="frame", per="tokens")
    rows = {row["frame"]: row for row in found.rows.to_dicts()}
    assert {name: row["count"] for name, row in rows.items()} == {"serve": 16, "prefill": 8, "decode": 3}
    assert {name: row["self_count"] for name, row in rows.items()} == {"serve": 5, "prefill": 8, "decode": 3}
    # serve: 100 J / 16; prefill: 40 J / 8; decode: 50 J / 3
    expected = {"serve": 6.25, "prefill": 5.0, "decode": 50 / 3}
    assert {name: row["j_per_unit"] for name, row in rows.items()} == pytest.approx(expected)
    assert rows["prefill"]["s_per_unit"] == pytest.approx(4 / 8)
    assert rows["prefill"]["j_per_unit_low"] == pytest.approx(rows["prefill"]["total_low_j"] / 8)
    assert rows["prefill"]["j_per_unit_high"] == pytest.approx(rows["prefill"]["total_high_j"] / 8)
    assert found.count == 16
    # what rows contribute to a token of the run adds up to what was measured per token
    assert sum(row["run_j_per_unit"] for row in rows.values()) == pytest.approx(100 / 16)


@pytest.mark.parametrize("by", ["path", "bin=5s", "reading", "device,frame", "process"])
def test_counts_are_conserved_under_any_key(by):
    recording = server(counted([2, 4, 6, 8, 9], [8, 1, 1, 1, 5]))
    found = attribute(recording, by=by, per="tokens")
    assert found.rows["self_count"].sum() == 16
    assert found.rows["self_j"].sum() == pytest.approx(100)


def test_bins_count_what_falls_into_them():
    recording = server(counted([2, 4, 6, 8, 9], [8, 1, 1, 1, 5]))
    rows = attribute(recording, by="frame,bin=5s", per="tokens").rows
    decode = rows.filter(pl.col("frame") == "decode").sort("bin")
    assert decode["count"].to_list() == [1, 2]  # at 4; at 6 and 8


def test_a_recursive_frame_counts_once():
    recording = server(counted([5], [7]), threads=["f 0..10, f 2..8"])
    (row,) = attribute(recording, by="frame", per="tokens").rows.to_dicts()
    assert (row["count"], row["self_count"], row["total_j"]) == (7, 7, pytest.approx(100))


def test_two_devices_of_a_row_count_its_work_once():
    made = RecordingBuilder().thread("serve 0..10").counter("package 0", [0, 60], every=10)
    recording = made.counter("dram 0", [0, 40], every=10, name="dram").signals(counted([3], [10])).recording()
    (row,) = attribute(recording, by="frame", per="tokens").rows.to_dicts()
    assert (row["count"], row["j_per_unit"]) == (10, pytest.approx(10.0))
    assert attribute(recording, per="tokens").rows["count"].to_list() == [10, 10]  # one row per device


def test_what_was_counted_outside_every_span_counts_for_the_run():
    recording = server(counted([3], [20], location=-1))
    found = attribute(recording, by="frame", per="tokens")
    assert found.rows["count"].to_list() == [0, 0, 0]
    assert found.rows["j_per_unit"].null_count() == 3
    assert found.count == 20
    assert found.rows["run_j_per_unit"].sum() == pytest.approx(5.0)


def test_a_window_of_time_counts_what_lies_in_it():
    recording = server(counted([2, 4, 6, 8, 9], [8, 1, 1, 1, 5]))
    found = attribute(recording, by="frame", per="tokens", begin=4, end=9)
    assert found.count == 3
    (row,) = found.rows.filter(pl.col("frame") == "decode").to_dicts()
    assert row["j_per_unit"] == pytest.approx(50 / 3)


def test_a_counter_of_that_name_counts_its_rises():
    recording = server(counted([0, 3, 8], [100, 104, 110], kind="counter"))
    found = attribute(recording, by="frame", per="tokens")
    assert found.count == 10
    rows = dict(found.rows.select("frame", "count").rows())
    assert rows == {"serve": 10, "prefill": 4, "decode": 6}


def test_an_unknown_unit_is_named():
    with pytest.raises(OptionError, match="unknown unit of work 'token'; did you mean 'tokens'"):
        attribute(server(counted([2], [8])), per="token")
    with pytest.raises(OptionError, match="did you mean 'tokens'"):
        attribute(server(counted([0, 8], [100, 110], kind="counter")), per="token")
    with pytest.raises(NoDataError, match=r"nothing was counted here.*wattribute\.count"):
        attribute(server(), per="tokens")


def test_work_that_ends_before_the_last_reading_is_nothing_to_say():
    made = RecordingBuilder().thread("serve 0..1000").counter("package 0", np.arange(1001.0))
    found = attribute(made.signals(counted(range(100), [1] * 100)).recording(), per="tokens")
    assert not found.problems


def test_a_column_of_a_table_counts(tmp_path):
    (tmp_path / "log.csv").write_text("time,package 0 energy (J),tokens\n0,0,0\n4,40,30\n10,100,70\n")
    log = read(tmp_path / "log.csv", metric_kinds=["tokens=delta:#"])
    assert counts.total(log, "tokens") == 100
    made = RecordingBuilder(10**9).thread("serve 0..10000000000").recording()
    found = attribute(made, by="frame", per="tokens", signals=log, offset=0.0)
    assert found.rows["run_j_per_unit"].to_list() == pytest.approx([1.0])


def test_an_archive_keeps_counts(tmp_path):
    recording = server(counted([2, 4], [8, 1]))
    archive.save(recording, tmp_path / "a.watt")
    expected = attribute(recording, by="path", per="tokens").rows
    assert attribute(tmp_path / "a.watt", by="path", per="tokens").rows.equals(expected)


def test_comparing_per_unit_divides_each_run_by_its_own_work():
    # B does twice the tokens with 1.5 times the energy: a quarter less per token
    a = server(counted([2], [10]))
    b = RecordingBuilder().thread("serve 0..10").counter("package 0", [0, 150], every=10)
    b = b.signals(counted([2], [20])).recording()
    found = compare(Ensemble.of({"a": a}), Ensemble.of({"b": b}), by="frame", per="tokens")
    assert found.whole["energy_a_j"] == pytest.approx(10.0)
    assert found.whole["energy_b_j"] == pytest.approx(7.5)
    assert found.whole["change"] == pytest.approx(-0.25)
    assert "all per tokens" in found.verdict
    assert found.to_dict()["per"] == "tokens"
    with pytest.raises(NoDataError, match="c counted no tokens"):
        compare(Ensemble.of({"a": a}), Ensemble.of({"c": server(counted([2], [0]))}), per="tokens")


@given(st.lists(st.tuples(st.integers(-2, 12), st.integers(0, 1000)), max_size=20))
def test_every_count_is_in_a_span_or_outside_all(events):
    times, values = [at for at, _ in events], [n for _, n in events]
    recording = server(counted(times, values), threads=["a 0..4, b 1..3, c 5..9"])
    inside = sum(n for at, n in events if 0 <= at < 4 or 5 <= at < 9)
    for by in ("frame", "path", "bin=3s"):
        found = attribute(recording, by=by, per="tokens")
        assert found.rows["self_count"].sum() == inside
        assert found.count == sum(values)


def test_metrics_of_a_trace_count(tmp_path):
    otf2 = pytest.importorskip("otf2", reason="the official writer has wheels for CPython ≤ 3.11 on x86 only")
    modes = otf2.enums.MetricMode
    with otf2.writer.open(str(tmp_path / "trace"), timer_resolution=10) as trace:
        known = trace.definitions
        group = known.location_group("rank 0", system_tree_parent=known.system_tree_node("n01", "node"))
        events = trace.event_writer_from_location(known.location("thread", group=group))
        serve, decode = known.region("serve"), known.region("decode")
        how = {"unit": "#", "value_type": otf2.enums.Type.UINT64}
        tokens = known.metric("tokens", metric_mode=modes.RELATIVE_LAST, **how)
        requests = known.metric("requests", metric_mode=modes.ACCUMULATED_START, **how)
        energy = known.metric("package 0 energy", unit="J", value_type=otf2.enums.Type.DOUBLE,
                              metric_mode=modes.ACCUMULATED_START)  # fmt: skip
        events.enter(0, serve)
        events.metric(0, energy, 0.0)
        events.metric(0, requests, 0)
        events.enter(20, decode)
        for at in (30, 40, 50):
            events.metric(at, tokens, 4)
            events.metric(at, requests, at // 10 - 2)
        events.leave(80, decode)
        events.metric(100, energy, 100.0)
        events.leave(100, serve)
    for unit, number in (("tokens", 12), ("requests", 3)):
        rows = attribute(tmp_path / "trace" / "traces.otf2", by="frame", per=unit).rows
        found = {row["frame"]: (row["count"], row["self_count"], row["j_per_unit"]) for row in rows.to_dicts()}
        assert found == {
            "serve": (number, 0, pytest.approx(100 / number)),
            "decode": (number, number, pytest.approx(60 / number)),
        }
