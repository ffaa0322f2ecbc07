"""A headless Chromium for the page's tests; every message on its console, and every failed request, fails the test."""

import os

import pytest

from tests.conftest import need

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def chromium():
    path = need("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip("playwright is not installed: pip install 'wattribute[dev]'")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page in a browser tab, with the few gestures the tests make."""

    def __init__(self, context):
        self.page = context.new_page()
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url):
        self.page.goto(url)
        self.page.wait_for_selector("body[data-loaded]", timeout=20000)
        self.settle()
        return self

    def settle(self):
        """Until nothing is being fetched or added up."""
        self.page.wait_for_timeout(120)
        self.page.wait_for_selector('#panel[aria-busy="false"]', timeout=20000)
        self.page.wait_for_timeout(80)

    def x(self, seconds):
        """Where a moment is on screen."""
        box = self.page.locator("#lanes").bounding_box()
        return box["x"] + self.page.evaluate("s => wattribute.axis.x(s * wattribute.axis.perSecond)", seconds)

    def y(self, label, depth=0):
        """The middle of a lane's row, by the lane's name."""
        box = self.page.locator("#lanes").bounding_box()
        find = "name => wattribute.lanes.rows.find((row) => row.lane?.name === name).y - wattribute.view.scroll"
        return box["y"] + self.page.evaluate(find, label) + 2 + 13 * depth + 6

    def hover(self, seconds, label, depth=0):
        self.page.mouse.move(self.x(seconds), self.y(label, depth))
        self.page.wait_for_selector("#card:not([hidden])")
        self.page.wait_for_timeout(300)
        return self.page.locator("#card").inner_text()

    def shown(self):
        """The time range on screen, in seconds."""
        return self.page.evaluate(
            "[wattribute.view.from, wattribute.view.to].map((t) => t / wattribute.axis.perSecond)"
        )

    def brush(self, a, b):
        """Shift-drag over the lanes; returns the range that was brushed, in ticks."""
        y = self.page.locator("#lanes").bounding_box()["y"] + 30
        self.page.keyboard.down("Shift")
        self.page.mouse.move(self.x(a), y)
        self.page.mouse.down()
        self.page.mouse.move(self.x((a + b) / 2), y)
        self.page.mouse.move(self.x(b), y)
        self.page.mouse.up()
        self.page.keyboard.up("Shift")
        self.settle()
        return self.page.evaluate("wattribute.view.brush")

    def joules(self, selector):
        """The exact numbers behind what cells show."""
        return [float(cell.get_attribute("data-j")) for cell in self.page.locator(selector).all()]

    def tab(self, name):
        self.page.click(f"[data-tab={name}]")
        self.settle()


@pytest.fixture
def tab(chromium):
    context = chromium.new_context(viewport={"width": 1400, "height": 860})
    tab = Tab(context)
    yield tab
    context.close()
    assert tab.complaints == []
