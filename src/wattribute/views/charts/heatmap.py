"""Heatmap: frame × process, energy or mean power, with totals in the margins.

Frames are the rows (their names are long), processes the columns. More frames than ``top`` become one row "other",
more processes than fit become groups of neighbours: sums are kept, and the caption says what was merged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model import Attribution
from ...plugins import chart
from .. import names
from ..kinds import colour, ink
from ..numbers import amount, bounded, percent, row_range, si, together
from ..theme import ROW, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, fixed, hover, layer, lookup, pixels, scale_legend
from .captions import caption, finding, subtitle
from .tables import check_value, frame_kinds, regrouped
from .totals import summed

Floats = npt.NDArray[np.float64]
_CARD = {
    "frame": "frame",
    "process": "process",
    "energy": "self energy",
    "power": "mean power",
    "share": "of all cells",
    "exact": "exactly",
}
_COLUMNS = 64


@chart("heatmap", about="process × frame: energy or mean power", by=("process", "frame"))
def heatmap(attribution: Attribution, *, value: str = "energy", theme: str = "light", top: int = 24) -> Any:
    """Frames × processes: self energy, or mean power while they ran."""
    look = theme_of(theme)
    check_value(value)
    grouped = regrouped(attribution, heatmap.by)
    whole = heat_table(grouped)
    shown = reduce(whole, top)
    merged = []
    if shown.merged_frames:
        merged.append(f"{shown.merged_frames} frames with less energy are one row, “other”.")
    if value == "power":
        merged.append("Power is all joules by all seconds; the title is of frames with 1 % of the energy or more.")
        merged += ["Grey: the range of the energy is wider than the energy."] if shown.unsure.any() else []
    if shown.merged_processes:
        merged.append(f"A column adds up {shown.merged_processes} processes.")
    sums = dict(zip(whole.frames, whole.energy_j.sum(axis=1).tolist(), strict=True))
    return finish(
        _matrix(shown, look, value),
        look,
        title=finding(grouped, sums) if value == "energy" else _hottest(whole),
        subtitle=subtitle(grouped),
        caption=caption(grouped, " ".join(merged)),
        spacing=6,
    )


def _hottest(table: HeatTable) -> str:
    """The title of a heatmap of power: the greatest mean that is certain, of frames with 1 % of the energy."""
    energy = table.energy_j.sum(axis=1)
    power = _mean_power(table, axis=1)
    power[energy < 0.01 * energy.sum()] = 0.0  # a short call divides little energy by little time
    certain = np.where(table.high_j.sum(axis=1) - table.low_j.sum(axis=1) > energy, 0.0, power)
    power = certain if certain.any() else power
    if not power.any():
        return "No energy in spans, and no power"
    most = int(power.argmax())
    label = names.shorten(names.plain(table.frames[most]), 60)
    return f"{label}: {si(float(power[most]), 'W')} on average, the highest"


def _mean_power(table: HeatTable, axis: int) -> Floats:
    """All joules by all seconds of each row (axis 1) or column (axis 0)."""
    energy: Floats = table.energy_j.sum(axis=axis)
    seconds = table.seconds.sum(axis=axis)
    mean: Floats = np.divide(energy, seconds, out=np.zeros_like(energy), where=seconds > 0)
    return mean


def heat_table(attribution: Attribution) -> HeatTable:
    """Rows by process and frame as a matrix; processes in the order of the recording, idle ones included."""
    devices = together(summed(attribution))
    rows = [
        (row["process"], row["frame"], row["self_j"], row["power_w"], *row_range(row, devices))
        for row in attribution.rows.iter_rows(named=True)
    ]
    frames = list(dict.fromkeys(row[1] for row in rows))
    met = {row[0] for row in rows}
    processes = [name for name in attribution.recording.process_labels if name in met]
    processes += [name for name in dict.fromkeys(row[0] for row in rows) if name not in set(processes)]
    energy, covered, low, high = (np.zeros((len(frames), len(processes))) for _ in range(4))
    at_frame, at_process = ({name: i for i, name in enumerate(axis)} for axis in (frames, processes))
    for process, frame, joules, watts, least, most in rows:
        place = at_frame[frame], at_process[process]
        low[place] += np.nan if least is None else least
        high[place] += np.nan if most is None else most
        energy[place] += joules
        covered[place] += joules / watts if watts else 0.0
    kinds = frame_kinds(attribution)
    return HeatTable(
        frames,
        processes,
        [kinds.get(name, "other") for name in frames],
        energy,
        covered,
        low,
        high,
        unit=attribution.unit,
    )


@dataclass(frozen=True)
class HeatTable:
    """A matrix of energies with ranges and covered seconds; names of rows and columns, and the kind of each row."""

    frames: list[str]
    processes: list[str]
    kinds: list[str]
    energy_j: Floats  # frames × processes
    seconds: Floats
    low_j: Floats  # NaN where a range is not known
    high_j: Floats
    merged_frames: int = 0
    merged_processes: int = 0
    unit: str = "J"

    @property
    def unsure(self) -> npt.NDArray[np.bool_]:
        """Cells whose range is wider than their value: tiny energy over tiny time is no power."""
        return np.asarray(self.high_j - self.low_j > self.energy_j)  # False where no range is known

    @property
    def power_w(self) -> Floats:
        return np.divide(self.energy_j, self.seconds, out=np.zeros_like(self.energy_j), where=self.seconds > 0)


def reduce(table: HeatTable, top: int) -> HeatTable:
    """The ``top`` frames by energy and one row for the rest; neighbouring processes grouped if there are too many."""
    sums = table.energy_j.sum(axis=1)
    order = np.argsort(-sums, kind="stable")
    if sums.sum() > 0:
        top = min(top, int((sums > 1e-9 * sums.sum()).sum()))  # a row of noughts says nothing
    kept, rest = order[:top], order[top:]
    if len(rest) == 1:  # "other (1 frame)" would cost a row and say less
        kept, rest = order, order[:0]
    columns = [table.energy_j, table.seconds, table.low_j, table.high_j]
    frames, kinds = [table.frames[i] for i in kept], [table.kinds[i] for i in kept]
    if len(rest):
        columns = [np.vstack([one[kept], one[rest].sum(axis=0)]) for one in columns]
        frames.append(f"other ({len(rest)} frames)")
        kinds.append("other")
    else:
        columns = [one[kept] for one in columns]
    processes, width = table.processes, -(-len(table.processes) // _COLUMNS)
    if width > 1:
        starts = np.arange(0, len(processes), width)
        columns = [np.add.reduceat(values, starts, axis=1) for values in columns]
        ends = [min(start + width, len(processes)) - 1 for start in starts]
        processes = [_range(processes[a], processes[b]) for a, b in zip(starts, ends, strict=True)]
    energy, seconds, low, high = columns
    merged = len(rest), width if width > 1 else 0
    return HeatTable(frames, processes, kinds, energy, seconds, low, high, *merged, table.unit)


def _range(first: str, last: str) -> str:
    """ "MPI Rank 8–15" for a group of ranks; both names where they share no beginning."""
    head = re.sub(r"\d+$", "", first)
    return f"{first}–{last[len(head) :]}" if head and last.startswith(head) and first != last else f"{first} … {last}"


def _matrix(table: HeatTable, theme: Theme, value: str = "energy") -> list[Any]:
    """The matrix with a bar per frame to its right and a bar per process above it."""
    alt = altair()
    labels = list(names.labels(table.frames, 44).values())
    cell = max(9.0, min(110.0, (WIDTH - 330) / max(1, len(table.processes))))
    width, height = cell * len(table.processes), ROW * len(table.frames)
    rows = _cells(table, value, theme, cell)
    y = alt.Y("row:O", sort=None, title=None, axis=alt.Axis(labelExpr=lookup(labels), minExtent=40))
    x = alt.X("column:O", sort=None, title=None, axis=alt.Axis(**_process_axis(table.processes, cell)))
    boxes = layer(rows, width=width, height=height).mark_rect().encode(
        x=x, y=y, color=fixed("ground"), tooltip=hover(rows, **_CARD)
    )  # fmt: skip
    texts = layer([row for row in rows if row["text"]]).mark_text(baseline="middle").encode(
        x=x, y=y, text=alt.Text("text:N"), color=fixed("ink"), tooltip=hover(rows, **_CARD)
    )  # fmt: skip
    title, unit = (
        (("self energy" if table.unit == "J" else "self time"), table.unit)
        if value == "energy"
        else ("mean power", "W")
    )
    rights, above = (
        table.energy_j.sum(axis=axis) if value == "energy" else _mean_power(table, axis) for axis in (1, 0)
    )
    sides = _margin(rights, unit, table.kinds, "row", theme, height)
    tops = _margin(above, unit, None, "column", theme, width)
    shown = table.energy_j if value == "energy" else np.where(table.unsure, 0.0, table.power_w)
    scale = scale_legend(title, float(shown.max(initial=0.0)), unit, theme)
    return [tops, alt.hconcat(boxes + texts, sides, spacing=8), scale]


def _cells(table: HeatTable, value: str, theme: Theme, cell: float) -> Rows:
    shown = table.energy_j if value == "energy" else table.power_w
    grey = table.unsure & (value == "power")
    most, whole = float(np.where(grey, 0.0, shown).max(initial=0.0)), float(table.energy_j.sum())
    rows: Rows = []
    for i, frame in enumerate(table.frames):
        for j, process in enumerate(table.processes):
            text = amount(float(shown[i, j]), table.unit if value == "energy" else "W")
            fits = pixels(text) <= cell - 4 and shown[i, j] > 0
            ground = theme.idle if grey[i, j] else theme.ramp(float(shown[i, j]) / most if most else 0.0)
            rows.append(
                {
                    "row": i,
                    "column": j,
                    "value": float(shown[i, j]),
                    "cell_j": float(table.energy_j[i, j]),
                    "frame": names.full(frame),
                    "process": names.clean(process),
                    "energy": bounded(
                        float(table.energy_j[i, j]), float(table.low_j[i, j]), float(table.high_j[i, j]), table.unit
                    ),
                    "power": si(float(table.power_w[i, j]), "W") if table.seconds[i, j] > 0 else "–",
                    "share": percent(float(table.energy_j[i, j]), whole),
                    "exact": f"{table.energy_j[i, j]:.9g} {table.unit}",
                    "text": text if fits else "",
                    "ground": ground,
                    "ink": ink(ground),
                }
            )
    return rows


def _process_axis(processes: list[str], cell: float) -> dict[str, Any]:
    labels = [names.shorten(names.clean(name), 24) for name in processes]
    longest = max((pixels(label) for label in labels), default=0)
    options: dict[str, Any] = {"labelExpr": lookup(labels), "orient": "bottom", "ticks": False, "domain": False}
    if longest > cell - 4:
        options |= {"labelAngle": -45 if cell >= 14 else -90}
    else:
        options |= {"labelAngle": 0}
    if cell < 14:
        options |= {"labelOverlap": "greedy"}
    return options


def _margin(sums: Floats, unit: str, kinds: list[str] | None, along: str, theme: Theme, length: float) -> Any:
    """Totals (or means) of rows (bars to the right, with numbers) or of columns (bars on top)."""
    alt = altair()
    most = float(sums.max(initial=0.0)) or 1.0
    rows: Rows = [
        {along: i, "sum": float(value), "text": amount(float(value), unit),
         "ground": colour(kinds[i]) if kinds else theme.muted}
        for i, value in enumerate(sums)
    ]  # fmt: skip
    band = {"sort": None, "axis": None}
    if along == "row":
        base = layer(rows, width=110, height=length)
        place = {"y": alt.Y("row:O", **band)}
        size = alt.X("sum:Q", axis=None, scale=alt.Scale(domain=[0, most * 2.2], nice=False))
        bars = base.mark_bar(height=ROW - 6).encode(
            x=size, color=fixed("ground"), tooltip=[alt.Tooltip("text:N")], **place
        )
        return bars + base.mark_text(align="left", dx=4, color=theme.text).encode(
            x=size, text=alt.Text("text:N"), **place
        )
    base = layer(rows, width=length, height=36)
    place = {"x": alt.X("column:O", **band)}
    room = most * 1.6 if length / max(1, len(sums)) > 46 else most
    size = alt.Y("sum:Q", axis=None, scale=alt.Scale(domain=[0, room], nice=False))
    bars = base.mark_bar(opacity=0.55).encode(y=size, color=fixed("ground"), tooltip=[alt.Tooltip("text:N")], **place)
    if room == most:
        return bars
    return bars + base.mark_text(dy=-7, color=theme.text).encode(y=size, text=alt.Text("text:N"), **place)
