"""Display of large values: a few lines as text, a small table as HTML in notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

NAMES = 6  # listed before the rest is a number
ROWS = 5


def listed(names: Iterable[str], most: int = NAMES) -> str:
    """Names joined by commas, each once; of many the first ones and how many more there are."""
    each = list(dict.fromkeys(names))
    more = f" and {len(each) - most} more" if len(each) > most else ""
    return ", ".join(each[:most]) + more or "none"


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def text(title: str, facts: Mapping[str, str], rows: Sequence[Sequence[str]] = ()) -> str:
    """A title, a line per fact, and rows below it, aligned."""
    lines = [title, *(f"  {name}: {value}" for name, value in facts.items())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in lines)


def html(title: str, facts: Mapping[str, str], rows: Sequence[Sequence[str]] = ()) -> str:
    """The same as HTML; every text is escaped."""

    def line(cells: Sequence[Any], tag: str = "td") -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    about = "".join(line(fact) for fact in facts.items())
    table = "<table>" + line(rows[0], "th") + "".join(map(line, rows[1:])) + "</table>" if rows else ""
    return f"<div><strong>{escape(title)}</strong><table>{about}</table>{table}</div>"
