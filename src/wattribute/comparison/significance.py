"""Two groups of runs, many keys at once: means, Welch's t, studentised bootstrap, Holm, effect size, runs needed.

Pure functions over arrays with a row per run and a column per key; NumPy only. :mod:`.compare` puts names to the
columns and words to the results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BOOTSTRAP_FROM = 10  # runs on each side; below, a bootstrap has too few values to draw from
RESAMPLES = 9_999
POWER = 0.8  # the chance with which "the runs needed" shall find a change of the size that was seen
MOST_RUNS = 100_000
FEW_DOF, MANY_DOF = 5.0, 200.0  # degrees of freedom


@dataclass(frozen=True)
class Difference:
    """What the means of two groups of runs say, per key: B − A, and B / A − 1 (``change``), with intervals."""

    delta: Floats
    delta_low: Floats
    delta_high: Floats
    change: Floats  # NaN where A is 0
    change_low: Floats
    change_high: Floats
    p: Floats
    error: Floats  # standard error of delta
    dof: Floats

    @property
    def change_range(self) -> tuple[Floats, Floats]:
        """The interval of ``change``; it contains 0 where that of ``delta`` does, and nothing falls by more than all.

        The delta method sees little spread in a ratio near 0, however far the runs of A scatter.
        """
        is_open = (self.delta_low <= 0) & (self.delta_high >= 0)
        low = np.where(is_open, np.minimum(self.change_low, 0), self.change_low)
        high = np.where(is_open, np.maximum(self.change_high, 0), self.change_high)
        return np.maximum(low, -1), high


def t_cdf(t: npt.ArrayLike, dof: npt.ArrayLike) -> Floats:
    """P(T ≤ t) of Student's distribution, by the incomplete beta function."""
    t, dof = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(dof, np.float64))
    tail = 0.5 * _incomplete_beta(dof / 2, np.full(dof.shape, 0.5), dof / (dof + t * t))
    return np.where(t > 0, 1 - tail, tail)


def t_tails(t: npt.ArrayLike, dof: npt.ArrayLike) -> Floats:
    """P(|T| ≥ |t|), exact far out in the tails too."""
    t, dof = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(dof, np.float64))
    return _incomplete_beta(dof / 2, np.full(dof.shape, 0.5), dof / (dof + t * t))


def t_quantile(p: float, dof: npt.ArrayLike) -> Floats:
    """The t that P(T ≤ t) = p ≥ 0.5 belongs to.

    Newton's method from the normal quantile, which lies on the left of the root: the distribution function is concave
    there, so the steps never pass the root. Above MANY_DOF the expansion around the normal quantile is as exact, and
    quick; above a few it is a better place to start from.
    """
    dof = np.asarray(dof, np.float64)
    z = NormalDist().inv_cdf(p)
    few = np.minimum(dof, MANY_DOF)
    t = np.where(dof > FEW_DOF, _far_quantile(z, np.maximum(dof, FEW_DOF)), z)
    log_scale = _log_gamma((few + 1) / 2) - _log_gamma(few / 2) - 0.5 * np.log(few * math.pi)
    for _ in range(60 if np.any(dof < MANY_DOF) else 0):
        density = np.exp(log_scale - (few + 1) / 2 * np.log1p(t * t / few))
        step = (p - t_cdf(t, few)) / density
        t = t + step
        if np.all(np.abs(step) <= 1e-11 * np.abs(t) + 1e-15):
            break
    return np.where(dof < MANY_DOF, t, _far_quantile(z, np.maximum(dof, MANY_DOF)))


def _far_quantile(z: float, dof: Floats) -> Floats:
    """Student's quantile from the normal one, to the fourth order in 1 / dof (Abramowitz and Stegun 26.7.5)."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return np.asarray(sum(term / dof**order for order, term in enumerate(terms)))


def welch(a: Floats, b: Floats, confidence: float = 0.95) -> Difference:
    """Welch's test of the means and its intervals; the relative change by the delta method."""
    mean_a, mean_b, share_a, share_b = _moments(a, b)
    delta, error = mean_b - mean_a, np.sqrt(share_a + share_b)
    dof = _satterthwaite(share_a, share_b, len(a), len(b))
    half = t_quantile(0.5 + confidence / 2, dof) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(error > 0, t_tails(np.where(error > 0, delta / error, 0), dof), np.where(delta == 0, 1.0, 0.0))
    change, change_error, change_dof = _change(mean_a, mean_b, share_a, share_b, len(a), len(b))
    change_half = t_quantile(0.5 + confidence / 2, change_dof) * change_error
    return Difference(
        delta, delta - half, delta + half, change, change - change_half, change + change_half, p, error, dof
    )


