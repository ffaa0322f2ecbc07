"""Makes the pictures of docs/view.md: five states of the page, from the example trace, in headless Chromium.

And those of docs/gallery.md that are no charts, from real traces in ../shared where these are there: the lanes as watts
and as they were before, a table of 80 columns and as it was before.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from rich.console import Console, Group, RenderableType
from rich.table import Table

from wattribute import attribute, view
from wattribute.views.console import attribution_tables
from wattribute.views.fitted_table import FittedTable

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("WATTRIBUTE_SHARED", ROOT.parent / "shared")) / "traces"
COLUMNS = 80
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def at(tab: Any, seconds: float, lane: int, depth: int = 0) -> tuple[float, float]:
    """Where a moment of a lane is on screen."""
    box = tab.locator("#lanes").bounding_box()
    x = tab.evaluate("s => wattribute.axis.x(s * wattribute.axis.perSecond)", seconds)
    y = tab.evaluate("n => wattribute.lanes.rows.filter((row) => row.lane)[n].y - wattribute.view.scroll", lane)
    return box["x"] + x, box["y"] + y + 8 + 13 * depth


def hover(tab: Any) -> None:
    tab.mouse.move(*at(tab, 1.05, 1))


STATES: dict[str, tuple[str, Any]] = {
    "lanes": ("#v=700000000,1400000000", hover),
    "brush": ("#b=2000000000,3100000000&q=stencil", None),
    "flame": ("#tab=flame&theme=dark", None),
    "heatmap": ("#tab=heatmap&c=power", None),
    "sensors": ("#tab=sensors", None),
}


def as_before(shown: RenderableType) -> RenderableType:
    """Tables that do not fit themselves to the terminal: what is too wide is cut."""
    if isinstance(shown, Group):
        return Group(*map(as_before, shown.renderables))
    if not isinstance(shown, FittedTable):
        return shown
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in shown.columns:
        table.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap)
    for line in zip(*(column.cells for column in shown.columns), strict=True):
        table.add_row(*line)
    return table


def terminal(browser: Any, shown: RenderableType, path: Path) -> None:
    """A picture of what is printed on a terminal of 80 columns."""
    # one column more: Rich's picture cuts the last one
    console = Console(record=True, width=COLUMNS + 1, file=io.StringIO(), force_terminal=True)
    console.print(shown)
    drawn = console.export_svg(title=f"{COLUMNS} columns").replace("Fira Code", "DejaVu Sans Mono")
    tab = browser.new_page(viewport={"width": 1030, "height": 900})
    tab.set_content(drawn)
    tab.locator("svg").first.screenshot(path=str(path))
    tab.close()


def gallery(browser: Any) -> None:
    out = ROOT / "docs" / "gallery"
    with contextlib.chdir(SHARED):  # messages name files as they were given
        tables = attribution_tables(attribute("frontier-hpl-partial", by="frame"), 12, COLUMNS)
    terminal(browser, tables, out / "table-80-columns.png")
    terminal(browser, as_before(tables), out / "table-80-columns-before.png")
    with view(SHARED / "simple-mi300") as page:
        for name, shape in (("page-lanes", "watts"), ("page-lanes-before", "stack")):
            tab = browser.new_page(viewport={"width": 1400, "height": 940})
            tab.goto(f"{page.url}#shape={shape}")
            tab.wait_for_selector("body[data-loaded]")
            tab.wait_for_timeout(1500)
            tab.wait_for_selector('#panel[aria-busy="false"]')
            tab.screenshot(path=str(out / f"{name}.png"))
            tab.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        trace = Path(folder) / "cluster job"
        subprocess.run([sys.executable, str(ROOT / "examples" / "make_trace.py"), str(trace)], check=True)
        browser = play.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        with view(trace) as page:
            for name, (hash_, act) in STATES.items():
                tab = browser.new_page(viewport={"width": 1180, "height": 760})
                tab.goto(page.url + hash_)
                tab.wait_for_selector("body[data-loaded]")
                tab.wait_for_timeout(1500)
                tab.wait_for_selector('#panel[aria-busy="false"]')
                if act:
                    act(tab)
                    tab.wait_for_timeout(600)
                tab.screenshot(path=str(ROOT / "docs" / "pictures" / f"view-{name}.png"))
                tab.close()
        if SHARED.is_dir():
            gallery(browser)
        browser.close()


if __name__ == "__main__":
    main()
