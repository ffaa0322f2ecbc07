"""The truth table of the docs is that of its program: cases, tools, how each was called; how an answer is judged."""

import json
import re
import shutil
import subprocess

import pytest

from benchmarks import truth
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "truth.md").read_text(encoding="utf-8")
CASES = {case.name: case for case in truth.CASES}


def test_the_page_has_the_cases_of_the_program():
    rows = re.findall(r"^\| ([\w-]+) \| (.+) \|$", PAGE, re.MULTILINE)
    texts = {name: text for name, text in rows if "|" not in text and name in CASES}
    assert texts == {case.name: f"{case.text}{'; ' + case.note if case.note else ''}" for case in truth.CASES}


def test_the_page_has_the_tools_of_the_program_and_how_each_was_called():
    called = dict(re.findall(r"^\* \*\*(\w+)\*\*: (.+)$", PAGE, re.MULTILINE))
    assert called == {tool.name: tool.called for tool in truth.TOOLS}
    left_out = dict(re.findall(r"^\* \*\*(\w+)\*\* is not in the table: (.+)$", PAGE, re.MULTILINE))
    assert left_out == truth.LEFT_OUT


def judged(case, **answer):
    """What is said of a tool that worked for 2 s in which its device used 100 J."""
    given = {"instants": [0, 2 * 10**9, 10**9], "start_ns": None, "ranges": {}, "partly": False}
    given |= dict.fromkeys(("ready_s", "begin_s", "end_s", "cpu_s", "region_s"), 0.1) | answer
    done = subprocess.CompletedProcess([], 0, json.dumps(given), "")
    return truth.judged(CASES[case], truth.Outcome(case, "tool", "skipped"), done, lambda instants: 100.0)


@pytest.mark.parametrize(
    ("case", "answer", "cell"),
    [
        ("cpu-constant", {"parts": {"cpu": 101.0}}, "+1.0"),
        ("cpu-constant", {"parts": {"cpu": 101.0}, "ranges": {"cpu": [99, 102]}}, "+1.0 ✓"),
        ("cpu-constant", {"parts": {"cpu": 101.0}, "ranges": {"cpu": [100.5, 102]}}, "+1.0 ✗"),
        ("cpu-dies", {"parts": {"cpu": 50.0}, "ranges": {"cpu": [49, 51]}}, "-50.0 ✗"),
        ("cpu-dies", {"parts": {"cpu": 50.0}, "ranges": {"cpu": [49, 51]}, "partly": True}, "≥ -50.0 ✓"),
        ("neighbour", {"parts": {"cpu": 0.02}, "ranges": {"cpu": [0.01, 0.04]}}, "+0.0 ✓"),  # a step is 0.05 J
        ("neighbour", {"parts": {"cpu": 100.0}, "ranges": {"cpu": [99, 101]}}, "+100.0 ✗"),
        ("cpu-dram", {"parts": {"cpu": 90.0}}, "**refused**"),
    ],
)
def test_an_answer_is_judged(case, answer, cell):
    assert truth.cell(judged(case, **answer)) == cell


def test_results_replace_those_of_an_earlier_run(tmp_path):
    shutil.copy(ROOT / "docs" / "truth.md", tmp_path)
    (tmp_path / "run").mkdir()
    outcomes = [judged("cpu-constant", parts={"cpu": 101.0})]
    chart = truth.chart(truth.TOOLS, truth.CASES, outcomes)
    (tmp_path / "run" / "truth.md").write_text("new results\n")
    (tmp_path / "run" / "truth.svg").write_text(chart)
    truth.publish(tmp_path / "run", tmp_path)
    before, _, _ = PAGE.partition("## One run\n")
    assert (tmp_path / "truth.md").read_text(encoding="utf-8") == f"{before}## One run\n\nnew results\n"
    assert (tmp_path / "truth.svg").read_text() == chart


def test_costs_are_printed_per_tool_and_a_tool_of_one_region_has_no_other():
    tools = [tool for tool in truth.TOOLS if tool.name in ("zeus", "eco2ai")]
    outcomes = [judged("gpu-constant", parts={"gpu": 101.0}) for _ in tools]
    for outcome, tool in zip(outcomes, tools, strict=True):
        outcome.tool = tool.name
    report = {
        "date": "2026-01-01", "machine": "m", "load": "l", "import_s": dict.fromkeys(("zeus", "eco2ai"), 0.5),
        "versions": dict.fromkeys(("zeus", "eco2ai"), "1"),
        "overhead": {"zeus": {"region_s": 2e-4, "cpu_s_per_s": 0.1}, "eco2ai": {"region_s": None, "cpu_s_per_s": None}},
    }  # fmt: skip
    text = truth.markdown(report, tools, [CASES["gpu-constant"]], outcomes)
    assert "| zeus | 1 | 0.500 | 0.1000 | 0.1000 | 0.1000 | 0.1000 | 0.000200 | 0.1000 |" in text
    assert "| eco2ai | 1 | 0.500 | 0.1000 | 0.1000 | 0.1000 | 0.1000 | – | – |" in text