def bootstrap(a: Floats, b: Floats, confidence: float = 0.95, seed: int = 0) -> Difference:
    """As :func:`welch`, with the distribution of t taken from resampled runs instead of Student's.

    Whole runs are drawn, so that keys keep their correlation. The number of resamples grows with the keys: Holm's
    correction multiplies p by their number, and the smallest p a bootstrap can give is 1 / (resamples + 1).
    """
    base = welch(a, b, confidence)
    mean_a, mean_b, share_a, share_b = _moments(a, b)
    change_error = _change(mean_a, mean_b, share_a, share_b, len(a), len(b))[1]
    resamples = max(RESAMPLES, 40 * a.shape[1])
    generator = np.random.default_rng(seed)
    draws_a, draws_b = (_draws(generator, resamples, len(side)) for side in (a, b))
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    columns = {name: np.array(getattr(base, name)) for name in Difference.__dataclass_fields__}
    for key in range(a.shape[1]):
        if not base.error[key] > 0:
            continue  # all runs equal: there is nothing to resample
        delta_t, change_t = _studentised(a[:, key], b[:, key], draws_a, draws_b)
        low_t, high_t = np.quantile(delta_t, tails)
        columns["delta_low"][key] = base.delta[key] - high_t * base.error[key]
        columns["delta_high"][key] = base.delta[key] - low_t * base.error[key]
        seen = abs(base.delta[key] / base.error[key])
        columns["p"][key] = (1 + np.count_nonzero(np.abs(delta_t) >= seen)) / (resamples + 1)
        if change_t is not None:
            low_t, high_t = np.quantile(change_t, tails)
            columns["change_low"][key] = base.change[key] - high_t * change_error[key]
            columns["change_high"][key] = base.change[key] - low_t * change_error[key]
    return Difference(**columns)


def holm(p: Floats, weights: Floats | None = None) -> Floats:
    """P-values corrected for their number (Holm's step-down; with weights, Holm's weighted one)."""
    weights = np.ones(len(p)) if weights is None else weights
    adjusted = np.empty(len(p))
    left, worst = float(weights.sum()), 0.0
    for at in np.argsort(p / weights, kind="stable"):
        worst = max(worst, min(1.0, float(p[at] * left / weights[at])))
        adjusted[at] = worst
        left -= float(weights[at])
    return adjusted


