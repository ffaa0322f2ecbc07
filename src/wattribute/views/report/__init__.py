"""The story of a run on a page or two, for a paper's appendix or a wiki: ``write_report(path, "report.html")``.

::

    story | versus (what there is to say: numbers, sentences, tables, pictures)  ⟶  html | markdown | pdf

The three writers know nothing of energy; ``story`` (one run) and ``versus`` (two) know nothing of files.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...errors import OptionError
from ...files import STANDARD_OUTPUT, write_file
from ..save import check_place, format_of

FORMATS = ("html", "md", "pdf")


def write_report(
    source: Any,
    output: str | os.PathLike[str],
    *,
    vs: Any = None,
    zone: str | None = None,
    format: str | None = None,
    **selection: Any,
) -> Path:
    """Write a report of ``source``, a Recording or a path, to ``output``; its ending says how: .html, .md or .pdf.

    With ``vs``, another recording or path, it reports how that one differs. ``zone`` is that of the emissions. Markdown
    keeps its pictures in a folder beside it. ``-`` is standard output, in ``format`` (HTML by default).
    ``selection`` are the options of ``attribute``.
    """
    ending = format_of(output, FORMATS, format)
    check_place(output, ending)
    if ending == "md" and os.fspath(output) == STANDARD_OUTPUT:
        raise OptionError("a Markdown report has pictures beside it: write it to a file, or --format html")
    from .story import story
    from .versus import versus

    content = versus(source, vs, zone=zone, **selection) if vs is not None else story(source, zone=zone, **selection)
    if ending == "pdf":
        from .pdf import pdf

        return write_file(output, pdf(content))
    if ending == "md":
        from .markdown import markdown

        target = Path(output)
        return write_file(target, markdown(content, target.parent, f"{target.stem}_files"))
    from .html import html

    return write_file(output, html(content))
