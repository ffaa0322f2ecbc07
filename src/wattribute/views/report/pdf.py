"""A story as PDF: A4 pages of text as SVG and charts, which vl-convert turns into vector PDF, put together by pypdf.

The layout is a flow of blocks, each of known height; a block that does not fit goes to the next page.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from ...errors import MissingExtraError
from ..charts.canvas import fitting, pixels, wrap
from ..save import convert
from ..save import pdf as pdf_of
from ..theme import FONT, LIGHT
from .story import Picture, Section, Story, StoryTable

_WIDE, _HIGH, _EDGE = 595.0, 842.0, 42.0
_ROOM = _WIDE - 2 * _EDGE
_SMALL, _BELOW = 8, 6


@dataclass(frozen=True)
class PdfBlock:
    """A piece of the page: its height, and SVG whose top is at 0. ``stays``: with the block after it."""

    height: float
    text: str = ""
    stays: bool = False
    drawn: bytes = b""  # a chart as PDF, and how it is scaled
    scale: float = 1.0


def pdf(story: Story) -> bytes:
    """The whole file."""
    try:
        import pypdf
    except ImportError:
        raise MissingExtraError("plot", "pypdf") from None

    book = pypdf.PdfWriter()
    for text, charts in _pages(list(_blocks(story))):
        sheet = book.add_page(pypdf.PdfReader(io.BytesIO(convert().svg_to_pdf(text))).pages[0])
        for chart, at in charts:
            drawn = pypdf.PdfReader(io.BytesIO(chart.drawn)).pages[0]
            # PDF counts from the foot of the page
            place = pypdf.Transformation().scale(chart.scale).translate(_EDGE, _HIGH - at - chart.height + _BELOW)
            sheet.merge_transformed_page(drawn, place)
    book.add_metadata({"/Title": f"{story.title}: whose joules?", "/Producer": "wattribute"})
    book.compress_identical_objects()
    out = io.BytesIO()
    book.write(out)
    return out.getvalue()


def _pages(blocks: list[PdfBlock]) -> Iterator[tuple[str, list[tuple[PdfBlock, float]]]]:
    """Pages as SVG, and the charts to lay on each with their tops; a heading never stands alone at a page's foot."""
    at, parts, charts = _EDGE, list[str](), list[tuple[PdfBlock, float]]()
    for i, block in enumerate(blocks):
        needed = block.height + (blocks[i + 1].height if block.stays and i + 1 < len(blocks) else 0)
        if at + needed > _HIGH - _EDGE and at > _EDGE:
            yield _page(parts), charts
            at, parts, charts = _EDGE, [], []
        parts.append(f'<g transform="translate({_EDGE},{at:.1f})">{block.text}</g>' if block.text else "")
        if block.drawn:
            charts.append((block, at))
        at += block.height
    yield _page(parts), charts


def _page(parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{_HIGH}" viewBox="0 0 {_WIDE} {_HIGH}">'
        f"{''.join(parts)}</svg>"
    )


def _blocks(story: Story) -> Iterator[PdfBlock]:
    yield PdfBlock(28, _text(fitting(story.title, _ROOM * 11 / 20), 0, 20, 20, bold=True))
    if story.missing:
        yield from _paragraph(f"! {story.missing}", 11)
    yield from _paragraph(story.lead, 11)
    yield _numbers(story.numbers)
    for section in story.sections:
        yield PdfBlock(26, _text(section.title, 0, 18, 13, bold=True), stays=True)
        yield from _section(section)


def _section(section: Section) -> Iterator[PdfBlock]:
    if section.picture:
        yield _picture(section.picture)
    if section.table:
        yield from _table(section.table)
    for sentence in section.sentences:
        yield from _paragraph(sentence, 9)


def _text(
    text: str, x: float, y: float, size: float, *, bold: bool = False, end: bool = False, faint: bool = False
) -> str:
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="end"' if end else ""
    fill = LIGHT.muted if faint else LIGHT.text
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-family={quoteattr(FONT)} fill="{fill}"{weight}{anchor}>'
        f"{escape(text)}</text>"
    )


def _paragraph(text: str, size: int) -> Iterator[PdfBlock]:
    """Lines one by one, so that a long paragraph may cross pages; words wider than the page are cut."""
    lines = [fitting(line, _ROOM * 11 / size) for line in wrap(text, _ROOM, size)]
    for i, line in enumerate(lines):
        last = i == len(lines) - 1
        yield PdfBlock(size * 1.35 + (size * 0.6 if last else 0), _text(line, 0, size, size))


def _numbers(numbers: list[tuple[str, str]]) -> PdfBlock:
    per_row = 3
    width = _ROOM / per_row
    parts = []
    for i, (what, much) in enumerate(numbers):
        x, y = i % per_row * width, i // per_row * 36
        parts.append(_text(what, x, y + 10, _SMALL, faint=True))
        parts.append(_text(much, x, y + 25, 13, bold=True))
    return PdfBlock(36 * -(-len(numbers) // per_row) + 4, "".join(parts))


def _picture(picture: Picture) -> PdfBlock:
    """The chart scaled to the page."""
    import pypdf

    drawn = pdf_of(picture.light)
    box = pypdf.PdfReader(io.BytesIO(drawn)).pages[0].mediabox
    scale = min(_ROOM / float(box.width), (_HIGH - 2 * _EDGE - 30) / float(box.height), 0.8)
    return PdfBlock(float(box.height) * scale + _BELOW, drawn=drawn, scale=scale)


def _table(table: StoryTable) -> Iterator[PdfBlock]:
    """Rows one by one; the widest text columns give way until the table fits."""
    widths = _widths(table)
    line = 14

    def row(cells: list[str], faint: bool) -> PdfBlock:
        parts, x = [], 0.0
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            shown = fitting(cell, (width - 8) * 11 / _SMALL, 1)
            right = i in table.right
            parts.append(_text(shown, x + width - 8 if right else x, 10, _SMALL, end=right, faint=faint))
            x += width
        rule = f'<line x1="0" x2="{_ROOM}" y1="{line - 1}" y2="{line - 1}" stroke="{LIGHT.grid}" stroke-width="0.6"/>'
        return PdfBlock(line, "".join(parts) + rule, stays=faint)

    yield row(table.columns, True)
    for cells in table.rows:
        yield row(cells, False)
    yield PdfBlock(6)


def _widths(table: StoryTable) -> list[float]:
    widths = [
        max(pixels(cell, _SMALL) for cell in column) + 14 for column in zip(table.columns, *table.rows, strict=True)
    ]
    over = sum(widths) - _ROOM
    texts = sorted((i for i in range(len(widths)) if i not in table.right), key=lambda i: -widths[i])
    for i in texts:
        given = min(max(0.0, over), widths[i] - 60) if widths[i] > 60 else 0.0
        widths[i] -= given
        over -= given
    if over > 0:
        widths = [width * _ROOM / sum(widths) for width in widths]
    return widths
