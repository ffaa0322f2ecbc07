"""Every output that writes a file fulfils the contract of outputs."""

import json
from dataclasses import replace

import polars as pl
import pytest

from tests.views.stories import ranks
from wattribute import attribute, write
from wattribute.testing.contracts import OutputContract


class TestCsv(OutputContract):
    name, file = "csv", "x.csv"

    def sum_j(self, path):
        return pl.read_csv(path)["self_j"].sum()


class TestJson(OutputContract):
    name, file = "json", "x.json"

    def sum_j(self, path):
        return sum(row["self_j"] for row in json.loads(path.read_text())["rows"])


class TestParquet(OutputContract):
    name, file = "parquet", "x.parquet"

    def sum_j(self, path):
        return pl.read_parquet(path)["self_j"].sum()


class TestFolded(OutputContract):
    name, file = "folded", "x.folded"

    def sum_j(self, path):
        lines = path.read_text().splitlines()
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines if "(idle)" not in line) / 1e6


class TestSpeedscope(OutputContract):
    name, file = "speedscope", "x.speedscope.json"

    def sum_j(self, path):
        return sum(sum(profile["weights"]) for profile in json.loads(path.read_text())["profiles"]) / 1e3


class TestHatchet(OutputContract):
    name, file = "hatchet", "x.hatchet.json"

    def sum_j(self, path):
        return sum(device["metrics"]["energy_j (inc)"] for device in json.loads(path.read_text()))


class TestPerfetto(OutputContract):
    name, file = "perfetto", "x.perfetto-trace"


class TestOtlpSpans(OutputContract):
    name, file = "otlp-spans", "x.otlp.jsonl"

    def sum_j(self, path):
        requests = [json.loads(line) for line in path.read_text().splitlines()]
        resources = [resource for request in requests for resource in request["resourceSpans"]]
        spans = [span for resource in resources for scope in resource["scopeSpans"] for span in scope["spans"]]
        pairs = [pair for span in spans for pair in span["attributes"] if pair["key"] == "energy.self_j"]
        return sum(pair["value"]["doubleValue"] for pair in pairs)


class TestReport(OutputContract):
    name, file = "report", "x.txt"

    def sum_j(self, path):
        lines = path.read_text().splitlines()
        return float(lines[[line.strip().startswith("Total Attributed") for line in lines].index(True) + 1].split()[0])


class TestOpenmetrics(OutputContract):
    name, file = "openmetrics", "x.om"


class TestExtrap(OutputContract):
    """It needs several runs: what is one run's is not asked of it."""

    name, file = "extrap", "x.extrap.json"

    @pytest.fixture
    def attribution(self):
        from tests.comparison.made import run
        from wattribute import Ensemble

        made = {f"n{n}": run(n, factor=n) for n in (1, 2, 4)}
        return Ensemble.of(made, {name: {"n": int(name[1:])} for name in made}).attribute(by="path")

    test_several_runs_are_written_or_refused = None


@pytest.mark.parametrize("file", ["x.md", "x.tex"])
def test_tables_of_several_hosts_say_which(tmp_path, file):
    answer = attribute(ranks(hosts=2, depth=2))
    write(answer, tmp_path / file)
    text = (tmp_path / file).read_text()
    assert "n00" in text
    assert "n01" in text


@pytest.mark.parametrize("file", ["x.md", "x.tex", "x.json"])
def test_estimates_are_marked_in_every_table(tmp_path, file):
    made = ranks(depth=2)
    model = replace(made, signals=tuple(replace(one, estimated=True, gain_error=0.5) for one in made.signals))
    for recording, words in ((model, {"x.json": '"gain_error": 0.5'}), (made, {"x.json": '"gain_error": null'})):
        write(attribute(recording), tmp_path / file)
        text = (tmp_path / file).read_text()
        assert words.get(file, "") in text
        assert ("yes" in text) == (recording is model and file != "x.json")
