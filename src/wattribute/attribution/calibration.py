"""Calibration of a sensor from a recording with a known load: period, window, lag; with a meter also gain and offset.

``calibrate`` explains each update of a gauge by what happened before it: by the spans that ran (one unknown power each,
so that no gain can come of it), or by what an external meter read. Every window and lag of a grid, boxcar and low pass,
is fitted by least squares, the grid is made finer around the best, and blocks of updates are resampled for intervals.
The log's clock and the sensor's lag show only as their sum: what is called lag here includes the clocks' error.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import numpy.typing as npt

from ..alignment.gauges import Updates, seen_period_s, updates
from ..alignment.occupancy import Occupancy, innermost
from ..alignment.response import lines
from ..errors import FormatError, NoDataError, OptionError
from ..model import Question, Recording, Signal
from ..sensors import Line, known_lines
from ..sensors.table import Triple, truths
from .frame_keys import frame_keys
from .gauge_solve import per_block
from .join import masks, plan

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Totals = Callable[[Ints], Floats]  # columns: what each cause has amounted to before each moment

KINDS_OF = {"boxcar": ("boxcar",), "running mean": ("boxcar",), "low pass": ("low pass",)}  # a running mean is wide
WIDTHS_S = np.geomspace(0.004, 2.5, 30)
LAGS_S = np.linspace(-0.15, 0.25, 41)
STARTS, ROUNDS, REPLICATES, BLOCKS = 5, 4, 200, 20
ALLOWED, ALLOWED_BY_SPANS = 6.0, 20.0  # misfit, in scatters of one update, by which another window may be worse
BINS = 12  # of equal weight, that stand for an exponential
MOST_TELLING = 12  # by spans: what a frame draws is not constant, and that error is in every update alike
LEAST_UPDATES = 20
LEAST_CHANGE = 0.05  # of the mean reading: a load that changes less shows no window
CALIBRATED_W = 0.01  # relative: uncertainty that a meter and a steady card leave, however good the fit


class Fit(NamedTuple):
    """Readings and what the fitted sensor would have read, for a picture; seconds since the recording's start."""

    times_s: Floats
    readings_w: Floats
    fitted_w: Floats
    meter_s: Floats
    meter_w: Floats


@dataclass(frozen=True)
class Calibration:
    """A sensor as a recording shows it; ``gain`` and ``offset_w`` are None without a meter."""

    signal: str
    card: str
    kind: str
    period_s: Triple
    window_s: Triple
    lag_s: Triple
    pairs: tuple[tuple[float, float], ...]  # (gain, offset) that the resampling gave; () without a meter
    gain: Triple | None
    offset_w: Triple | None
    residual_w: float
    explained: float
    line: Line  # of the table, which stays for what was not measured
    notes: tuple[str, ...]
    fit: Fit

    @property
    def summary(self) -> str:
        """The figures in one line."""
        what = "time constant" if self.kind == "low pass" else "window"
        text = f"{self.kind}, {what} {_ms(self.window_s)}, lag {_ms(self.lag_s)}, every {_ms(self.period_s)}"
        if self.gain is not None and self.offset_w is not None:
            text += f", gain {self.gain.likely:.3f} ({self.gain.least:.3f} … {self.gain.most:.3f})"
            text += f", offset {self.offset_w.likely:+.1f} W"
        return f"{text}; {self.explained:.2%} of its readings explained, misfit {self.residual_w:.2g} W"

    def as_toml(self) -> str:
        """A sensor file: attribution takes it with ``sensors=FILE`` (``--sensors FILE``)."""
        rows: dict[str, object] = {
            "vendor": self.line.vendor,
            "field": _literal(self.signal),
            "kind": self.kind,
            "period_s": _three(self.period_s),
            "window_s": _three(self.window_s),
            "lag_s": _three(self.lag_s),
        }
        if self.card:
            rows["card"] = _literal(self.card)
        if self.gain is not None and self.offset_w is not None:
            rows |= {"measured": [[round(g, 5), round(o, 3)] for g, o in self.pairs], "spread": CALIBRATED_W}
        else:
            reading = float(np.mean(self.fit.readings_w))  # likely 1: what was not measured corrects nothing
            least, most = truths(self.line.pairs, reading)
            rows["gain"] = [round(min(reading / most, 1.0), 4), 1.0, round(max(reading / least, 1.0), 4)]
        rows["floor_w"] = self.line.floor_w
        if self.line.cap_w is not None:
            rows["cap_w"] = self.line.cap_w
        rows["source"] = "; ".join(("wattribute calibrate", *self.notes))
        text = "".join(f"{name} = {json.dumps(value, ensure_ascii=False)}\n" for name, value in rows.items())
        return f"[[sensor]]\n{text}"


