"""The front door: what is promised is there, sorted, and cheap to open."""

import subprocess
import sys

import wattribute


def test_all_is_sorted_and_every_name_is_there():
    assert wattribute.__all__ == sorted(wattribute.__all__)
    for name in wattribute.__all__:
        assert getattr(wattribute, name) is not None


def test_importing_loads_nothing_heavy():
    heavy = ["numpy", "polars", "pyarrow", "rich", "typer", "altair"]
    code = f"import sys, wattribute; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_help_loads_no_verb():
    code = "import sys; from wattribute.cli.verbs import app; app(['--help'], standalone_mode=False)"
    code += "; print('numpy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "  zones " in told
    assert told.endswith("False\n")
