"""Every capability of the earlier tools has a row in docs/earlier-tools.md, and what the row says works.

Commands that begin with ``wattribute`` are run, each once, on the files that the page makes; a row that needs a server,
a container or a sensor names a test that has it.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_docs import fences
from tests.warm import Warm

PAGE = ROOT / "docs" / "earlier-tools.md"
ROWS = dict(re.findall(r"^\| ([A-Z]+-?\d+) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
COMMAND = re.compile(r"`(wattribute [^`]+)`")
NAMED_TEST = re.compile(r"`(tests/[\w/]+[.]py)::(\w+)`")
STARTS_PROGRAMS = ("run", "profile", "monitor")  # which belong into a process of their own


@pytest.fixture(scope="module")
def folder(tmp_path_factory, warm):
    """The files that the page makes."""
    place = tmp_path_factory.mktemp("earlier")
    (place / "examples").symlink_to(ROOT / "examples")
    for language, code in fences(PAGE):
        assert language == "sh"
        execute(["sh", "-e", "-c", code], place, warm)
    return place


@pytest.fixture(scope="module")
def done() -> set[str]:
    """Commands that were run already: some rows share one."""
    return set()


def execute(command: list[str], place: Path, warm: Warm) -> None:
    path = f"{warm.programs}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": path, "HOME": str(place), "COLUMNS": "120"}
    ended = subprocess.run(command, cwd=place, env=os.environ | own, capture_output=True, text=True)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"


@pytest.mark.parametrize("id", ROWS)
def test_what_a_row_says_works(id, folder, done, verb, warm, monkeypatch, capsys):
    commands, tests = COMMAND.findall(ROWS[id]), NAMED_TEST.findall(ROWS[id])
    assert commands or tests or "](" in ROWS[id], f"{id} has no command and names no test"
    for file, name in tests:
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), f"{id}: {file} has no {name}"
    monkeypatch.chdir(folder)
    for command in commands:
        if command in done:
            continue
        done.add(command)
        words = shlex.split(command)
        if words[1] in STARTS_PROGRAMS:
            execute(words, folder, warm)
            continue
        assert verb(words) == 0, f"{id}: {command}\n{capsys.readouterr().err}"


def test_every_capability_has_a_row(shared):
    listed = (shared / "CAPABILITIES.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| ([A-Z]+-?\d+) \|", listed, re.MULTILINE)) == set(ROWS)
