"""Streams that are closed, full or know only ASCII: a line that says so, never a traceback, and the exit code stays."""

import os
import subprocess
import sys

import pytest

WATTRIBUTE = [sys.executable, "-m", "wattribute"]


def call(*arguments, **how):
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | how
    return subprocess.run([*WATTRIBUTE, *arguments], **how)


def test_a_terminal_that_knows_only_ascii_is_shown_what_it_can_show(tmp_path):
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = call("zones", env=ascii_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert "live  -" in done.stdout  # a dash that is not ASCII: a live zone has no year
    done = call("run", "-o", tmp_path / "x.watt", "--", "true", env=ascii_only)
    assert "J +- " in done.stderr
    done = call("info", tmp_path / "日本.watt", env=ascii_only)
    assert "??.watt" in done.stderr  # no other letter for these


@pytest.mark.parametrize("format", ["table", "json"])
def test_a_full_disk_is_told_in_a_line(format):
    with open("/dev/full", "w") as full:
        done = call("zones", "--format", format, stdout=full)
    assert (done.returncode, done.stderr) == (1, "wattribute: the output cannot be written: No space left on device\n")


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full"])
def test_a_run_nobody_can_be_told_about_keeps_output_and_exit_code(tmp_path, stderr):
    script = f'"$@" run -o x.watt -- sh -c "echo out; exit 4" {stderr}'
    done = subprocess.run(["sh", "-c", script, "sh", *WATTRIBUTE], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (4, "out\n")
    assert (tmp_path / "x.watt" / "summary.json").exists()
