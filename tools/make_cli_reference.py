"""Writes docs/cli.md from the ``--help`` of every verb; ``--check`` only says whether it is up to date."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from wattribute.cli import VERBS

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"


def help_of(*verb: str) -> str:
    environment = os.environ | {"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "wattribute", *verb, "--help"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    lines = [line.rstrip().replace("python -m wattribute", "wattribute") for line in text.strip().splitlines()]
    return "\n".join(lines)


def page() -> str:
    parts = ["# Command line", "", "Made from `--help` by `tools/make_cli_reference.py`.", ""]
    parts += ["```text", help_of(), "```", ""]
    for verb in VERBS:
        parts += [f"## wattribute {verb}", "", "```text", help_of(verb), "```", ""]
    return "\n".join(parts)


if __name__ == "__main__":
    made = page()
    if "--check" in sys.argv:
        sys.exit(
            0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == made else "docs/cli.md is old: run `make docs`"
        )
    PAGE.write_text(made, encoding="utf-8")
