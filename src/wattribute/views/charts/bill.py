"""Bill: whose joules on a shared machine: this command, other processes, static and idle, as one bar per device."""

from __future__ import annotations

from typing import Any

from ...engines import scope_fields
from ...model import Attribution
from ...model.constants import OTHERS, STATIC
from ...plugins import chart
from ..numbers import amount
from ..theme import theme as theme_of
from .books import BookBar, bars, kinds_of
from .canvas import finish, legend
from .captions import caption, device_label, subtitle
from .tables import one_view, regrouped
from .totals import known, total

TITLES = {"user": "this command"}
_KIND = {OTHERS: "others", STATIC: "static"}


@chart("bill", about="the command, other processes and static, per device", by=("device", "frame"))
def bill(attribution: Attribution, *, theme: str = "light", top: int = 32) -> Any:
    """Per device: measured = this command + other processes + static + idle, as far as the recording tells them."""
    look = theme_of(theme)
    view = one_view(attribution)
    table = regrouped(view, bill.by, **scope_fields(view.recording))
    parts: dict[tuple[str, str, str], dict[str, float]] = {}
    for host, device, of, frame, energy in table.rows.select("host", "device", "of", "frame", "self_j").iter_rows():
        mine = parts.setdefault((host, device, of), {})
        kind = _KIND.get(frame, "user")
        mine[kind] = mine.get(kind, 0.0) + energy
    every = []
    for row in table.devices.to_dicts():
        if row["counted"]:
            by_kind = parts.get((row["host"], row["device"], row["of"]), {})
            label = device_label(table, row["host"], row["device"])
            every.append(BookBar(label, by_kind, float(row["idle_j"] or 0.0), bool(row["estimated"])))
    shown = sorted(every, key=lambda book: -book.measured_j)[:top]
    command_j = sum(book.by_kind.get("user", 0.0) for book in every)
    words = f"{amount(command_j, table.unit)} of {amount(total(table, 'measured'), table.unit)} {known(table)}"
    return finish(
        [
            legend(kinds_of(every), look, TITLES),
            bars(shown, look, table.unit, TITLES),
        ],
        look,
        title=f"{words} went to this command",
        subtitle=subtitle(table),
        caption=caption(table),
    )
