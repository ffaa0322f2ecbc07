"""LaTeX: the rows of an attribution as a ``tabular``, for papers; it needs no package but ``booktabs``."""

from __future__ import annotations

from typing import Any

from ..model import Answer
from .tables import about, emit, printed

SUFFIXES = (".tex",)
SEVERAL_RUNS = True
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "–": "--",
}  # fmt: skip


def text(attribution: Answer) -> str:
    head, *rows = printed(attribution)
    keys = len(head) - sum("(" in word or word == "calls" for word in head)
    facts = about(attribution)
    return "\n".join(
        [
            f"% wattribute {facts['version']}, method {facts['method']}, share {facts['share']}",
            rf"\begin{{tabular}}{{{'l' * keys}{'r' * (len(head) - keys)}}}",
            r"\toprule",
            _line(head),
            r"\midrule",
            *map(_line, rows),
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def _line(cells: list[str]) -> str:
    return " & ".join("".join(_SPECIAL.get(c, c) for c in " ".join(cell.split())) for cell in cells) + r" \\"


def write(attribution: Answer, target: str, **options: Any) -> None:
    emit(text(attribution), target)