def _ms(triple: Triple) -> str:
    return f"{triple.likely * 1e3:.0f} ({triple.least * 1e3:.0f} … {triple.most * 1e3:.0f}) ms"


def _literal(text: str) -> str:
    """A regular expression that fits this text alone."""
    return "".join("\\" + letter if letter in r".^$*+?{}[]\|()" else letter for letter in text)


def _three(value: Triple) -> list[float]:
    return [round(number, 6) for number in (value.least, value.likely, value.most)]


def calibrate(
    recording: Recording, meter: str | os.PathLike[str] | None = None, metric: str | None = None
) -> Calibration:
    """Fit the power gauge of a recording to its spans, or to an external meter's log (CSV: Unix seconds, watts)."""
    signal, line, card = _signal(recording, metric)
    readings = updates(signal, recording.clock, line)
    if len(readings.time) < LEAST_UPDATES:
        raise NoDataError(
            f"{signal.name}: {len(readings.time)} updates; at least {LEAST_UPDATES} are needed to calibrate"
        )
    rate = recording.clock.ticks_per_s
    log = None if meter is None else read_meter(Path(meter), recording)
    totals = _spans(recording, metric) if log is None else _metered(*log)
    inside = (
        np.ones(len(readings.time), bool) if log is None else (readings.time > log[0][0]) & (readings.time < log[0][-1])
    )
    readings = Updates(
        readings.time[inside], readings.age[inside], readings.value[inside], readings.period, readings.poll
    )
    if len(readings.time) < LEAST_UPDATES:
        raise NoDataError(
            f"{meter}: {len(readings.time)} updates of {signal.name} lie in its time; check that both clocks agree"
        )
    if float(readings.value.std()) < LEAST_CHANGE * abs(float(readings.value.mean())):
        raise NoDataError(f"{signal.name}: its readings hardly change; calibrate with a load of steps or pulses")
    kinds = KINDS_OF.get(line.kind, ("boxcar", "low pass"))
    best, low, high, pairs_ = _fitted(readings, totals, rate, log is not None, kinds)
    power = best.power
    notes = ["lag holds what the clock of the log is off by, up to "
             f"±{(signal.clock_error_s or 0) * 1e3:g} ms: of the two only the sum shows"]  # fmt: skip
    gain = offset = None
    if log is not None:
        gain, offset = (
            Triple(float(column.min()), float(value), float(column.max()))
            for column, value in zip(np.array(pairs_).T, power, strict=True)
        )
        notes.append("gain and offset beside a meter")
    else:
        notes.append("no meter: gain and offset are the table's")
    seen = seen_period_s(signal, recording.clock) or line.period_s.likely
    spacing = np.diff(readings.time[readings.age <= 1.5 * readings.poll]) / rate
    near = spacing[np.abs(spacing - seen) < 0.4 * seen] if seen else spacing
    ends = np.percentile(near, [5, 95]) if len(near) > 5 else (seen, seen)
    late = float(np.median(readings.age)) / 2 / rate + (signal.clock_error_s or 0.0)  # what no resampling shows
    kind = best.kind if best.kind == "low pass" else "running mean" if best.width_s > 1.3 * seen else "boxcar"
    pieces = np.arange(readings.time[0], readings.time[-1], max(1, (readings.time[-1] - readings.time[0]) // 2000))
    shown = (
        (pieces[:-1] / rate, np.diff(totals(pieces)[:, 0]) / np.diff(pieces)) if log is not None else (np.empty(0),) * 2
    )
    return Calibration(
        signal.name,
        card,
        kind,
        Triple(min(float(ends[0]), seen), seen, max(float(ends[1]), seen)),
        _within(_widened(low[0], best.width_s, high[0]), line.window_s),
        Triple(min(low[1], best.lag_s) - late, best.lag_s, max(high[1], best.lag_s) + late),
        tuple(pairs_),
        gain,
        offset,
        float(np.sqrt(best.misfit / len(readings.time))),
        1 - best.misfit / max(float(((readings.value - readings.value.mean()) ** 2).sum()), 1e-12),
        line,
        tuple(notes),
        Fit(readings.time / rate, readings.value, best.matrix @ power, *shown),
    )


def _widened(least: float, likely: float, most: float) -> Triple:
    """A window with its interval, which is never narrower than what the grid and a steady clock allow."""
    half = max(0.02 * likely, 0.001)
    return Triple(max(min(least, likely - half), 0.0), likely, max(most, likely + half))


def _within(fitted: Triple, prior: Triple) -> Triple:
    """Intersect the fitted range with the table's; the fit alone where they do not overlap."""
    least, most = max(fitted.least, prior.least), min(fitted.most, prior.most)
    return fitted if least > most else Triple(least, min(max(fitted.likely, least), most), most)


def _signal(recording: Recording, metric: str | None) -> tuple[Signal, Line, str]:
    """The gauge to calibrate: of one device, the one that attribution would take."""
    known = lines(recording, known_lines((), Path(os.devnull)))
    chosen = plan(recording, Question(metric=metric)) if recording.spans.locations() else None
    rows = [source.row for source in chosen.sources] if chosen else list(known)
    rows = [row for row in dict.fromkeys(rows) if recording.signals[row].kind == "gauge"]
    if not rows:
        raise NoDataError(
            "no power gauge to calibrate here; join a power log with --signals FILE, or name one: --metric RE"
        )
    if len(rows) > 1:
        names = ", ".join(recording.signals[row].name for row in rows[:4])
        raise OptionError(f"{len(rows)} gauges could be calibrated ({names}); choose one with --metric RE")
    signal, line = recording.signals[rows[0]], known.get(rows[0])
    device = next((d for d in recording.devices if (d.host, d.name) == (signal.host, signal.device)), None)
    return signal, line or Line(), str(device.properties.get("model", "")) if device else ""


def _spans(recording: Recording, metric: str | None) -> Totals:
    """The time spent in each frame, and idle."""
    source = plan(recording, Question(metric=metric)).sources[0]
    code, mask = frame_keys(recording, Question(by="frame")).code, masks(recording, source.of)
    pieces = [innermost(recording.spans.spans(user), np.where(mask(user), code, -1)) for user in source.users]
    if not any(len(start) for start, _, _ in pieces):
        raise NoDataError("no spans to calibrate by; record a load of steps or pulses, or give a meter's log (--meter)")
    return Occupancy(pieces).before


def _metered(times: Ints, watts: Floats) -> Totals:
    """A meter's energy, and time for the offset."""
    joules = np.concatenate([[0.0], np.cumsum((watts[1:] + watts[:-1]) / 2 * np.diff(times))])
    return lambda at: np.stack([np.interp(at, times, joules), np.asarray(at - times[0], np.float64)], axis=1)


def read_meter(path: Path, recording: Recording) -> tuple[Ints, Floats]:
    """(ticks, watts) of a meter's log: a CSV with a line of names, Unix seconds and watts; it may be gzipped."""
    if recording.clock.epoch_ns is None:
        raise NoDataError(f"{path}: the recording has no wall clock to align the meter's log with")
    opener: Callable[..., IO[str]] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise FormatError(path, f"cannot be read as a meter's log: {error}") from error
    try:
        names = [name.strip().lower() for name in rows[0]]
        time = next(at for at, name in enumerate(names) if "time" in name)
        power = next(at for at, name in enumerate(names) if "power" in name or name in ("w", "watts", "power_w"))
        table = np.array([(float(row[time]), float(row[power])) for row in rows[1:] if row], np.float64)
    except (IndexError, StopIteration, ValueError) as error:
        raise FormatError(path, "is not a meter's log: a CSV with the columns time_s (Unix) and power_w") from error
    if len(table) < 2:
        raise FormatError(path, "has fewer than two readings")
    table = table[np.argsort(table[:, 0], kind="stable")]
    ticks = np.rint((table[:, 0] - recording.clock.epoch_ns / 1e9) * recording.clock.ticks_per_s).astype(np.int64)
    return ticks, table[:, 1]


# ------------------------------------------------------------------------------------------------------------- the fit


class _Candidate(NamedTuple):
    kind: str
    width_s: float
    lag_s: float
    matrix: Floats
    power: Floats
    misfit: float


def _at(readings: Updates, totals: Totals, rate: int, kind: str, width: float, lag: float) -> _Candidate:
    until = readings.time - readings.age // 2 - round(lag * rate)
    if kind == "low pass":
        edges = -width * np.log1p(-np.arange(BINS + 1) / (BINS + 0.08))
        before = [totals(until - round(float(edge) * rate)) for edge in edges]
        lengths = np.maximum(np.diff(np.rint(edges * rate)), 1)
        matrix = np.mean([(before[i] - before[i + 1]) / lengths[i] for i in range(BINS)], axis=0)
    else:
        ticks = max(1, round(width * rate))
        matrix = (totals(until) - totals(until - ticks)) / ticks
    power: Floats = np.linalg.lstsq(matrix, readings.value, rcond=1e-9)[0].astype(np.float64)
    residual = readings.value - matrix @ power
    return _Candidate(kind, width, lag, np.asarray(matrix, np.float64), power, float(residual @ residual))


def _fitted(
    readings: Updates, totals: Totals, rate: int, metered: bool, kinds: Sequence[str]
) -> tuple[_Candidate, tuple[float, float], tuple[float, float], list[tuple[float, float]]]:
    """The best sensor, the least and the most window and lag, and (gain, offset) of each replicate beside a meter."""

    def each(kind: str, widths: Iterable[float], lags: Sequence[float]) -> list[_Candidate]:
        return [_at(readings, totals, rate, kind, w, lag) for w in widths for lag in lags]

    grid = [one for kind in kinds for one in each(kind, map(float, WIDTHS_S), [float(x) for x in LAGS_S])]
    near: list[_Candidate] = []
    for start in _apart(grid):
        factor, step = float(WIDTHS_S[1] / WIDTHS_S[0]), float(LAGS_S[1] - LAGS_S[0])
        for _ in range(ROUNDS):
            widths = start.width_s * factor ** np.linspace(-1, 1, 5)
            lags = start.lag_s + step * np.linspace(-1, 1, 5)
            more = each(start.kind, map(float, widths), [float(x) for x in lags])
            near += more
            start = min((start, *more), key=lambda one: one.misfit)
            factor, step = factor**0.5, step * 0.5
    best = min(near, key=lambda one: one.misfit)
    same = [one for one in (*grid, *near) if one.kind == best.kind]
    low, high, pairs_ = _resampled(readings, sorted(same, key=lambda one: one.misfit)[:120], metered)
    # few updates tell of the window: as many as would read otherwise with another window or lag
    telling = _telling(best, [_at(readings, totals, rate, best.kind, *other) for other in _others(best)])
    allowed = ALLOWED / max(telling, 2) if metered else ALLOWED_BY_SPANS / min(max(telling, 2), MOST_TELLING)
    fits = [one for one in same if one.misfit <= best.misfit * (1 + allowed)]
    ends = np.array([(one.width_s, one.lag_s) for one in fits])
    low = min(low[0], float(ends[:, 0].min())), min(low[1], float(ends[:, 1].min()))
    high = max(high[0], float(ends[:, 0].max())), max(high[1], float(ends[:, 1].max()))
    return best, low, high, pairs_


def _apart(grid: Sequence[_Candidate]) -> list[_Candidate]:
    """The best candidates that are no neighbours of each other."""
    chosen: list[_Candidate] = []
    for one in sorted(grid, key=lambda one: one.misfit):
        if len(chosen) == STARTS:
            break
        if all(one.kind != c.kind or abs(np.log(one.width_s / c.width_s)) > 0.4 for c in chosen):
            chosen.append(one)
    return chosen


def _others(best: _Candidate) -> list[tuple[float, float]]:
    return [(best.width_s * 1.25, best.lag_s), (best.width_s, best.lag_s + best.width_s / 4)]


def _telling(best: _Candidate, others: Sequence[_Candidate]) -> int:
    """Count the updates that would read otherwise with another window or lag."""
    fitted = best.matrix @ best.power
    range_ = max(float(fitted.max() - fitted.min()), 1e-12)
    moved = np.max([np.abs(one.matrix @ best.power - fitted) for one in others], axis=0)
    return int((moved > 0.01 * range_).sum())


def _resampled(
    readings: Updates, grid: Sequence[_Candidate], metered: bool
) -> tuple[tuple[float, float], tuple[float, float], list[tuple[float, float]]]:
    """Bootstrap blocks of updates: the window and lag that fit each draw best, and its powers."""
    draw = np.random.default_rng(0)
    count = len(readings.value)
    length = max(1, count // BLOCKS)
    block = np.minimum(np.arange(count) // length, BLOCKS - 1)
    blocks = int(block.max()) + 1
    squares = per_block(readings.value**2, block)
    parts = [
        (
            per_block(one.matrix[:, :, None] * one.matrix[:, None, :], block),
            per_block(one.matrix * readings.value[:, None], block),
        )
        for one in grid
    ]
    left, right = (np.stack([part[i] for part in parts]) for i in (0, 1))  # (candidate, block, …)
    shape, pairs_ = [], []
    for _ in range(REPLICATES):
        times = draw.multinomial(blocks, np.full(blocks, 1 / blocks)).astype(np.float64)
        a, b = np.einsum("j,cjkl->ckl", times, left), np.einsum("j,cjk->ck", times, right)
        ridge = 1e-9 * np.trace(a, axis1=1, axis2=2)[:, None, None] * np.eye(a.shape[1])
        power = np.linalg.solve(a + ridge, b[:, :, None])[:, :, 0]
        misfit = times @ squares - np.einsum("ck,ck->c", b, power)
        at = int(np.argmin(misfit))
        shape.append((grid[at].width_s, grid[at].lag_s))
        pairs_.append((float(power[at, 0]), float(power[at, 1])))
    low, high = np.percentile(np.array(shape), [1, 99], axis=0)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1])), _corners(pairs_) if metered else []


def _corners(pairs_: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The replicates between which 95 % of the truths lie, at low, middle and high readings, and their mean."""
    mean = (float(np.mean([g for g, _ in pairs_])), float(np.mean([o for _, o in pairs_])))
    chosen = [mean]
    for reading in (30.0, 100.0, 300.0, 700.0):
        order = sorted(pairs_, key=lambda pair: truths([pair], reading)[0])
        cut = len(order) // 40
        chosen += [order[cut], order[-1 - cut]]
    return list(dict.fromkeys(chosen))
