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
