"""The NumPy twin against a plain stack machine that reads enters and leaves one by one, bit by bit."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wattribute._core import reference
from wattribute.model import Curve, Intervals, Keys
from wattribute.testing.recordings import spans as spans_of
from wattribute.testing.strategies import curves, nested_spans

COLUMNS = ("calls", "self_ticks", "total_ticks", "self_covered", "total_covered", "self_value", "total_value")
BOUNDS = ("self_low", "self_high", "total_low", "total_high")


class Runs:
    """A row's stretches of time, merged where they touch and counted window by window."""

    def __init__(self, curve):
        self.curve, self.run, self.next, self.low, self.high = curve, None, 0, 0.0, 0.0

    def add(self, start, end):
        if end <= start:
            return
        if self.run and self.run[1] == start:
            self.run[1] = end
        else:
            self.flush()
            self.run = [start, end]

    def flush(self):
        if not self.run:
            return
        (start, end), edges, latency = self.run, self.curve.edges, self.curve.latency_ticks
        windows = range(len(edges) - 1)
        covers = [i for i in windows if start <= edges[i] - latency and end >= edges[i + 1]]
        touches = [i for i in windows if start < edges[i + 1] and end > edges[i] - latency and i >= self.next]
        for i in covers:
            self.low += float(self.curve.low[i])
        for i in touches:
            self.high += float(self.curve.high[i])
            self.next = i + 1
        self.run = None


def value(curve, t):
    x, y = curve.times.tolist(), curve.values.tolist()
    if len(x) < 2 or t <= x[0]:
        return y[0]
    for j in range(len(x) - 1):
        if t < x[j + 1]:
            return (y[j + 1] - y[j]) / (x[j + 1] - x[j]) * (t - x[j]) + y[j]
    return y[-1]


def covered(curve, start, end):
    pieces = zip(curve.pieces.start.tolist(), curve.pieces.end.tolist(), strict=True)
    return sum(max(0, min(end, b) - max(start, a)) for a, b in pieces)


def events(spans):
    """(enter?, span) in stream order, from the parents alone."""
    stack = []
    for i, parent in enumerate(spans.parent.tolist()):
        while stack and stack[-1] != parent:
            yield False, stack.pop()
        stack.append(i)
        yield True, i
    while stack:
        yield False, stack.pop()


def machine(spans, curve, keys):
    """Fold by hand: one pass over the events with a stack."""
    paths: dict[tuple[int, int], int] = {}
    out = {name: {} for name in COLUMNS}
    runs = {"self": {}, "total": {}}

    def add(name, row, amount):
        out[name][row] = out[name].get(row, type(amount)(0)) + amount

    stack = []  # [span, row, start, since, total of children, ticks of children, covered of children]
    for enter, i in events(spans):
        frame = int(spans.frame[i])
        if keys.row[frame] < 0:
            continue
        now = int(spans.start[i] if enter else spans.end[i])
        if stack and curve.edges is not None:
            runs["self"].setdefault(stack[-1][1], Runs(curve)).add(stack[-1][3], now)
        if enter:
            row = int(keys.row[frame])
            if keys.by_path:
                row = paths.setdefault((stack[-1][1] if stack else -1, frame), len(paths))
            stack.append([i, row, now, now, 0.0, 0, 0])
            add("calls", row, int(not spans.resumed[i]))
            continue
        _, row, start, _, children, ticks, cover = stack.pop()
        total = value(curve, now) - value(curve, start)
        mine = covered(curve, start, now)
        add("self_value", row, total - children)
        add("self_ticks", row, now - start - ticks)
        add("self_covered", row, mine - cover)
        if all(above[1] != row for above in stack):
            add("total_value", row, total)
            add("total_ticks", row, now - start)
            add("total_covered", row, mine)
            if curve.edges is not None:
                runs["total"].setdefault(row, Runs(curve)).add(start, now)
        if stack:
            stack[-1][3] = now
            stack[-1][4] += total
            stack[-1][5] += now - start
            stack[-1][6] += mine
    for which in runs:
        for row, run in runs[which].items():
            run.flush()
            out.setdefault(f"{which}_low", {})[row] = run.low
            out.setdefault(f"{which}_high", {})[row] = run.high
    return out, [[frame for _, frame in paths], [parent for parent, _ in paths]]


KEYS = st.sampled_from(
    [
        Keys(np.array([0, 1, 2, 3], np.int32), 4),
        Keys(np.array([0, 0, 1, 1], np.int32), 3),
        Keys(np.array([0, -1, 1, -1], np.int32), 2),
        Keys(np.array([0, 1, 2, 3], np.int32), 4, by_path=True),
        Keys(np.array([0, -1, 0, 0], np.int32), 1, by_path=True),
    ]
)


@given(nested_spans(), st.lists(curves(), min_size=1, max_size=3), KEYS)
def test_fold_equals_the_stack_machine_bit_by_bit(spans, several, keys):
    got = reference.fold(spans, several, keys)
    for c, curve in enumerate(several):
        want, paths = machine(spans, curve, keys)
        rows = len(paths[0]) if keys.by_path else keys.rows
        for name in COLUMNS + BOUNDS:
            if name in BOUNDS and curve.edges is None:
                assert got[name] is None or np.isnan(got[name][c]).all()
                continue
            column = got[name] if name in COLUMNS[:3] else got[name][c]
            assert column.tolist() == [want.get(name, {}).get(row, 0) for row in range(rows)], name
        if keys.by_path:
            assert [column.tolist() for column in got["paths"]] == paths


@given(nested_spans(), st.sampled_from([None, [True, True, False, True], [False] * 4]))
def test_busy_is_the_set_of_ticks_inside_kept_spans(spans, keep):
    start, end = reference.busy(spans, None if keep is None else np.array(keep))
    ticks = set()
    for s, e, f in zip(spans.start.tolist(), spans.end.tolist(), spans.frame.tolist(), strict=True):
        if keep is None or keep[f]:
            ticks |= set(range(s, e))
    assert {t for s, e in zip(start.tolist(), end.tolist(), strict=True) for t in range(s, e)} == ticks
    assert (end > start).all()
    assert (start[1:] > end[:-1]).all()


def test_a_hand_made_location():
    # main [0, 10) calls f [2, 6) and f [6, 8); S rises by 1 J per tick up to tick 9 (readings at 0, 3 and 9)
    spans = spans_of([(0, 10, 0, -1), (2, 6, 1, 0), (6, 8, 1, 0)])
    times = np.array([0, 3, 9])
    curve = Curve(
        times, times * 1.0, Intervals(times[:1], times[2:]), times, np.array([3.0, 6.0]), np.array([3.0, 6.0])
    )
    out = reference.fold(spans, [curve], Keys(np.array([0, 1], np.int32), 2))
    assert out["calls"].tolist() == [1, 2]
    assert out["total_value"].tolist() == [[9.0, 6.0]]  # main is cut at the last reading
    assert out["self_value"].tolist() == [[3.0, 6.0]]
    assert out["self_ticks"].tolist() == [4, 6]
    assert out["self_covered"].tolist() == [[3, 6]]
    assert out["total_low"].tolist() == [[9.0, 0.0]]  # main covers both windows, f (2 … 8) none
    assert out["self_high"].tolist() == [[9.0, 9.0]]  # both touch both
