"""``wattribute view`` as a stranger types it."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from urllib.request import urlopen

import pytest

from tests.views.page.hand import recording, start
from wattribute import save


@pytest.fixture
def run(command):
    return partial(command, "view")


@pytest.fixture
def archive(tmp_path):
    save(recording(), tmp_path / "a run's ü.watt")
    return tmp_path / "a run's ü.watt"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_stopped(archive, stop):
    process, address = start(archive)
    assert urlopen(address).status == 200
    process.send_signal(stop)
    _, errors = process.communicate()
    assert process.returncode == 0
    assert errors == ""


def test_tiles_are_kept_beside_the_archive(run, archive):
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0
    tiles = archive.with_name(f"{archive.name}.tiles")
    made = (tiles / "tiles.json").stat().st_mtime_ns
    assert run(archive, "--html", archive.parent / "two.html").returncode == 0
    assert (tiles / "tiles.json").stat().st_mtime_ns == made  # used again
    (archive / "wattribute.json").touch()
    assert run(archive, "--html", archive.parent / "three.html").returncode == 0
    assert (tiles / "tiles.json").stat().st_mtime_ns != made  # the recording has changed


def test_a_dash_is_standard_output(run, archive):
    done = run(archive, "-o", "-")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.lower().startswith("<!doctype html>")
    assert done.stdout.rstrip().endswith("</html>")
    assert not (archive.parent / "-").exists()


def test_tiles_of_a_read_only_archive_go_to_the_cache(run, archive, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive.chmod(0o555)
    assert run(archive, "--html", tmp_path / "one.html").returncode == 0
    assert not archive.with_name(f"{archive.name}.tiles").exists()
    assert list((tmp_path / "cache" / "wattribute" / "tiles").iterdir())


def test_a_full_disk_is_one_line(archive, tmp_path):
    command = [sys.executable, "-m", "wattribute", "view", str(archive), "--html", str(tmp_path / "x.html")]
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))  # noqa: E731
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit)
    assert done.returncode == 1
    assert done.stderr.startswith("wattribute: ")
    assert "cannot be written" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("*.part"))


def test_damaged_tiles_are_made_anew(run, archive):
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0
    (archive.with_name(f"{archive.name}.tiles") / "tiles.json").write_text("{")
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere"),
        (["{archive}", "--html", "no/such/folder/x.html"], "does not exist"),
        (["{archive}", "--compare", "nowhere"], "nowhere"),
        (["{archive}", "--port", "70000"], "65535"),
    ],
)
def test_mistakes_are_one_line(run, archive, tmp_path, arguments, said):
    done = run(*(text.format(archive=archive) for text in arguments), cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.realtime
def test_a_recording_being_made_is_followed(tmp_path):
    path = tmp_path / "live.watt"
    made = [sys.executable, "-m", "wattribute", "run", "-q", "-o", path, "--meters", "model", "--", "sleep", "6"]
    with subprocess.Popen(made, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while not (path / "journal").exists():
            time.sleep(0.1)
            assert running.poll() is None
        time.sleep(1.5)
        process, address = start(path)
        seen = set()
        while running.poll() is None:
            seen.add(json.load(urlopen(f"{address}api/status"))["revision"])
            time.sleep(0.3)
        facts = json.load(urlopen(f"{address}api/facts"))
        assert facts["live"]
        assert len(seen) > 1  # it grew while we watched
        time.sleep(1.1)
        urlopen(f"{address}api/status")
        facts = json.load(urlopen(f"{address}api/facts"))
        assert facts["length_ticks"] / facts["clock"]["ticks_per_s"] > 5.9
        assert not any("stopped" in text for text in facts["problems"])
        process.send_signal(signal.SIGINT)
        process.communicate()


def test_a_port_in_use_is_said(run, archive):
    process, address = start(archive)
    try:
        done = run(archive, "--no-browser", "--port", address.split(":")[2].split("/")[0])
        assert done.returncode == 1
        assert "port" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.communicate()
