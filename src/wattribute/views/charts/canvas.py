"""Parts of all charts: marks over rows, axes in SI units, hover cards, the legend of kinds, title and caption."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import MissingExtraError
from ..kinds import KINDS, colour
from ..names import columns, shorten
from ..numbers import si
from ..theme import SIZE, WIDTH, Theme, config

Rows = list[dict[str, Any]]
_WIDE = "ABCDEFGHKLMNOPQRSTUVWXYZmw%@…"
_NARROW = "fijlrtI.,:;'|!()[] "


def altair() -> Any:
    """Import Altair, or raise with the command that installs it."""
    try:
        import altair
    except ImportError:
        raise MissingExtraError("plot", "altair") from None
    return altair


def pixels(text: str, size: int = SIZE) -> float:
    """Estimate the width of a drawn text in pixels; rather too wide than too narrow."""
    wide, narrow = sum(map(text.count, _WIDE)), sum(map(text.count, _NARROW))
    return size * (0.58 * columns(text) + 0.15 * wide - 0.24 * narrow)


def fitting(text: str, room: float, least: int = 4) -> str:
    """Shorten a text to a width in pixels; empty if not even a few letters fit."""
    if pixels(text) <= room:
        return text
    width = min(columns(text) - 1, int(room / (SIZE * 0.35)))
    while width >= least and pixels(shorten(text, width)) > room:
        width -= 1
    return shorten(text, width) if width >= least else ""


def layer(rows: Rows, **properties: Any) -> Any:
    """A chart over these rows. In a plain dict and a tuple, since Altair checks every value of its own data classes
    and copies every list each time charts are put together (20 s for a chart of 5,000 rows).

    Encode with Altair's classes (``alt.Text("name:N")``, ``alt.XValue(0)``): for every string and ``alt.value`` it
    would compare the schemas of all of its classes.
    """
    alt = altair()
    return alt.Chart({"values": tuple(rows)}, **properties)


def fixed(field: str, kind: str = "N") -> dict[str, Any]:
    """An encoding that takes colours from the rows as they are."""
    alt = altair()
    return alt.Color(f"{field}:{kind}", scale=None, legend=None)  # type: ignore[no-any-return]


def quantity(unit: str) -> str:
    """A label expression for an axis in SI units: "1.5 kJ"; plain numbers for % and °C."""
    if unit in ("%", "°C"):
        return f"format(datum.value, '~g') + ' {unit}'"
    return f"replace(format(datum.value, '.4~s'), regexp('([a-zA-Zµ]?)$'), ' $1{unit}')"


def lookup(labels: Sequence[str] | Mapping[str, str]) -> str:
    """A label expression that turns an index (or a value) into its label; JSON quoting keeps hostile names text."""
    return f"{json.dumps(labels)}[datum.value]"


def nice_step(about: float) -> float:
    """1, 2 or 5 times a power of ten, not less than ``about``."""
    if about <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(about))
    return next(power * digit for digit in (1.0, 2.0, 5.0, 10.0) if power * digit >= about * (1 - 1e-9))


def time_unit(length_s: float) -> tuple[float, str]:
    """The unit of a time axis of this length, as (units per second, name)."""
    for least, per_s, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs")):
        if length_s >= least:
            return per_s, unit
    return (1e9, "ns") if length_s > 0 else (1.0, "s")


def time_axis(unit: str, **options: Any) -> Any:
    """The axis every time chart has at its foot."""
    return altair().Axis(title=f"time since start ({unit})", grid=False, tickCount=10, format=",~r", **options)


def wall_axis(epoch_ns: int, length_s: float, per_s: float) -> Any:
    """The axis of a chart along the wall clock; ``epoch_ns`` is the time of day at 0, values are seconds × per_s."""
    clock = "%H:%M:%S.%L" if length_s < 10 else "%H:%M:%S" if length_s < 86_400 else "%d %b %H:%M"
    label = f"utcFormat(datum.value / {per_s!r} * 1000 + {epoch_ns / 1e6!r}, '{clock}')"
    return altair().Axis(title="time (UTC)", grid=False, tickCount=8, labelExpr=label)


def span_axis(start: float, end: float) -> Any:
    """A scale of exactly this range; never of no length, which Vega would not draw."""
    return altair().Scale(domain=[start, end if end > start else start + 1], nice=False, zero=False)


def axis_range(values: Sequence[float]) -> tuple[float, float]:
    """From 0, or, where the values lie close together, from a little below them."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low < 0.5 * high or high <= 0 or len(values) == 1:
        return 0.0, high * 1.12 or 1.0
    margin = max(high - low, 0.04 * high) * 0.4
    return max(0.0, low - margin), high + margin


def hover(rows: Rows, **titles: str) -> list[Any]:
    """The hover card: these columns under these titles, those that the rows have."""
    alt = altair()
    present = rows[0].keys() if rows else ()
    return [alt.Tooltip(f"{name}:N", title=title) for name, title in titles.items() if name in present]


