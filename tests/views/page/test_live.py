"""The live page: the session behind it, the server's rules, and a real browser that watches a real monitor."""

import json
import re
import subprocess
import sys

import pytest

from tests.meters.fakes import FakeNvml, Wave
from tests.views.page.test_server import ask
from wattribute.model.status import CarbonStatus, DeviceStatus, Status
from wattribute.views.page.live import KEPT, LiveSession, serve

HOSTILE = "GPU <script>alert(1)</script> 0"


def status(number, power_w=300.0):
    energy_j, epoch_ns = power_w * number, 10**18 + number * 10**9
    device = DeviceStatus(HOSTILE, "gpu", power_w=power_w, energy_j=energy_j, power_limit_w=400.0)
    carbon = CarbonStatus(1.0, 400.0, "World average", assumed=True)
    return Status(0, epoch_ns, float(number), "here", [device], carbon, power_w, energy_j, cpus=2)


def test_the_page_gets_what_it_has_not_seen():
    session = LiveSession()
    assert session.answer("readings", {})["now"] is None
    for number in range(3):
        session(status(number, 100.0 + number))
    whole = session.answer("readings", {})
    assert (whole["count"], [row["power_w"] for row in whole["fresh"]]) == (3, [100.0, 101.0, 102.0])
    assert [row["power_w"] for row in session.answer("readings", {"after": "2"})["fresh"]] == [102.0]
    assert session.answer("readings", {"after": "3"})["fresh"] == []
    assert session.answer("readings", {"after": "99"})["fresh"] == []
    with pytest.raises(KeyError):
        session.answer("facts", {})


def test_it_forgets_what_is_older_than_two_hours():
    session = LiveSession()
    for number in range(KEPT + 5):
        session(status(number))
    found = session.answer("readings", {})
    assert (found["count"], len(found["fresh"])) == (KEPT + 5, KEPT)
    assert len(session.answer("readings", {"after": str(KEPT)})["fresh"]) == 5


@pytest.fixture(scope="module")
def page():
    with serve() as page:
        for number in range(5):
            page.session(status(number))
        yield page


def test_the_server_has_the_rules_of_view(page):
    answer, body = ask(page)
    assert b"live.js" in body
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert json.loads(ask(page, "api/readings?after=4")[1])["count"] == 5
    assert ask(page, "api/readings", headers={"Host": "evil.example"})[0].status == 403
    assert ask(page, "api/readings", headers={"Origin": "http://evil.example"})[0].status == 403
    assert ask(page, "api/readings", token="x")[0].status == 403
    assert ask(page, "api/readings?after=x")[0].status == 400
    assert ask(page, "api/nope")[0].status == 404
    assert ask(page, "static/../server.py")[0].status == 404


def test_names_are_text_and_both_themes_are_drawn(tab, page):
    tab.page.goto(page.url)
    tab.page.wait_for_selector("body[data-loaded]")
    assert HOSTILE in tab.page.locator(".tile h2").inner_text()
    assert tab.page.locator("#sum-power").inner_text().split("\n")[0] == "300 W"
    assert "measured" in tab.page.locator("#sum-power").inner_text()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    tab.page.keyboard.press("t")
    assert tab.page.evaluate(ground) != light
    box = tab.page.locator(".tile canvas").bounding_box()
    tab.page.mouse.move(box["x"] + box["width"] - 5, box["y"] + 40)
    assert "300 W measured" in tab.page.locator("#card").inner_text()
    own = page.url.split("/")[2]
    assert all(url.split("/")[2] == own for url in tab.requests)  # nothing from anywhere else


def test_a_browser_sees_a_monitor_live_and_its_end(tab, tmp_path):
    fake = FakeNvml(tmp_path, [Wave(300), Wave(120)])
    command = [sys.executable, "-m", "wattribute", "monitor", "--web", "--interval", "0.2", "--format", "json"]
    process = subprocess.Popen(
        command, env=fake.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        url = process.stderr.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]+/", url)
        tab.page.goto(url)
        tab.page.wait_for_selector("[data-device='GPU 1']")
        assert tab.page.locator("[data-device='GPU 1'] .now b").inner_text() == "120 W"
        assert tab.page.locator("[data-device='CPU'] .tag").inner_text() == "estimated"
        assert "CPU is not added" in tab.page.locator("#notes").inner_text()
        joules, points = tab.page.evaluate("[wattribute.now.energy_j, wattribute.rows.length]")
        later = "([j, n]) => wattribute.now.energy_j > j && wattribute.rows.length > n"
        tab.page.wait_for_function(later, arg=[joules, points])  # it goes on by itself
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0
    tab.page.wait_for_selector("#banner:not([hidden])")
    assert "has ended" in tab.page.locator("#banner").inner_text()
    tab.page.goto("about:blank")  # it would ask for ever
    assert all("ERR_CONNECTION" in told for told in tab.complaints)  # only that nobody answers any more
    tab.complaints.clear()
