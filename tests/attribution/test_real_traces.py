"""Reference numbers of real traces: what a published report said, and exact linear attribution."""

from __future__ import annotations

import json
from fractions import Fraction

import polars as pl
import pytest

import wattribute
from wattribute.engines import attribute


@pytest.fixture(scope="module")
def oracles(shared):
    return json.loads((shared / "oracles" / "oracles.json").read_text())


@pytest.fixture(scope="module")
def simple(shared):
    return wattribute.read(shared / "traces" / "simple-mi300")


@pytest.fixture(scope="module")
def frontier(shared):
    return wattribute.read(shared / "traces" / "frontier-hpl-partial")


def device(found, name, host=None):
    table = found.devices.filter(pl.col("device") == name)
    (row,) = (table if host is None else table.filter(pl.col("host") == host)).to_dicts()
    return row


def by_frame(found, name, host=None):
    table = found.rows.filter(pl.col("device") == name)
    rows = (table if host is None else table.filter(pl.col("host") == host)).to_dicts()
    return {row["frame"]: row for row in rows}


def books_balance(found):
    for row in found.devices.to_dicts():
        assert row["attributed_j"] + row["idle_j"] == pytest.approx(row["measured_j"], rel=1e-9)
        sums = sum(
            r["self_j"] for r in found.rows.to_dicts() if (r["device"], r["host"]) == (row["device"], row["host"])
        )
        assert sums == pytest.approx(row["attributed_j"], rel=1e-9, abs=1e-12)


def test_simple_linear_is_exact(simple, oracles):
    found = attribute(simple)
    for number in (0, 1):
        exact = oracles["simple_mi300"]["exact"][f"GPU-{number}"]
        kernel = float(Fraction(exact["linear_kernel_uJ_exact"]) / 10**6)
        row = by_frame(found, f"GPU {number}")[exact["kernel"]]
        assert row["self_j"] == pytest.approx(kernel, rel=1e-12)
        assert row["total_j"] == row["self_j"]
        assert row["calls"] == 1
        assert row["self_low_j"] <= row["self_j"] <= row["self_high_j"]
        books = device(found, f"GPU {number}")
        assert books["measured_j"] == exact["seed_total_uJ"] / 1e6
        assert books["idle_j"] == pytest.approx(exact["linear_idle_uJ"] / 1e6, rel=1e-9)
    for number in (2, 3):
        books = device(found, f"GPU {number}")
        idle = oracles["simple_mi300"]["exact"][f"GPU-{number}"]["linear_idle_uJ"] / 1e6
        assert (books["measured_j"], books["attributed_j"], books["idle_j"]) == (idle, 0.0, idle)
    books_balance(found)


def test_simple_window_reproduces_the_published_numbers(simple, oracles):
    found = attribute(simple, method="window")
    for number in (0, 1):
        exact = oracles["simple_mi300"]["exact"][f"GPU-{number}"]
        row = by_frame(found, f"GPU {number}")[exact["kernel"]]
        assert row["self_j"] == pytest.approx(exact["seed_kernel_uJ"] / 1e6, abs=1e-6)
        assert row["self_low_j"] <= row["self_j"] <= row["self_high_j"] + 1e-9
        assert device(found, f"GPU {number}")["idle_j"] == pytest.approx(exact["seed_idle_uJ"] / 1e6, abs=1e-6)
    books_balance(found)


def test_simple_host_self_and_total(simple, oracles):
    found = attribute(simple, of="host")
    for number in range(4):
        rows = by_frame(found, f"GPU {number}")
        expected = oracles["simple_mi300"]["master_thread_linear_exclusive_inclusive"]
        assert set(rows) == set(expected)
        for frame, want in expected.items():
            assert rows[frame]["self_j"] == pytest.approx(want["excl_J"][number], rel=1e-9)
            assert rows[frame]["total_j"] == pytest.approx(want["incl_J"][number], rel=1e-9)
            assert rows[frame]["calls"] == want["count"]
            assert rows[frame]["self_ns"] == pytest.approx(want["excl_s"] * 1e9, abs=1)
    books_balance(found)
    # what lies outside main is idle: inside 2237.285868585, all 2237.380365
    assert device(found, "GPU 0")["attributed_j"] == pytest.approx(2237.285868585, rel=1e-9)


@pytest.mark.parametrize("integrate", ["trapezoid", "step"])
def test_power_integrals(simple, oracles, integrate):
    found = attribute(simple, metric="current_socket_power", integrate=integrate)
    key = {"trapezoid": "power_trapz_J", "step": "power_left_J"}[integrate]
    for number, want in oracles["simple_mi300"]["power_integrals"].items():
        assert device(found, f"GPU {number}")["measured_j"] == pytest.approx(want[key], rel=1e-9)
    low, value, high = (found.rows[f"self_{name}"] for name in ("low_j", "j", "high_j"))
    assert ((low <= value) & (value <= high)).all()


