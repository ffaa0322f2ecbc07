"""Two commands against each other: turns, rests, warm-ups, failures; with a meter whose power is known."""

import sys

import pytest

from wattribute import WattributeError
from wattribute.sessions.versus import split_commands, versus


@pytest.fixture
def meter(tmp_path):
    """A package that uses 50 W for a minute: its counter read every millisecond."""
    lines = [f"{ms / 1000},{ms / 20}" for ms in range(0, 60_000, 2)]
    (tmp_path / "meter.csv").write_text("\n".join(["time_s,package 0:energy_j", *lines]) + "\n")
    return {"meters": [f"replay:{tmp_path / 'meter.csv'}"], "interval_s": 0.005}


def command(tmp_path, letter, seconds=0.0, code=0):
    """A command that writes its letter into a log, takes its time, and ends."""
    program = (
        f"import sys, time; open(r'{tmp_path / 'log'}', 'a').write('{letter}'); time.sleep({seconds}); sys.exit({code})"
    )
    return [sys.executable, "-I", "-S", "-c", program]


@pytest.mark.realtime
def test_turns_alternate_and_the_longer_one_uses_more(tmp_path, meter):
    rests = []
    a, b = command(tmp_path, "a", 0.1), command(tmp_path, "b", 0.4)
    done = versus(a, b, tmp_path / "out", repeat=3, warm_ups=1, rest_s=0.25, sleep=rests.append, **meter)
    assert (tmp_path / "log").read_text() == "ab" + "ab" + "ba" + "ab"  # warm-ups, then three turns
    assert rests == [0.25] * 7  # after each warm-up, and between runs
    assert done.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        f"{n}-{i}.watt" for n in "ab" for i in (1, 2, 3)
    ]
    whole = done.comparison.whole
    assert whole["changed"] is True
    assert whole["delta_j"] == pytest.approx(0.3 * 50, rel=0.25)  # 0.3 s more at 50 W
    assert whole["power_a_w"] == pytest.approx(50, rel=0.1)
    assert done.comparison.rows["frame"].to_list() == ["(command)"]
    assert done.comparison.rows["verdict"].to_list() == ["more, longer"]


@pytest.mark.realtime
def test_a_failing_command_ends_it_and_its_exit_code_is_passed_on(tmp_path, meter):
    a, b = command(tmp_path, "a", 0.05), command(tmp_path, "b", 0.05, code=7)
    warming = versus(a, b, tmp_path / "one", sleep=lambda _: None, **meter)
    assert (warming.exit_code, warming.comparison) == (7, None)
    assert warming.trouble == ("B: it failed with exit code 7 while warming up",)
    done = versus(a, b, tmp_path / "two", warm_ups=0, sleep=lambda _: None, **meter)
    assert (done.exit_code, done.comparison, list(done.runs)) == (7, None, ["a-1", "b-1"])
    assert done.trouble[-2].startswith("b-1 failed with exit code 7")
    assert "nothing to compare" in done.trouble[-1]


def test_commands_are_told_apart():
    assert split_commands(["a", "-x", "---", "b", "--", "c"]) == (["a", "-x"], ["b", "--", "c"])
    for wrong in (["a"], ["a", "---"], ["---", "b"], ["a", "---", "b", "---", "c"]):
        with pytest.raises(WattributeError, match="--compare needs"):
            split_commands(wrong)


def test_bad_numbers_and_existing_folders(tmp_path):
    with pytest.raises(WattributeError, match="at least 1"):
        versus(["true"], ["true"], tmp_path / "x", repeat=0)
    with pytest.raises(WattributeError, match="exists already"):
        versus(["true"], ["true"], tmp_path)


def test_a_command_that_is_not_there(tmp_path):
    done = versus(["true"], ["no-such-command-here"], tmp_path / "x", sleep=lambda _: None)
    assert done.exit_code == 127
    assert done.trouble == ("B: no-such-command-here: command not found",)
