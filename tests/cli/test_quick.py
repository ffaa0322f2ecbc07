"""The quick way into ``run`` understands what Typer understands, or leaves it to Typer."""

import functools
import shlex

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from wattribute.cli import run
from wattribute.cli.flags import for_typer
from wattribute.cli.quick import quick

LINES = [
    "-- true",
    "true",
    "sleep 1 --output x",
    "-o x.watt -- true",
    "--output=x.watt --interval 0.5 --repeat 3 -- a b c",
    "--meters nvml --meters=rapl:/x=y -q -- python -c 'print(1)' --help",
    "--no-live --format json --scope process --zone FR --intensity 50 -- x -- y",
    "--cooldown 1.5 --quiet x",
    "--zone= -- x",
]
FOR_TYPER = [
    "",
    "--",
    "--help",
    "-o",
    "--nothing x",
    "--interval soon -- x",
    "--quiet=1 x",
    "--repeat 1.5 x",
    "-qo x y",
    "-ox y",
    "--warm-ups -1 --compare a --- b",
]


def by_typer(arguments):
    """What Typer would call the verb with, or None where it complains."""
    called = []
    app = typer.Typer(add_completion=False)

    @functools.wraps(run.command)
    def command(**given):
        called.append(given)

    app.command(context_settings=run.CONTEXT)(for_typer(command))
    try:
        app(arguments, standalone_mode=False)
    except Exception:
        return None
    return called[0] if called else None


@pytest.mark.parametrize("line", LINES)
def test_the_same_as_typer(line):
    arguments = shlex.split(line)
    assert quick(run.command, arguments) == by_typer(arguments)
    assert quick(run.command, arguments) is not None


@pytest.mark.parametrize("line", FOR_TYPER)
def test_what_is_unusual_is_left_to_typer(line):
    assert quick(run.command, shlex.split(line)) is None


WORDS = [
    "-o",
    "x",
    "--",
    "--meters",
    "a:b",
    "-q",
    "--interval",
    "0.5",
    "--repeat",
    "2",
    "--output=y",
    "--no-live",
    "--help",
]


@given(st.lists(st.sampled_from(WORDS), max_size=6))
def test_never_anything_else_than_typer(words):
    given_quickly = quick(run.command, words)
    assert given_quickly is None or given_quickly == by_typer(words)


def test_completion_is_typers(monkeypatch):
    monkeypatch.setenv("_WATTRIBUTE_COMPLETE", "complete_bash")
    assert quick(run.command, ["--", "true"]) is None