def test_a_constant_metric_is_no_trouble(simple):
    found = attribute(simple, metric="memory_busy_percent:device=0", statistics=True)
    assert found.rows["unit"].unique().to_list() == ["%·s"]


@pytest.mark.parametrize("share", ["even", "process", "full"])
@pytest.mark.parametrize("method", ["linear", "window"])
def test_books_balance_on_every_trace(shared, method, share):
    """Whatever was recorded with a trace, metric by metric; the order of rows and their bits repeat."""
    asked = {"simple-mi300": ["energy_count", "current_socket_power"], "frontier-hpl-partial": ["energy_count"]}
    asked |= {"ping-pong-papi": ["TOT_CYC", "L2_TCM", "BR_MSP"], "cloverleaf-openacc-cuda": ["mem_usage"]}
    for trace, metrics in asked.items():
        recording = wattribute.read(shared / "traces" / trace)
        for metric in metrics:
            found = attribute(recording, metric=metric, method=method, share=share, by="device,process,frame")
            again = attribute(
                recording, metric=metric, method=method, share=share, by="device,process,frame", threads=1
            )
            assert found.rows.equals(again.rows)
            unit = "j" if "self_j" in found.rows.columns else "value"
            for row in found.devices.to_dicts():
                used, idle, measured = (row[f"{name}_{unit}"] for name in ("attributed", "idle", "measured"))
                if share == "full":
                    assert used + idle >= measured * (1 - 1e-9)
                else:
                    assert used + idle == pytest.approx(measured, rel=1e-9)
            assert found.rows[f"self_{unit}"].sum() == pytest.approx(
                found.devices[f"attributed_{unit}"].sum(), rel=1e-9, abs=1e-12
            )


def test_an_archive_gives_the_same_bits(simple, frontier, tmp_path):
    for name, recording in (("simple", simple), ("frontier", frontier)):
        wattribute.save(recording, tmp_path / f"{name}.watt")
        one, two = attribute(recording, by="device,path"), attribute(tmp_path / f"{name}.watt", by="device,path")
        assert one.rows.equals(two.rows)
        assert one.devices.equals(two.devices)


HOST = "frontier09408"


def test_frontier_infers_the_map(frontier, oracles):
    found = attribute(frontier)
    expected = oracles["frontier_hpl_partial"]["attribution"][HOST]["linear_correct_map"]
    for name, want in expected.items():
        books = device(found, f"GPU {name[-1]}", HOST)
        assert books["measured_j"] == pytest.approx(want["total_J"], rel=1e-12)
        assert books["attributed_j"] == pytest.approx(want["busy_J"], rel=1e-9)
        assert books["idle_j"] == pytest.approx(want["idle_J"], rel=1e-9)
        rows = by_frame(found, f"GPU {name[-1]}", HOST)
        for frame, joules in want.get("top", []):
            assert rows[frame]["self_j"] == pytest.approx(joules, rel=1e-9)
    for odd in (1, 3, 5, 7):  # a counter of two dies is that of the even one
        entry = device(found, f"GPU {odd}", HOST)
        assert (entry["counted"], entry["why"]) == (False, "did not move")
    reason = device(found, "GPU 2", HOST)["reason"]
    assert "PCI bus 201" in reason
    assert "PCI bus 206" in reason
    books_balance(found)


MAPS = [f"{HOST}/device={2 * i}$ -> HIP Context {i}" for i in range(4)]


@pytest.mark.parametrize(("oracle", "method"), [("seed", "window"), ("linear_seed_map", "linear")])
def test_frontier_with_the_map_of_an_earlier_tool(frontier, oracles, oracle, method):
    found = attribute(frontier, maps=MAPS, method=method)
    for want in oracles["frontier_hpl_partial"]["attribution"][HOST][oracle].values():
        books = device(found, f"GPU {want['metric_device']}", HOST)
        rel = 1e-9 if method == "linear" else 1e-6
        assert books["attributed_j"] == pytest.approx(want.get("attributed_J", want.get("busy_J")), rel=rel)
        assert books["idle_j"] == pytest.approx(want["idle_J"], rel=rel)
        rows = by_frame(found, f"GPU {want['metric_device']}", HOST)
        for frame, joules in want.get("top", []):
            assert rows[frame]["self_j"] == pytest.approx(joules, rel=rel)
    books_balance(found)