def hedges_g(a: Floats, b: Floats) -> Floats:
    """The difference in units of the run-to-run spread, corrected for few runs; NaN without any spread."""
    spread = np.sqrt((a.var(axis=0, ddof=1) + b.var(axis=0, ddof=1)) / 2)
    few = 1 - 3 / (4 * (len(a) + len(b) - 2) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(spread > 0, few * (b.mean(axis=0) - a.mean(axis=0)) / spread, np.nan)


def detectable(a: Floats, b: Floats, confidence: float = 0.95) -> Floats:
    """The noise floor: the smallest difference these many runs would find, four times out of five."""
    _, _, share_a, share_b = _moments(a, b)
    dof = _satterthwaite(share_a, share_b, len(a), len(b))
    return np.asarray(_reach(dof, confidence) * np.sqrt(share_a + share_b))


def runs_needed(spread_a: Floats, spread_b: Floats, delta: Floats, confidence: float = 0.95) -> Floats:
    """Runs per side that would find a difference this large, four times out of five; NaN if beyond MOST_RUNS."""
    variance = spread_a**2 + spread_b**2
    normal = NormalDist().inv_cdf(0.5 + confidence / 2) + NormalDist().inv_cdf(POWER)
    with np.errstate(divide="ignore", invalid="ignore"):
        runs = np.where(variance > 0, np.floor(variance * (normal / delta) ** 2), 0)
    hopeless = (runs > MOST_RUNS) | (delta == 0)
    runs = np.clip(runs, 2, MOST_RUNS)
    while True:  # Student's reach is a little longer than the normal one: add runs one by one
        reach = np.array([_reach_of(float(number), confidence) for number in runs])
        short = (variance / runs * reach**2 > delta**2) & ~hopeless
        if not short.any():
            return np.where(hopeless, np.nan, runs)
        runs = runs + short


@lru_cache(maxsize=4096)
def _reach_of(runs: float, confidence: float) -> float:
    """The reach of so many runs on each side: asked for again and again with the same small numbers."""
    return float(_reach(2.0 * (runs - 1), confidence))


def _reach(dof: npt.ArrayLike, confidence: float) -> Floats:
    """How many standard errors a difference must have to be detected with probability POWER."""
    return t_quantile(0.5 + confidence / 2, dof) + t_quantile(POWER, dof)


def _moments(a: Floats, b: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Both means, and the variance of each mean."""
    return a.mean(axis=0), b.mean(axis=0), a.var(axis=0, ddof=1) / len(a), b.var(axis=0, ddof=1) / len(b)


def _change(
    mean_a: Floats, mean_b: Floats, share_a: Floats, share_b: Floats, runs_a: int, runs_b: int
) -> tuple[Floats, Floats, Floats]:
    """B / A − 1, its standard error and degrees of freedom."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(mean_a != 0, mean_b / mean_a, np.nan)
        scaled = np.where(np.isnan(ratio), 0, ratio**2 * share_a)
        error = np.sqrt(scaled + share_b) / np.abs(np.where(mean_a != 0, mean_a, np.nan))
    return ratio - 1, error, _satterthwaite(scaled, share_b, runs_a, runs_b)


def _satterthwaite(share_a: Floats, share_b: Floats, runs_a: int, runs_b: int) -> Floats:
    """Welch's degrees of freedom; those of equal spreads where there is none."""
    below = share_a**2 / (runs_a - 1) + share_b**2 / (runs_b - 1)
    pooled = float(runs_a + runs_b - 2)
    return np.where(below > 0, (share_a + share_b) ** 2 / np.where(below > 0, below, 1), pooled)


def _draws(generator: np.random.Generator, resamples: int, runs: int) -> Floats:
    """How often each run is drawn in each resample."""
    return generator.multinomial(runs, np.full(runs, 1 / runs), size=resamples).astype(np.float64)


def _studentised(a: Floats, b: Floats, draws_a: Floats, draws_b: Floats) -> tuple[Floats, Floats | None]:
    """(delta* − delta) / error* of each resample, and the same for the relative change where A is not 0."""
    mean_a, mean_b = float(a.mean()), float(b.mean())
    star_a, share_a = _resampled(a - mean_a, draws_a)
    star_b, share_b = _resampled(b - mean_b, draws_b)
    delta_t = _ratio(star_b - star_a, np.sqrt(share_a + share_b))
    if mean_a == 0:
        return delta_t, None
    ratio = (star_b + mean_b) / (star_a + mean_a)
    error = np.sqrt(ratio**2 * share_a + share_b) / np.abs(star_a + mean_a)
    return delta_t, _ratio(ratio - mean_b / mean_a, error)


def _resampled(centred: Floats, draws: Floats) -> tuple[Floats, Floats]:
    """Mean of each resample and the variance of that mean."""
    runs = len(centred)
    mean = draws @ centred / runs
    square = draws @ centred**2 / runs
    return mean, np.maximum(square - mean**2, 0) / (runs - 1)


def _ratio(above: Floats, below: Floats) -> Floats:
    """t of a resample; one that drew the same run only has no spread and says nothing: it counts as far out."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below > 0, above / np.where(below > 0, below, 1), np.copysign(np.finfo(float).max, above))


def _log_gamma(values: Floats) -> Floats:
    return np.array([math.lgamma(v) for v in values.ravel()]).reshape(values.shape)


def _incomplete_beta(a: Floats, b: Floats, x: Floats) -> Floats:
    """The regularised incomplete beta function, by Lentz's continued fraction on the side where it converges."""
    flip = x > (a + 1) / (a + b + 2)
    p, q, y = np.where(flip, b, a), np.where(flip, a, b), np.where(flip, 1 - x, x)
    with np.errstate(divide="ignore"):
        front = np.exp(_log_gamma(p + q) - _log_gamma(p) - _log_gamma(q) + p * np.log(y) + q * np.log1p(-y) - np.log(p))
    result: Floats = front * _continued_fraction(p, q, y)
    return np.asarray(np.where(flip, 1 - result, result))


def _continued_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    tiny = 1e-300
    c = np.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / np.where(np.abs(d) < tiny, tiny, d)
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = np.ones_like(x)
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = 1 + term / c
            c = np.where(np.abs(c) < tiny, tiny, c)
            step = d * c
            value = value * step
        if np.all(np.abs(step - 1) < 1e-15):
            break
    return value
