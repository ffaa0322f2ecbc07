"""The server gives the page to its own browser tab and nothing to anybody else."""

import http.client
import json
from urllib.parse import urlsplit

import pytest

from tests.views.page.hand import HOSTILE, recording
from wattribute.views.page import view


@pytest.fixture(scope="module")
def page():
    with view(recording()) as page:
        yield page


def ask(page, path="", headers=None, method="GET", token=None):
    at = urlsplit(page.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=10)
    prefix = at.path if token is None else f"/{token}/"
    connection.request(method, prefix + path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_it_listens_on_this_machine_only(page):
    assert urlsplit(page.url).hostname == "127.0.0.1"


def test_the_page_and_its_files(page):
    answer, body = ask(page)
    assert answer.status == 200
    assert b"importmap" in body
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    answer, body = ask(page, "static/main.js")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("token", ["", "x", "A" * 22])
def test_without_the_token_there_is_nothing(page, token):
    for path in ("", "static/main.js", "api/facts"):
        answer, body = ask(page, path, token=token)
        assert answer.status == 403
        assert "token" in json.loads(body)["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_another_host_name_is_refused(page, host):
    assert ask(page, headers={"Host": host})[0].status == 403


def test_the_other_end_of_a_tunnel_is_fine(page):
    headers = {"Host": "localhost:8080", "Origin": "http://localhost:8080"}
    assert ask(page, "api/facts", headers=headers)[0].status == 200


def test_serving_others_still_refuses_names_that_are_not_ours():
    with view(recording(), host="0.0.0.0") as page:
        at = urlsplit(page.url)
        for host, status in ((at.netloc, 200), ("10.1.2.3:80", 200), ("evil.example", 403)):
            connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=10)
            connection.request("GET", at.path, headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_another_site_is_refused(page, headers):
    assert ask(page, "api/facts", headers=headers)[0].status == 403


@pytest.mark.parametrize(
    "path",
    [
        "../server.py",
        "static/../server.py",
        "static/%2e%2e/server.py",
        "static//etc/passwd",
        "etc/passwd",
        "static/",
        "nope",
    ],
)
def test_nothing_outside_the_recording_is_served(page, path):
    assert ask(page, path)[0].status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_reading_is_all_it_does(page, method):
    assert ask(page, "api/facts", method=method)[0].status == 501


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("api/nope", 404),
        ("api/span?lane=99&row=0", 404),
        ("api/span?lane=0&row=-5", 404),
        ("api/span?lane=0&row=12345", 404),
        ("api/view?lanes=0&from=a&to=1&width=3", 400),
        ("api/view?lanes=x&from=0&to=1&width=3", 400),
        ("api/view?lanes=0&from=5&to=5&width=3", 400),
        ("api/bin?lane=2&from=1e999&to=3", 400),
        ("api/power?devices=7&from=0&to=3&width=5", 404),
        ("api/table?from=3", 400),
    ],
)
def test_wrong_questions_get_a_sentence(page, path, status):
    answer, body = ask(page, path)
    assert answer.status == status
    assert json.loads(body)["error"]


def test_names_stay_as_they_are_in_the_answers(page):
    facts = json.loads(ask(page, "api/facts")[1])
    assert facts["frames"][1]["name"] == HOSTILE
    assert "script>alert" in facts["title"]
