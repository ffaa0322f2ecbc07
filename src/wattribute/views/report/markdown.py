"""A story as Markdown, with its pictures as SVG files in a folder beside it."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from urllib.parse import quote

from ...errors import OutputError
from ...files import write_file
from ..save import svg
from .story import Section, Story, StoryTable


def markdown(story: Story, folder: Path, files: str) -> str:
    """The text; pictures are written into ``folder/files``."""
    parts = [f"# {plain(story.title)}", *([f"**{plain(story.missing)}**"] if story.missing else []), plain(story.lead)]
    parts.append(_table(StoryTable([what for what, _ in story.numbers], [[much for _, much in story.numbers]])))
    for section in story.sections:
        parts += [f"## {plain(section.title)}", *_section(section, folder, files)]
    return "\n\n".join(parts) + "\n"


def _section(section: Section, folder: Path, files: str) -> list[str]:
    parts = []
    if section.picture:
        try:
            (folder / files).mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder / files}: {error.strerror or error}") from error
        write_file(folder / files / f"{section.picture.name}.svg", svg(section.picture.light))
        parts.append(f"![{plain(section.picture.title)}]({quote(files)}/{section.picture.name}.svg)")
    if section.table:
        parts.append(_table(section.table))
    bullet = "- " if len(section.sentences) > 3 else ""
    sentences = [f"{bullet}{plain(sentence)}" for sentence in section.sentences]
    return [*parts, "\n".join(sentences)] if bullet else [*parts, *sentences]


def plain(text: str) -> str:
    """Users' text that no Markdown renderer takes for markup."""
    return re.sub(r"([\\`*_{}\[\]()#+!|~$^])", r"\\\1", escape(text, quote=False)).replace("\n", " ")


def _table(table: StoryTable) -> str:
    rule = [" ---: " if i in table.right else " --- " for i in range(len(table.columns))]
    rows = [f"| {' | '.join(map(plain, row))} |" for row in [table.columns, *table.rows]]
    return "\n".join([rows[0], f"|{'|'.join(rule)}|", *rows[1:]])
