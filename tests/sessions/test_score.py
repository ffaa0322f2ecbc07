"""A program's own score out of the files it writes."""

import os
from pathlib import Path

import pytest

from wattribute.errors import FormatError, NoDataError, NotFoundError, OptionError
from wattribute.sessions.score import ScoreFile


@pytest.mark.parametrize(
    ("name", "text", "key", "value"),
    [
        ("a.json", '{"runs": [{"time": 2}, {"time": 3.5}]}', "runs.-1.time", 3.5),
        ("a.yml", "time: 578.37167\nname: stemdl\n", "time", 578.37167),
        ("a.yaml", "result: {grade: A}", "result.grade", "A"),
        ("a.csv", "epoch,loss.mean\n1,0.5\n2,0.25\n", "loss.mean", 0.25),
        ("a:b.JSON", "\ufeff[7]", "0", 7.0),
    ],
)
def test_a_score(tmp_path, name, text, key, value):
    if "y" in name:
        pytest.importorskip("yaml", reason="the docker extra is not installed")
    sought = ScoreFile.of(f"{tmp_path / name}:{key}")
    (tmp_path / name).write_text(text)
    assert sought.read(sought.path) == value


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("a.json", "{", FormatError, "is not JSON"),
        ("a.json", '{"time": null}', NoDataError, "neither a number nor a word"),
        ("a.json", '{"time": true}', NoDataError, "neither a number nor a word"),
        ("a.json", '{"Time": 1}', NoDataError, r"has no 'time' \(there: Time\)"),
        ("a.json", "[1]", NoDataError, r"has no 'time' \(there: list\)"),
        ("a.csv", "time\n", NoDataError, "has no rows"),
        ("a.csv", "time\nnan\n", NoDataError, "is not finite"),
        ("a.json", '{"time": -1e999}', NoDataError, "is not finite"),
        ("a.json", f'{{"time": 1{"0" * 400}}}', NoDataError, "is not finite"),  # more than a float holds
        ("a.json", None, NotFoundError, "No such file"),
    ],
)
def test_no_score_says_why(tmp_path, name, text, error, said):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=said):
        ScoreFile.of(f"{name}:time").read(tmp_path / name)


def test_a_file_from_before_the_run_is_no_score(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"time": 1}')
    os.utime(path, (1, 1))
    sought = ScoreFile.of(f"{path}:time")
    with pytest.raises(NoDataError, match="older than the run"):
        sought.read(path)
    path.write_text('{"time": 2}')
    assert sought.read(path) == 2


def test_yaml_makes_no_objects(tmp_path):
    pytest.importorskip("yaml", reason="the docker extra is not installed")
    path = tmp_path / "a.yml"
    path.write_text("time: !!python/object/apply:os.system [true]")
    with pytest.raises(FormatError, match="is not YAML"):
        ScoreFile(Path("a.yml"), "time").read(path)


@pytest.mark.parametrize("text", ["a.json", ":x", "a.json:", "a.txt:x"])
def test_what_is_no_score(text):
    with pytest.raises(OptionError):
        ScoreFile.of(text)


def test_a_count_out_of_a_file(tmp_path):
    path = tmp_path / "out.json"
    sought = ScoreFile.of_count(f"tokens={path}:n")
    path.write_text('{"n": 123}')
    assert (sought.unit, sought.read_count(path)) == ("tokens", 123)
    for wrong in ('{"n": "many"}', '{"n": -1}'):
        path.write_text(wrong)
        with pytest.raises(NoDataError, match="no count of tokens"):
            sought.read_count(path)
    for text in ("tokens", "tokens=", "=a.json:n", "tokens=a.json"):
        with pytest.raises(OptionError, match="write UNIT=FILE:KEY"):
            ScoreFile.of_count(text)
