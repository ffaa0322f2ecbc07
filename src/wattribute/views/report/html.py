"""A story as one HTML file: no script, no network; pictures follow the reader's light or dark preference."""

from __future__ import annotations

import base64
from html import escape

from ..save import svg
from ..theme import DARK, FONT, LIGHT, Theme
from .story import Picture, Section, Story, StoryTable


def _colours(theme: Theme) -> str:
    return f"--ground: {theme.ground}; --text: {theme.text}; --muted: {theme.muted}; --line: {theme.grid};"


_STYLE = f"""
:root {{ {_colours(LIGHT)} color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{ :root {{ {_colours(DARK)} }} }}
@media print {{ :root {{ {_colours(LIGHT)} }} }}
body {{ font: 15px/1.5 {FONT}; color: var(--text); background: var(--ground); max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }}
h1 {{ font-size: 1.7rem; margin: 0; overflow-wrap: anywhere; }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }}
.lead {{ font-size: 1.1rem; max-width: 50rem; overflow-wrap: anywhere; }}
dl {{ display: flex; flex-wrap: wrap; gap: .75rem 2rem; margin: 1rem 0; }}
dt {{ color: var(--muted); font-size: .8rem; }}
dd {{ margin: 0; font-size: 1.2rem; font-weight: 600; font-variant-numeric: tabular-nums; }}
.missing {{ font-weight: 600; border-left: 4px solid #D55E00; padding: .3rem .8rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .22rem .8rem .22rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: break-word; }}
th {{ color: var(--muted); font-weight: 400; white-space: nowrap; }}
.right {{ text-align: right; white-space: nowrap; }}
img {{ max-width: 100%; height: auto; }}
p, li {{ max-width: 50rem; overflow-wrap: anywhere; }}
section {{ break-inside: avoid; }}
"""


def html(story: Story) -> str:
    """The whole file."""
    numbers = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(much)}</dd></div>" for what, much in story.numbers)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(story.title)}: whose joules?</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(story.title)}</h1>\n"
        + (f'<p class="missing">{escape(story.missing)}</p>\n' if story.missing else "")
        + f'<p class="lead">{escape(story.lead)}</p>\n<dl>{numbers}</dl>\n'
        + "\n".join(_section(section) for section in story.sections)
        + "\n</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.picture:
        parts.append(_picture(section.picture))
    if section.table:
        parts.append(_table(section.table))
    if len(section.sentences) > 3:
        parts.append("<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in section.sentences) + "</ul>")
    else:
        parts += [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
    return "<section>\n" + "\n".join(parts) + "\n</section>"


def _picture(picture: Picture) -> str:
    """As images, not inline: the ids inside two SVGs would clash."""
    light, dark = (
        "data:image/svg+xml;base64," + base64.b64encode(svg(spec).encode()).decode()
        for spec in (picture.light, picture.dark())
    )
    return (
        f'<picture><source media="print" srcset="{light}"><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(picture.title)}"></picture>'
    )


def _table(table: StoryTable) -> str:
    def cells(tag: str, row: list[str]) -> str:
        classes = (' class="right"' if i in table.right else "" for i in range(len(row)))
        return "".join(f"<{tag}{right}>{escape(cell)}</{tag}>" for right, cell in zip(classes, row, strict=True))

    head, body = cells("th", table.columns), "\n".join(f"<tr>{cells('td', row)}</tr>" for row in table.rows)
    inner = f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    return f'<div class="scroll"><table>\n{inner}</table></div>'
