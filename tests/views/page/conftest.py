"""A headless Chromium for the page's tests; every message on its console, and every failed request, fails the test."""

import shutil
import subprocess
import tarfile

import pytest

from tests.conftest import NET_S, need

PATIENCE_MS = NET_S * 500  # a last net, not a measure of speed
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
    reason = "playwright is not installed: pip install 'wattribute[dev]'"
    sync_playwright = pytest.importorskip("playwright.sync_api", reason=reason).sync_playwright
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The accessibility checker axe-core, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: axe-core comes from it")
    folder = tmp_path_factory.mktemp("axe")
    command = [npm, "pack", "axe-core@4", "--silent", "--fetch-retries=0", "--fetch-timeout=20000"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot fetch axe-core here: {done.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as packed:
        file = packed.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


class Tab:
    """A page in a browser tab, with the few gestures the tests make."""

    def __init__(self, context):
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url):
        self.page.goto(url)
        self.page.wait_for_selector("body[data-loaded]")
        self.settle()
        return self

    def settle(self):
        """Until nothing is being fetched or added up."""
        self.page.wait_for_timeout(120)
        self.page.wait_for_selector('#panel[aria-busy="false"]')
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
