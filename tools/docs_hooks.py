"""Hooks of MkDocs: pages whose text is kept elsewhere, and links to files of the repository that are no pages.

``CONTRIBUTING.md`` and ``CHANGELOG.md`` stay at the top of the repository, where people look for them; the table of
sensors is made from the files that the package reads.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")
FENCE = re.compile(r"^( *)```.*?^ *```$", re.MULTILINE | re.DOTALL)
ROLE = re.compile(r":(?:class|func|meth|mod|attr):(?=<code>)")  # of docstrings
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
ABLE = {
    "CONTRIBUTING.md": "You will be able to change wattribute: run its tests, and add a reader, meter, output, engine, "
    "option, verb or chart.",
    "CHANGELOG.md": "You will be able to see what a version changed.",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, text in ABLE.items():
        title, rest = (ROOT / source).read_text(encoding="utf-8").split("\n", 1)
        page = links(f"{title}\n\n{text}\n{rest}", ROOT, config.extra["repository"])
        files.append(File.generated(config, PAGES[source], content=page))
    files.append(File.generated(config, "sensor-table.md", content=sensor_table()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.abs_src_path is None:
        return markdown
    return links(markdown, Path(page.file.abs_src_path).parent, config.extra["repository"])


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Docstrings name the role of a name for editors; readers see the name."""
    return ROLE.sub("", html)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """The worker of the search is ours: nothing is fetched from elsewhere."""
    return output.replace("https://unpkg.com/iframe-worker/shim", get_relative_url("assets/file-worker.js", page.url))


def links(markdown: str, folder: Path, repository: str) -> str:
    """Links to pages as the site has them; those to other files of the repository lead to it."""

    def replaced(match: re.Match[str]) -> str:
        path, anchor = (folder / match[1]).resolve(), match[2] or ""
        if not path.is_relative_to(ROOT) or not path.exists():
            return match[0]  # MkDocs says what is wrong
        name = path.relative_to(ROOT).as_posix()
        if name in PAGES:
            up = "../" * len(folder.relative_to(ROOT / "docs").parts) if folder != ROOT else ""
            return f"]({up}{PAGES[name]}{anchor})"
        if name.startswith("docs/"):
            return f"]({name.removeprefix('docs/')}{anchor})" if folder == ROOT else match[0]
        return f"]({repository}/blob/main/{name}{anchor})"

    parts, at = [], 0
    for fence in FENCE.finditer(markdown):  # code stays as it is
        parts += [LINK.sub(replaced, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(replaced, markdown[at:])])


def sensor_table() -> str:
    """Every line that the package knows about sensors."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    lines = [
        "# Sensor table",
        "",
        "You will be able to see what wattribute assumes about a power sensor, and where that comes from.",
        "",
        "Made from `src/wattribute/sensors/*.toml`. The first line that matches vendor, card, driver and field counts; "
        "[what sensors show](sensors.md) explains the columns and how to add lines of your own.",
        "",
        "| vendor | card | field | kind | period s | window s | lag s | source |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for path in sorted((ROOT / "src" / "wattribute" / "sensors").glob("*.toml")):
        for sensor in tomllib.loads(path.read_text(encoding="utf-8")).get("sensor", ()):
            columns = ("vendor", "card", "field", "kind", "period_s", "window_s", "lag_s", "source")
            lines.append("| " + " | ".join(_cell(sensor.get(column, ""), column) for column in columns) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: Any, column: str) -> str:
    if isinstance(value, list):
        return " … ".join(f"{number:g}" for number in (value[0], value[-1]))
    return f"`{value}`" if column in ("card", "field") and value else str(value)
