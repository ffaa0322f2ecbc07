"""A saved chart in a browser without network: it draws, hovers, and runs nothing that users wrote.

Beside the page's tests because two browsers cannot be driven from one process.
"""

import pytest

from tests.views.page.conftest import PATIENCE_MS
from tests.views.stories import HOSTILE, streams
from wattribute.views import plot


@pytest.mark.parametrize("kind", ["heatmap", "timeline"])
def test_html_works_offline_and_shows_hostile_names_as_text(kind, chromium, tmp_path):
    target = plot.save(plot.draw(kind, [streams(list(HOSTILE))]), tmp_path / "chart.html")
    page = chromium.new_context(offline=True, viewport={"width": 1300, "height": 700}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    trouble = []
    page.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: trouble.append(request.url) if request.url.startswith("http") else None)
    page.goto(target.as_uri())
    marks = page.locator("svg .mark-rect path")
    marks.first.wait_for(state="attached")
    found = ""
    for i in range(marks.count()):  # hover until the script's card shows
        marks.nth(i).hover(force=True)
        card = page.locator("#vg-tooltip-element.visible")
        if card.count() and "<script>" in card.inner_text():
            found = card.inner_text()
            break
    assert "<script>alert(1)</script>" in found
    assert "exactly" in found
    assert trouble == []
    page.context.close()


def opened(chromium, target):
    page = chromium.new_context(offline=True, viewport={"width": 1300, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(target.as_uri())
    page.locator("svg .mark-rect path").first.wait_for(state="attached")
    return page


def test_zooming_into_bins_reaches_single_calls(chromium, tmp_path):
    """10,000 spans in one lane are bins; the wheel brings the calls themselves, which hovering names."""
    recording = streams(["even", "odd"], calls=5000)
    target = plot.write("timeline", [recording], tmp_path / "chart.html")
    page = opened(chromium, target)
    bars = page.locator("svg .mark-rect path[aria-label*='mostly']")
    bars.first.wait_for(state="attached")
    box = bars.nth(bars.count() // 2).bounding_box()
    page.mouse.move(box["x"], box["y"] + box["height"] / 2)
    single = page.locator("svg .mark-rect path[aria-label*='frame: even']")
    for _ in range(40):
        page.mouse.wheel(0, -300)
        page.wait_for_timeout(200)  # as a hand does
        if single.count():
            break
    single.first.wait_for(state="attached")
    assert bars.count() == 0
    page.context.close()


@pytest.mark.parametrize("kind", ["timeline", "heatmap"])
def test_charts_fill_the_window(kind, chromium, tmp_path):
    page = opened(chromium, plot.write(kind, [streams(["a", "b"])], tmp_path / "chart.html"))
    page.wait_for_function(
        "() => { const box = document.querySelector('#chart svg').getBoundingClientRect();"
        " return box.width > 1200 || box.height > 800; }"
    )
    page.context.close()


def test_the_wheel_zooms_a_heatmap_and_a_double_click_shows_all(chromium, tmp_path):
    page = opened(chromium, plot.write("heatmap", [streams(["a", "b"])], tmp_path / "chart.html"))
    wait = "(wide) => { const box = document.querySelector('#chart svg').viewBox.baseVal; return box && %s; }"
    page.wait_for_function(wait % "box.width > 0", arg=0)
    whole = page.evaluate("document.querySelector('#chart svg').viewBox.baseVal.width")
    page.mouse.move(300, 200)
    page.mouse.wheel(0, -300)
    page.wait_for_function(wait % "box.width < wide", arg=whole)
    page.mouse.dblclick(300, 200)
    page.wait_for_function(wait % "box.width >= wide", arg=whole)
    page.context.close()


def test_zooming_out_stops_at_the_whole_run(chromium, tmp_path):
    """The wheel turned back for long shows nothing beyond the data."""
    page = opened(chromium, plot.write("power", [streams(["a", "b"])], tmp_path / "chart.html"))
    texts = "document.querySelectorAll('#chart svg .role-axis-label text')"
    labels = f"() => [...{texts}].map((one) => one.textContent).sort()"
    page.wait_for_function("() => document.querySelector('#chart svg').getBoundingClientRect().width > 1200")
    whole = page.evaluate(labels)
    page.mouse.move(600, 150)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"(whole) => String(({labels})()) !== String(whole)", arg=whole)
    for _ in range(5):
        page.mouse.wheel(0, 1000)
    page.wait_for_function(f"(whole) => String(({labels})()) === String(whole)", arg=whole)
    page.context.close()
