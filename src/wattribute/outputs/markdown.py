"""Markdown: the rows of an attribution as a table, for issues and notes."""

from __future__ import annotations

import re
from typing import Any

from ..model import Answer
from .tables import about, emit, printed

SUFFIXES = (".md",)
SEVERAL_RUNS = True


def text(attribution: Answer) -> str:
    head, *rows = printed(attribution)
    keys = len(head) - sum("(" in word or word == "calls" for word in head)
    rule = ["---" if i < keys else "---:" for i in range(len(head))]
    lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in (head, rule, *rows)]
    facts = about(attribution)
    return "\n".join(
        [*lines, "", f"wattribute {facts['version']}, method {facts['method']}, share {facts['share']}", ""]
    )


def _escaped(cell: str) -> str:
    """A cell in which no character ends the cell or starts markup."""
    return re.sub(r"([\\`*_<>\[\]|])", r"\\\1", " ".join(cell.split()))


def write(attribution: Answer, target: str, **options: Any) -> None:
    emit(text(attribution), target)
