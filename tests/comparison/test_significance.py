"""Student's t, Welch, bootstrap and Holm against published tables and hand-computed cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wattribute.comparison import significance as s

# quantiles of Student's distribution as printed in tables (ten digits from their closed forms or NIST's tables)
TABLE = [
    (0.975, 1, 12.7062047364),
    (0.975, 2, 4.3026527297),
    (0.975, 7, 2.3646242516),
    (0.975, 14, 2.1447866879),
    (0.995, 10, 3.1692726726),
    (0.95, 30, 1.6972608866),
    (0.975, 1000, 1.9623390808),
]


@pytest.mark.parametrize(("p", "dof", "t"), TABLE)
def test_t_quantiles_are_those_of_the_tables(p, dof, t):
    assert float(s.t_quantile(p, dof)) == pytest.approx(t, rel=1e-9)
    assert float(s.t_cdf(t, dof)) == pytest.approx(p, rel=1e-9)
    assert float(s.t_cdf(-t, dof)) == pytest.approx(1 - p, rel=1e-8)
    assert float(s.t_tails(t, dof)) == pytest.approx(2 * (1 - p), rel=1e-7)


def test_two_degrees_of_freedom_have_a_closed_form_also_far_out():
    # F(t) = 1/2 + t / (2 sqrt(2 + t²)); both tails: 1 − t / sqrt(2 + t²)
    t = np.array([0.1, 1.0, 5.0, 50.0])
    assert s.t_tails(t, 2.0) == pytest.approx(1 - t / np.sqrt(2 + t * t), rel=1e-9)


def test_welch_by_hand():
    # a = 1 2 3 → mean 2, s² = 1, s²/3 = 1/3; b = 4 6 8 10 → mean 7, s² = 20/3, s²/4 = 5/3
    # delta 5, error = sqrt(2), dof = 2² / ((1/3)²/2 + (5/3)²/3) = 4 / (1/18 + 25/27) = 4 / (53/54) = 216/53
    found = s.welch(np.array([[1.0], [2], [3]]), np.array([[4.0], [6], [8], [10]]))
    assert found.delta[0] == 5
    assert found.error[0] == pytest.approx(np.sqrt(2))
    assert found.dof[0] == pytest.approx(216 / 53)
    half = float(s.t_quantile(0.975, 216 / 53)) * np.sqrt(2)
    assert (found.delta_low[0], found.delta_high[0]) == pytest.approx((5 - half, 5 + half))
    assert found.p[0] == pytest.approx(float(s.t_tails(5 / np.sqrt(2), 216 / 53)))
    # change = 7/2 − 1; its error by the delta method = sqrt((7/2)²/3 + 5/3) / 2
    assert found.change[0] == 2.5
    error = np.sqrt(12.25 / 3 + 5 / 3) / 2
    dof = (12.25 / 3 + 5 / 3) ** 2 / ((12.25 / 3) ** 2 / 2 + (5 / 3) ** 2 / 3)
    assert found.change_high[0] - 2.5 == pytest.approx(float(s.t_quantile(0.975, dof)) * error)


def test_runs_without_any_spread_are_certain_and_equal_ones_are_equal():
    same, other = np.full((3, 1), 5.0), np.full((3, 1), 6.0)
    assert s.welch(same, same).p[0] == 1
    assert s.welch(same, other).p[0] == 0
    assert s.welch(same, other).delta_low[0] == s.welch(same, other).delta_high[0] == 1
    assert np.isnan(s.hedges_g(same, other)[0])
    assert s.bootstrap(np.full((12, 1), 5.0), np.full((12, 1), 6.0)).p[0] == 0


def test_change_from_nothing_is_unknown_not_infinite():
    found = s.welch(np.zeros((3, 1)), np.array([[1.0], [2], [3]]))
    assert np.isnan(found.change[0])
    assert np.isnan(found.change_low[0])
    assert np.isnan(s.bootstrap(np.zeros((12, 1)), np.arange(12.0)[:, None]).change_low[0])


def test_bootstrap_agrees_with_student_where_student_is_right():
    generator = np.random.default_rng(5)
    a, b = generator.normal(100, 3, (40, 2)), generator.normal([103, 100], 3, (40, 2))
    student, resampled = s.welch(a, b), s.bootstrap(a, b, seed=1)
    width = student.delta_high - student.delta_low
    assert np.abs(resampled.delta_low - student.delta_low) == pytest.approx(0, abs=0.06 * width.max())
    assert np.abs(resampled.delta_high - student.delta_high) == pytest.approx(0, abs=0.06 * width.max())
    assert resampled.p[0] < 0.01
    assert resampled.p[1] == pytest.approx(student.p[1], abs=0.05)
    again = s.bootstrap(a, b, seed=1)
    assert np.array_equal(resampled.delta_low, again.delta_low)


def test_bootstrap_can_pass_holm_however_many_keys_there_are():
    a = np.random.default_rng(2).normal(100, 1, (10, 300))
    b = a.copy()
    b[:, 0] += 50
    assert s.holm(s.bootstrap(a, b).p)[0] < 0.05


def test_holm_by_hand():
    # sorted 0.01 0.02 0.03 0.5: ×4 = 0.04, ×3 = 0.06, ×2 = 0.06, ×1 = 0.5
    assert s.holm(np.array([0.5, 0.01, 0.03, 0.02])) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    # weights 2 1 1 (sum 4): 0.01/2 first: 0.01·4/2 = 0.02; then 0.015·2/1 = 0.03; then 0.9·1/1
    assert s.holm(np.array([0.01, 0.015, 0.9]), np.array([2.0, 1, 1])) == pytest.approx([0.02, 0.03, 0.9])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_never_lowers_p(p):
    p = np.array(p)
    adjusted = s.holm(p)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= 1)
    assert np.all(np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0)


def test_runs_needed_is_the_least_number_that_suffices():
    spread, delta = np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 10.0, 1.0, 1e-6])
    needed = s.runs_needed(spread, spread, delta)
    # textbook: two groups, difference of one standard deviation, 5 %, power 80 % → 17 per group
    assert needed[:3].tolist() == [17, 2, 2]
    assert np.isnan(needed[3])


def test_detectable_difference_shrinks_with_more_runs():
    values = np.random.default_rng(3).normal(100, 2, (32, 1))
    assert s.detectable(values, values)[0] < s.detectable(values[:8], values[:8])[0]
    # 8 + 8 runs, s = s_a = s_b: (t(0.975; 14) + t(0.8; 14)) · s · sqrt(2/8), t(0.8; 14) = 0.868054781
    spread = values[:8].std(ddof=1)
    assert s.detectable(values[:8], values[:8])[0] == pytest.approx(
        (2.1447866879 + 0.8680547812) * spread / 2, rel=1e-8
    )


def test_intervals_of_difference_and_change_agree():
    """One run of A is far off: the difference may be none, so the change may be none."""
    a, b = np.array([[0.03], [0.04], [0.03], [0.04], [1.2]]), np.full((5, 1), 0.035) + np.arange(5)[:, None] * 1e-4
    found = s.welch(a, b)
    assert found.delta_low[0] < 0 < found.delta_high[0]
    assert found.change_high[0] < 0
    low, high = found.change_range
    assert (low[0], high[0]) == (max(found.change_low[0], -1), 0)
