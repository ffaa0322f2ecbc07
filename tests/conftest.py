"""What tests share: the folder of real traces, and honest skips."""

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# a busy machine must not fail a property; `WATTRIBUTE_EXAMPLES=1000 make test` looks harder
settings.register_profile("ours", deadline=None, max_examples=int(os.environ.get("WATTRIBUTE_EXAMPLES", "50")))
settings.load_profile("ours")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real traces and reference numbers, beside the project."""
    for path in (ROOT.parent / "shared", Path(os.environ.get("WATTRIBUTE_SHARED", "/nonexistent"))):
        if (path / "traces").is_dir():
            return path
    pytest.skip("no ../shared folder with real traces here (set WATTRIBUTE_SHARED to name one)")


def need(command: str) -> str:
    """The path of a program; without it the test skips, and on CI (where it was installed first) fails."""
    return shutil.which(command) or skip_or_fail(
        f"{command} is not installed: `make system` installs what the tests need"
    )


def skip_or_fail(message: str) -> NoReturn:
    """Skip a test that this machine cannot run; on CI, which can, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture
def everybodys():
    """A folder that other users may enter; not one of pytest's, which every session beside ours closes to them."""
    with tempfile.TemporaryDirectory(prefix="wattribute-test-") as place:
        Path(place).chmod(0o755)
        yield Path(place)


@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """Podman with the image ``tiny``."""
    from tests.podman import ready

    engine = ready(tmp_path_factory.mktemp("podman"))
    yield engine
    engine.stop()


@pytest.fixture
def podman(engine):
    """The same with a service, which is a new one for every test: an old one that has followed the log of a container
    that is gone now spins for ever."""
    engine.serve()
    yield engine
    engine.rest()


@pytest.fixture
def utc(monkeypatch):
    """Times without a zone are local ones: here is Greenwich."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
