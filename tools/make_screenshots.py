"""Makes the pictures of docs/view.md: five states of the page, from the example trace, in headless Chromium."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from wattribute import view

ROOT = Path(__file__).parent.parent
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
                if act:
                    act(tab)
                    tab.wait_for_timeout(600)
                tab.screenshot(path=str(ROOT / "docs" / "pictures" / f"view-{name}.png"))
                tab.close()
        browser.close()


if __name__ == "__main__":
    main()