def legend(kinds: Iterable[str], theme: Theme, titles: Mapping[str, str] | None = None) -> Any:
    """Squares with the names of the kinds that occur, in their order, in one row; ``titles`` are other names."""
    alt = altair()
    named = titles or {}
    present = set(kinds)
    rows: Rows = []
    at = 0.0
    for kind, (usual, _) in KINDS.items():
        title = named.get(kind, usual)
        if kind in present:
            ground = theme.idle if kind == "idle" else colour(kind)
            rows.append({"x": at, "label_x": at + 14, "title": title, "ground": ground})
            at += 14 + pixels(title) + 18
    x = {"scale": alt.Scale(domain=[0, WIDTH], nice=False), "axis": None}
    base = layer(rows, width=WIDTH, height=14)
    squares = base.mark_square(size=90, opacity=1).encode(
        x=alt.X("x:Q", **x), y=alt.YValue(7), color=fixed("ground"), tooltip=alt.TooltipValue(None)
    )
    texts = base.mark_text(align="left", baseline="middle").encode(
        x=alt.X("label_x:Q", **x), y=alt.YValue(7), text=alt.Text("title:N")
    )
    return squares + texts


def scale_legend(title: str, most: float, unit: str, theme: Theme) -> Any:
    """The sequential scale from 0 to ``most`` as steps: a gradient does not survive being put into a PDF page."""
    alt = altair()
    steps, long, left = 40, 200.0, pixels(title) + 10
    rows: Rows = [
        {
            "x": left + long * i / steps,
            "x2": left + long * (i + 1) / steps + 0.5,
            "ground": theme.ramp((i + 0.5) / steps),
        }
        for i in range(steps)
    ]
    words: Rows = [{"x": left + long * part, "text": si(most * part, unit)} for part in (0.0, 0.5, 1.0)]
    x = {"scale": alt.Scale(domain=[0, WIDTH], nice=False), "axis": None}
    boxes = layer(rows, width=WIDTH, height=26).mark_rect().encode(
        x=alt.X("x:Q", **x), x2=alt.X2("x2:Q"), y=alt.YValue(0), y2=alt.Y2Value(10), color=fixed("ground")
    )  # fmt: skip
    texts = layer(words).mark_text(baseline="top", color=theme.muted).encode(
        x=alt.X("x:Q", **x), y=alt.YValue(14), text=alt.Text("text:N")
    )  # fmt: skip
    head = layer([{"text": title}]).mark_text(align="left", baseline="middle", color=theme.muted).encode(
        x=alt.XValue(0), y=alt.YValue(5), text=alt.Text("text:N")
    )  # fmt: skip
    return alt.layer(boxes, texts, head)


def wrap(text: str, width: float = WIDTH, size: int = SIZE) -> list[str]:
    """The text in lines that fit a width."""
    lines: list[str] = []
    for word in text.split():
        if lines and pixels(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def note(sentences: Sequence[str], theme: Theme) -> Any:
    """The caption under a chart: idle, coverage, what was merged, problems."""
    lines = [line for sentence in sentences for line in wrap(sentence)]
    rows: Rows = [{"line": line, "y": i} for i, line in enumerate(lines)]
    alt = altair()
    height = 15 * len(lines)
    return (
        layer(rows, width=WIDTH, height=height)
        .mark_text(align="left", baseline="top", color=theme.muted)
        .encode(
            x=alt.XValue(0),
            y=alt.Y("y:Q", scale=alt.Scale(domain=[0, max(1, len(lines))], nice=False, reverse=True), axis=None),
            text=alt.Text("line:N"),
        )
    )


def finish(
    parts: Sequence[Any],
    theme: Theme,
    *,
    title: str,
    subtitle: str = "",
    caption: Sequence[str] = (),
    spacing: int = 12,
) -> Any:
    """Parts below one another under a title, with a caption."""
    alt = altair()
    sentences = [sentence for sentence in caption if sentence]
    head = alt.TitleParams(text=wrap(title, size=16), subtitle=wrap(subtitle, size=12) if subtitle else [])
    # one level of nesting only: deeper ones are more than a PDF may have; one call, since each copies all parts
    return alt.vconcat(
        *parts,
        *([note(sentences, theme)] if sentences else []),
        spacing=spacing,
        resolve=alt.Resolve(scale=alt.ScaleResolveMap(color="independent")),
        title=head,
        config=config(theme),
    )


def hatch(rows: Rows, theme: Theme, *, x: str, x2: str, y: str, y2: str, step: float, scales: dict[str, Any]) -> Any:
    """Stripes over the idle parts: rules every ``step`` units of x inside each [x, x2) × [y, y2)."""
    alt = altair()
    stripes: Rows = []
    for row in rows:
        at = row[x] + step / 2
        while at < row[x2] and len(stripes) < 2000:
            stripes.append({"x": at, "y": row[y], "y2": row[y2]})
            at += step
    return (
        layer(stripes)
        .mark_rule(color=theme.hatch, strokeWidth=1)
        .encode(x=alt.X("x:Q", **scales.get("x", {})), y=alt.Y("y:Q", **scales.get("y", {})), y2=alt.Y2("y2:Q"))
    )
