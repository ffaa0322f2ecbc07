"""Books: what each device measured = what went to kinds of work + idle, as one bar per device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...model import Attribution
from ...plugins import chart
from .. import names
from ..kinds import KINDS, colour, ink
from ..kinds import kind as kind_of
from ..numbers import amount, percent
from ..theme import ROW, WIDTH, Theme
from ..theme import theme as theme_of
from .canvas import Rows, altair, finish, fixed, hatch, hover, layer, legend, lookup, pixels, quantity
from .captions import caption, device_label, subtitle
from .tables import one_view, regrouped
from .totals import known, total

_CARD = {"device": "device", "title": "what", "energy": "energy", "share": "of measured", "exact": "exactly"}


@chart("books", about="measured = attributed + idle, per device", by=("device", "frame", "paradigm", "role"))
def books(attribution: Attribution, *, theme: str = "light", top: int = 32) -> Any:
    """Per device: measured = attributed (by kind of work) + idle."""
    look = theme_of(theme)
    view = one_view(attribution)
    known_books = [BookBar(*row) for row in _accounts(view)]
    every = [book for book in known_books if book.measured_j > 0] or known_books
    empty = len(known_books) - len(every)
    note = f"{empty} device{'' if empty == 1 else 's'} that measured nothing: not drawn." if empty else ""
    shown = sorted(every, key=lambda book: -book.measured_j)[:top] if len(every) > top else every
    rest = [book for book in every if book not in shown]
    if rest:
        by_kind = {kind: sum(book.by_kind.get(kind, 0.0) for book in rest) for kind in KINDS}
        shown.append(BookBar(f"other ({len(rest)} devices)", by_kind, sum(book.idle_j for book in rest)))
    measured, idle = total(view, "measured"), total(view, "idle")
    return finish(
        [legend(kinds_of(every), look), bars(shown, look, view.unit)],
        look,
        title=f"{amount(measured, view.unit)} {known(view)}, {percent(measured - idle, measured)} of it in spans",
        subtitle=subtitle(view),
        caption=caption(view, note),
    )


def kinds_of(devices: Sequence[BookBar]) -> list[str]:
    """The kinds of the legend; idle where there is any."""
    return [kind for book in devices for kind in book.by_kind] + ["idle"] * any(book.idle_j > 0 for book in devices)


def _accounts(attribution: Attribution) -> list[tuple[str, dict[str, float], float, bool]]:
    """(label, joules by kind of work, idle, estimated) of each device."""
    table = regrouped(attribution, books.by)
    by_kind: dict[tuple[str, str, str], dict[str, float]] = {}
    columns = ("host", "device", "of", "frame", "paradigm", "role", "self_j")
    for host, device, of, frame, paradigm, role, energy in table.rows.select(columns).iter_rows():
        kinds_ = by_kind.setdefault((host, device, of), {})
        what = kind_of(paradigm, role, frame, of)
        kinds_[what] = kinds_.get(what, 0.0) + energy
    return [
        (
            device_label(table, row["host"], row["device"]),
            by_kind.get((row["host"], row["device"], row["of"]), {}),
            float(row["idle_j"] or 0.0),
            bool(row["estimated"]),
        )
        for row in table.devices.to_dicts()
    ]


@dataclass(frozen=True)
class BookBar:
    """One device: joules per kind of work, and idle. They add up to what was measured."""

    label: str
    by_kind: dict[str, float]
    idle_j: float
    estimated: bool = False

    @property
    def measured_j(self) -> float:
        return sum(self.by_kind.values()) + self.idle_j


def bars(devices: Sequence[BookBar], theme: Theme, unit: str, titles: Mapping[str, str] | None = None) -> Any:
    """A stacked bar per device, measured energy at its end; ``titles`` are other names of kinds."""
    alt = altair()
    most = max((book.measured_j for book in devices), default=0.0) or 1.0
    rows = [row for i, book in enumerate(devices) for row in _stack(i, book, theme, most, unit, titles or {})]
    height = (ROW + 6) * max(1, len(devices))
    x = {
        "scale": alt.Scale(domain=[0, most], nice=False),
        "axis": alt.Axis(title=None, labelExpr=quantity(unit), tickCount=6, grid=True),
    }
    labels = {f"{i + 0.5:g}": names.shorten(book.label, 40) for i, book in enumerate(devices)}
    y = {
        "scale": alt.Scale(domain=[0, max(1, len(devices))], nice=False, reverse=True),
        "axis": alt.Axis(
            values=[i + 0.5 for i in range(len(devices))], labelExpr=lookup(labels), title=None, grid=False
        ),
    }
    blocks = layer(rows, width=WIDTH - 40, height=height).mark_rect(strokeWidth=1.5).encode(
        x=alt.X("start:Q", **x), x2=alt.X2("end:Q"), y=alt.Y("y:Q", **y), y2=alt.Y2("y2:Q"), color=fixed("ground"),
        stroke=alt.Stroke("edge:N", scale=None, legend=None), strokeDash=alt.StrokeDashValue([4, 3]),
        tooltip=hover(rows, **_CARD),
    )  # fmt: skip
    idle = [row for row in rows if row["kind"] == "idle"]
    stripes = hatch(idle, theme, x="start", x2="end", y="y", y2="y2", step=most / WIDTH * 6, scales={"x": x, "y": y})
    texts = layer([row for row in rows if row["text"]]).mark_text(align="left", dx=5, baseline="middle").encode(
        x=alt.X("start:Q", **x), y=alt.Y("middle:Q", **y), text=alt.Text("text:N"), color=fixed("ink")
    )  # fmt: skip
    sums: Rows = [{"y": i + 0.5, "text": amount(book.measured_j, unit)} for i, book in enumerate(devices)]
    ends = layer(sums).mark_text(align="left", dx=6, baseline="middle", fontWeight=600).encode(
        x=alt.XValue(WIDTH - 40), y=alt.Y("y:Q", **y), text=alt.Text("text:N")
    )  # fmt: skip
    return alt.layer(blocks, stripes, texts, ends)


def _stack(index: int, book: BookBar, theme: Theme, most: float, unit: str, titles: Mapping[str, str]) -> Rows:
    rows: Rows = []
    at = 0.0
    for kind, (usual, _) in KINDS.items():
        title = titles.get(kind, usual)
        energy = book.idle_j if kind == "idle" else book.by_kind.get(kind, 0.0)
        if energy <= 0:
            continue
        ground = theme.idle if kind == "idle" else colour(kind)
        text = f"{title} {amount(energy, unit)}"
        if pixels(text) > energy / most * (WIDTH - 40) - 8:
            text = amount(energy, unit)
        fits = pixels(text) <= energy / most * (WIDTH - 40) - 8
        rows.append(
            {
                "kind": kind, "title": title, "start": at, "end": at + energy, "energy_j": energy,
                "y": index + 0.12, "y2": index + 0.88, "middle": index + 0.5,
                "ground": ground, "ink": ink(ground), "edge": theme.text if book.estimated else ground,
                "device": book.label, "energy": amount(energy, unit), "share": percent(energy, book.measured_j),
                "exact": f"{energy:.9g} {unit}", "text": text if fits else "",
            }
        )  # fmt: skip
        at += energy
    return rows
