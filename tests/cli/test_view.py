"""``wattribute view`` as a stranger types it."""

import os
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from tests.views.page.hand import recording, start
from wattribute import save


def run(*arguments, cwd=None):
    command = [sys.executable, "-m", "wattribute", "view", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=60)


@pytest.fixture
def archive(tmp_path):
    save(recording(), tmp_path / "a run's ü.watt")
    return tmp_path / "a run's ü.watt"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_stopped(archive, stop):
    process, address = start(archive)
    assert urlopen(address).status == 200
    process.send_signal(stop)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 0
    assert errors == ""


def test_tiles_are_kept_beside_the_archive(archive):
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0
    tiles = archive.with_name(f"{archive.name}.tiles")
    made = (tiles / "tiles.json").stat().st_mtime_ns
    assert run(archive, "--html", archive.parent / "two.html").returncode == 0
    assert (tiles / "tiles.json").stat().st_mtime_ns == made  # used again
    (archive / "wattribute.json").touch()
    assert run(archive, "--html", archive.parent / "three.html").returncode == 0
    assert (tiles / "tiles.json").stat().st_mtime_ns != made  # the recording has changed


def test_tiles_of_a_read_only_archive_go_to_the_cache(archive, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive.chmod(0o555)
    assert run(archive, "--html", tmp_path / "one.html").returncode == 0
    assert not archive.with_name(f"{archive.name}.tiles").exists()
    assert list((tmp_path / "cache" / "wattribute" / "tiles").iterdir())


def test_damaged_tiles_are_made_anew(archive):
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0
    (archive.with_name(f"{archive.name}.tiles") / "tiles.json").write_text("{")
    assert run(archive, "--html", archive.parent / "one.html").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere"),
        (["{archive}", "--html", "no/such/folder/x.html"], "cannot write"),
        (["{archive}", "--compare", "nowhere"], "nowhere"),
        (["{archive}", "--port", "70000"], "65535"),
    ],
)
def test_mistakes_are_one_line(archive, tmp_path, arguments, said):
    done = run(*(text.format(archive=archive) for text in arguments), cwd=tmp_path)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_said(archive):
    process, address = start(archive)
    try:
        done = run(archive, "--no-browser", "--port", address.split(":")[2].split("/")[0])
        assert done.returncode == 1
        assert "port" in done.stderr
        assert "Traceback" not in done.stderr
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=10)
