"""The server gives the page to its own browser tab and nothing to anybody else."""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.views.page.hand import HOSTILE, recording
from wattribute import save
from wattribute.views.page import server, view


@pytest.fixture(scope="module")
def page():
    with view(recording()) as page:
        yield page


def ask(page, path="", headers=None, method="GET", token=None):
    at = urlsplit(page.url)
    connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
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
    with view(recording(), address="0.0.0.0") as page:
        at = urlsplit(page.url)
        for host, status in ((at.netloc, 200), ("10.1.2.3:80", 200), ("evil.example", 403)):
            connection = http.client.HTTPConnection("127.0.0.1", at.port, timeout=60)
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
    assert facts["frames"]["rows"][1][0] == HOSTILE
    assert "script>alert" in facts["title"]


def test_a_thousand_requests_at_once_are_served(page):
    at = urlsplit(page.url)
    question = f"GET {at.path}api/facts HTTP/1.1\r\nHost: {at.netloc}\r\n\r\n".encode()

    async def one():
        reader, writer = await asyncio.open_connection(at.hostname, at.port)
        writer.write(question)
        status = await reader.readline()
        writer.close()
        return status.split()[1]

    async def all_of_them():
        return await asyncio.gather(*(one() for _ in range(1000)))

    with ThreadPoolExecutor(1) as elsewhere:  # the browser of other tests has a loop in this thread
        assert set(elsewhere.submit(asyncio.run, all_of_them()).result()) == {b"200"}


def test_a_connection_that_waits_too_long_is_told_to_come_again(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    monkeypatch.setattr(server, "PATIENCE_S", 0.05)
    with view(recording()) as page:
        at = urlsplit(page.url)[1].split(":")
        with socket.create_connection(at), socket.create_connection(at), socket.create_connection(at) as third:
            assert third.recv(12) == b"HTTP/1.1 503"


def test_the_token_is_in_a_file_that_only_the_user_reads(page):
    file = page.redirect_file()
    assert file.stat().st_mode & 0o777 == 0o600
    assert page.url in file.read_text()


def test_no_token_on_the_browsers_command_line(tmp_path):
    """The browser is a script that writes its arguments to a file."""
    save(recording(), tmp_path / "run.watt")
    (tmp_path / "browser").write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments.new\nmv {tmp_path}/arguments.new {tmp_path}/arguments\n'
    )
    (tmp_path / "browser").chmod(0o755)
    environment = {**os.environ, "BROWSER": f"{tmp_path}/browser", "DISPLAY": ":0"}
    command = [sys.executable, "-m", "wattribute", "view", str(tmp_path / "run.watt")]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        token = process.stdout.readline().strip().split("/")[3]
        while not (tmp_path / "arguments").exists():
            time.sleep(0.05)
        said = (tmp_path / "arguments").read_text().strip()
        assert said.startswith("file://")
        assert token not in said
        assert token in Path(urlsplit(said).path).read_text()
    finally:
        process.terminate()
        process.communicate()
    assert not Path(urlsplit(said).path).exists()


def test_the_redirect_file_opens_the_page_and_nothing_else_crosses_sites(page):
    opening = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(page, headers=opening)[0].status == 200
    assert ask(page, headers=opening, token="x")[0].status == 403
    assert ask(page, "api/facts", headers=opening)[0].status == 403
    assert ask(page, headers=opening | {"Sec-Fetch-Dest": "iframe"})[0].status == 403


def test_only_other_addresses_than_loopback_warn(page):
    assert page.warning == ""
    for address, warns in (("127.0.0.2", False), ("::1", False), ("0.0.0.0", True)):
        try:
            other = view(recording(), address=address)
        except OSError:
            assert address == "::1"  # a machine without IPv6
            continue
        with other:
            assert ("can be reached from the network" in other.warning) is warns
            if address == "::1":
                assert ask(other)[0].status == 200
