"""Comparison of two groups of runs: hand-computed cases, the exact split, the words, bad input."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute import WattributeError
from wattribute.comparison.groups import compare_tables, split

VALUES = ["energy_j", "time_s", "low_j", "high_j"]


def tables(runs, prefix, keys, by="frame"):
    """Tables of runs given as a list of {key: (energy, time)}; bounds are ±10 %."""
    rows = [(f"{prefix}{i}", k, e, t, 0.9 * e, 1.1 * e) for i, run in enumerate(runs) for k, (e, t) in run.items()]
    sums = [tuple(sum(v[at] for v in run.values()) for at in (0, 1)) for run in runs]
    whole = [(f"{prefix}{i}", e, t, e, e) for i, (e, t) in enumerate(sums)]
    return (
        pl.DataFrame(rows, schema=["run", by, *VALUES], orient="row"),
        pl.DataFrame(whole, schema=["run", *VALUES], orient="row"),
    )


def compared(a, b, **options):
    (rows_a, whole_a), (rows_b, whole_b) = tables(a, "a", None), tables(b, "b", None)
    return compare_tables(rows_a, rows_b, whole_a, whole_b, ("frame",), **options)


def noisy(seed, runs, factor=1.0, spread=0.01):
    generator = np.random.default_rng(seed)
    means = {"dgemm": (1000.0, 4.0), "copy": (200.0, 1.0), "mpi": (100.0, 2.0)}
    made = []
    for _ in range(runs):
        scale = {k: generator.normal(1, spread) * (factor if k == "dgemm" else 1) for k in means}
        made.append({k: (e * scale[k], t * scale[k]) for k, (e, t) in means.items()})
    return made


def row(comparison, key):
    return comparison.rows.row(by_predicate=pl.col("frame") == key, named=True)


def test_by_hand():
    # f: 10 J in 2 s → 12 J in 3 s. Power 5 W → 4 W, mean 4.5; ΔT = 1 → 4.5 J is time;
    # mean time 2.5 s, ΔP = −1 W → −2.5 J is power; 4.5 − 2.5 = 2.
    found = row(compared([{"f": (9.0, 2.0)}, {"f": (11.0, 2.0)}], [{"f": (11.0, 3.0)}, {"f": (13.0, 3.0)}]), "f")
    assert (found["energy_a_j"], found["energy_b_j"], found["delta_j"]) == (10, 12, 2)
    assert found["change"] == pytest.approx(0.2)
    assert (found["time_part_j"], found["power_part_j"]) == (4.5, -2.5)
    assert (found["power_a_w"], found["power_b_w"]) == (5, 4)
    # s² = 2 on both sides, error = sqrt(2/2 + 2/2) = sqrt(2), t = sqrt(2) with 2 degrees of freedom:
    # p = 1 − t / sqrt(2 + t²) = 1 − sqrt(2) / 2
    assert found["p"] == pytest.approx(1 - 2**0.5 / 2)
    assert found["changed"] is False


TIMES = st.just(0.0) | st.floats(1e-9, 1e6)  # a tick is the least time there is


@given(st.floats(0, 1e6), st.floats(0, 1e6), TIMES, TIMES)
def test_the_split_is_exact(energy_a, energy_b, time_a, time_b):
    energy_a, energy_b = (energy_a if time_a else 0.0), (energy_b if time_b else 0.0)
    part = float(split(*(np.array([x]) for x in (energy_a, energy_b, time_a, time_b)))[0])
    if not (time_a and time_b):
        assert part == pytest.approx(energy_b - energy_a, rel=1e-12)  # what one side did not run is all time
        return
    exact = [Fraction(x) for x in (energy_a, energy_b, time_a, time_b)]
    power_a, power_b = exact[0] / exact[2], exact[1] / exact[3]
    time_part = (power_a + power_b) / 2 * (exact[3] - exact[2])
    power_part = (exact[2] + exact[3]) / 2 * (power_b - power_a)
    assert time_part + power_part == exact[1] - exact[0]
    assert part == pytest.approx(float(time_part), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("runs", [8, 12])
def test_a_changed_frame_is_found_and_named(runs):
    found = compared(noisy(1, runs), noisy(2, runs, 0.9))
    assert found.test == ("welch" if runs == 8 else "bootstrap")
    assert found.rows["frame"][0] == "dgemm"
    assert found.rows["changed"].to_list() == [True, False, False]
    assert row(found, "dgemm")["change_low"] < -0.1 < row(found, "dgemm")["change_high"]
    assert row(found, "dgemm")["verdict"] == "less, shorter"
    mean_time = (pl.col("time_a_s") + pl.col("time_b_s")) / 2
    power_part = found.rows.select(mean_time * (pl.col("power_b_w") - pl.col("power_a_w"))).to_series()
    assert found.rows["power_part_j"].to_list() == pytest.approx(power_part.to_list(), rel=1e-9, abs=1e-9)
    parts = found.rows.select(pl.col("time_part_j") + power_part).to_series()
    assert parts.to_list() == pytest.approx(found.rows["delta_j"].to_list(), rel=1e-9, abs=1e-9)
    assert found.verdict.startswith("−7.")
    assert "of the saving" in found.verdict
    assert "dgemm" in found.verdict


def test_equal_runs_say_so_and_what_would_settle_it():
    found = compared(noisy(1, 8), noisy(3, 8))
    assert found.whole["changed"] is False
    assert "no difference found above the noise floor of" in found.verdict
    assert "more runs of each would settle one of this size" in found.verdict
    assert not found.exceeds(0.0)
    assert found.whole["more_runs"] > 0


def test_fail_above_needs_both_size_and_certainty():
    worse = compared(noisy(1, 8), noisy(2, 8, 1.2))  # dgemm is 77 %: +15 %
    assert worse.exceeds(0.05)
    assert not worse.exceeds(0.2)
    assert not compared(noisy(1, 8), noisy(2, 8, 0.5)).exceeds(0.05)
    shaky = compared(noisy(1, 2, 1.0, 0.3), noisy(5, 2, 1.2, 0.3))
    assert shaky.whole["change"] > 0.05
    assert not shaky.exceeds(0.05)


def test_single_runs_are_judged_by_their_bounds():
    found = compared([{"f": (100.0, 1.0), "g": (100.0, 1.0)}], [{"f": (70.0, 1.0), "g": (95.0, 1.0)}])
    assert found.test == "bounds"
    # f: 63…77 against 90…110: surely less, by 13…47 J; g: 85.5…104.5 against 90…110 overlaps
    assert (row(found, "f")["delta_low_j"], row(found, "f")["delta_high_j"]) == pytest.approx((-47, -13))
    assert row(found, "f")["changed"] is True
    assert row(found, "g")["changed"] is False
    assert row(found, "g")["verdict"] == "bounds overlap"
    assert "one run each" in found.verdict


def test_single_runs_without_bounds_cannot_be_judged():
    (rows, whole), (other, whole_b) = (tables([{"f": (x, 1.0)}], p, None) for p, x in (("a", 10.0), ("b", 5.0)))
    none = pl.lit(None, pl.Float64)
    found = compare_tables(
        rows.with_columns(low_j=none, high_j=none),
        other,
        whole.with_columns(low_j=none, high_j=none),
        whole_b,
        ("frame",),
    )
    assert found.whole["changed"] is None
    assert row(found, "f")["verdict"] == "no bounds, cannot tell"
    assert "cannot tell" in found.verdict
    assert not found.exceeds(0.0)


def test_a_key_of_one_side_only():
    found = compared([{"f": (10.0, 1.0), "old": (4.0, 2.0)}] * 3, [{"f": (10.0, 1.0), "new": (6.0, 3.0)}] * 3)
    assert row(found, "old")["verdict"] == "only in A"
    assert row(found, "new")["verdict"] == "only in B"
    assert row(found, "new")["change"] is None
    assert (row(found, "new")["time_part_j"], row(found, "new")["power_part_j"]) == (6, 0)
    assert (row(found, "old")["runs_a"], row(found, "old")["runs_b"]) == (3, 0)


def test_keys_may_be_null_and_lists():
    a, whole = tables([{"f": (10.0, 1.0)}] * 2, "a", None)
    a = a.with_columns(frame=pl.lit(None, pl.String))
    found = compare_tables(a, a, whole, whole, ("frame",))
    assert found.rows["energy_a_j"].to_list() == [10]


def test_bad_input_has_clear_errors():
    a, whole = tables([{"f": (10.0, 1.0)}], "a", None)
    with pytest.raises(WattributeError, match="did you mean 'frame'"):
        compare_tables(a, a, whole, whole, ("fram",))
    with pytest.raises(WattributeError, match="group B has no run"):
        compare_tables(a, a, whole, whole.clear(), ("frame",))
    with pytest.raises(WattributeError, match=r"between 0\.5 and 1"):
        compare_tables(a, a, whole, whole, ("frame",), confidence=95)


def test_long_names_leave_the_verdict_readable():
    name = "Cijk_" + "x" * 600
    found = compared([{name: (100.0, 1.0), "f": (1.0, 1.0)}] * 2, [{name: (50.0, 0.5), "f": (1.0, 1.0)}] * 2)
    assert len(found.verdict) < 160
    assert "Cijk_xxx" in found.verdict


def test_what_one_side_did_not_run_is_all_time_without_a_rounding_error():
    found = compared([{"f": (1.0, 1.0)}] * 2, [{"f": (1.0, 1.0), "new": (7.14e3 / 3, 0.7 / 3)}] * 2)
    assert row(found, "new")["power_part_j"] == 0
