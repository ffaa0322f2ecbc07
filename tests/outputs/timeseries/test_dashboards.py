"""Every panel of every dashboard asks the server it is for, and the server answers with what was recorded.

VictoriaMetrics, Prometheus and InfluxDB 1.x are real; Flux has no server in Debian and runs in ``flux``.
"""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

import wattribute
from tests.conftest import ROOT, need
from tests.outputs.timeseries.fakes import Fake, influx2
from tests.outputs.timeseries.flux import evaluate
from tests.outputs.timeseries.servers import Prometheus

FOLDER = ROOT / "dashboards"
BEFORE_S = 25  # the recording is 20 s long


def load(name):
    return json.loads((FOLDER / f"wattribute-{name}.json").read_text())


def panels(name):
    return {panel["title"]: panel["targets"][0] for panel in load(name)["panels"]}


@pytest.fixture(scope="module")
def now_s():
    return int(time.time()) + 1


@pytest.fixture(scope="module")
def recent(recording, now_s):
    """(the recording, when it began): half a minute ago, as a live dashboard sees it."""
    return recording, (now_s - BEFORE_S) * 10**9


def check(found, joules):
    """What panels gave: title → [(labels, value)]."""
    assert found.keys() == panels("prometheus").keys()
    assert all(found.values()), [title for title, rows in found.items() if not rows]
    counted = sum(joules.values()) - joules["psys"]  # it contains the package
    assert [value for _, value in found["Energy"]] == [pytest.approx(counted, rel=1e-9)]
    by_device = {labels["device"]: value for labels, value in found["Energy of each device"]}
    assert by_device == pytest.approx(joules, rel=1e-9)
    assert [value for _, value in found["Energy of each run"]] == [pytest.approx(counted, rel=1e-9)]
    power = sum(value for labels, value in found["Power of each device now"] if labels["device"] != "psys")
    assert [value for _, value in found["Power now"]] == [pytest.approx(power, rel=1e-9)]


def in_prometheus(text):
    for name in ("host", "run", "device"):
        text = text.replace(f"${name}", ".*")
    return text.replace("$__range", "15m")


def test_victoria_metrics_answers_every_panel(victoria, recent, now_s, joules):
    recording, start = recent
    wattribute.send(recording, victoria.push(), start=start)
    chosen = f'run=~".*{time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(start / 1e9))}.*",'  # other tests use it too
    found = {}
    for title, target in panels("prometheus").items():
        text = in_prometheus(target["expr"]).replace("{host", "{" + chosen + "host")
        found[title] = victoria.query(text, now_s if target["instant"] else now_s - 6)
    check(found, joules)
    for variable in load("prometheus")["templating"]["list"][1:]:
        label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])[2]
        assert label == variable["name"]
        assert victoria.query(f"count by ({label}) (last_over_time(wattribute_energy_joules_total[1h]))", now_s)


def test_prometheus_answers_every_panel(tmp_path, recent, now_s, joules):
    recording, start = recent
    wattribute.send(recording, f"openmetrics:{tmp_path / 'om'}", start=start)
    blocks = [need("promtool"), "tsdb", "create-blocks-from", "openmetrics", tmp_path / "om", tmp_path / "data"]
    subprocess.run(blocks, check=True, capture_output=True)
    server = Prometheus(tmp_path)
    try:
        server.start()
        told = panels("prometheus").items()
        check({title: server.query(in_prometheus(target["expr"]), now_s) for title, target in told}, joules)
    finally:
        server.stop()


@pytest.mark.parametrize("nested", [True, False])
def test_influxdb_answers_every_panel(influx, recent, now_s, joules, nested):
    recording, start = recent
    if not nested:  # no point of this database has the tag "apart"
        joules = {device: j for device, j in joules.items() if device != "psys"} | {"psys": 0.0}
        kept = [signal for signal in recording.signals if signal.device != "psys"]
        recording = replace(recording, signals=tuple(kept))
    database = f"grafana {nested}"
    wattribute.send(recording, influx.push(database), start=start)
    low, high = start // 10**6, now_s * 1000
    found = {}
    for title, target in panels("influxql").items():
        text = target["query"].replace("$timeFilter", f"time >= {low}ms and time <= {high}ms")
        text = re.sub(r"/\^\$\w+\$/", "/^.*$/", text.replace("$__interval", "5s").replace("now()", f"{high}ms"))
        assert "$" not in text.replace("$/", "")
        rows = influx.query(text, database)
        found[title] = [(row, next(row[key] for key in ("value", "last", "mean") if key in row)) for row in rows]
    if not nested:
        found["Energy of each device"].append(({"device": "psys"}, 0.0))
    check(found, joules)
    for variable in load("influxql")["templating"]["list"][1:]:
        assert influx.query(variable["query"], database)


def test_flux_gives_what_the_other_dialects_give(recent, now_s, joules):
    recording, start = recent
    server = Fake(influx2, None)
    try:
        wattribute.send(recording, f"influx2+http://{server.place}/my%20org/b", start=start)
        assert server.faults == []
    finally:
        server.close()
    found = {}
    for title, target in panels("flux").items():
        text = re.sub(r"\$\{(host|run|device):regex\}", "(.*|x)", target["query"]).replace("${bucket}", "wattribute")
        text = text.replace("v.timeRangeStart", str(start // 10**9)).replace("v.timeRangeStop", str(now_s))
        tables = evaluate(text.replace("v.windowPeriod", "5s"), server.points, now_s)
        found[title] = [(table[-1], table[-1]["_value"]) for table in tables]
    check(found, joules)


def test_the_template_of_influxdb_2_asks_what_grafana_asks(recent, now_s, joules):
    recording, start = recent
    server = Fake(influx2, None)
    try:
        wattribute.send(recording, f"influx2+http://{server.place}/my%20org/b", start=start)
    finally:
        server.close()
    variable, board = json.loads((FOLDER / "influxdb2-template.json").read_text())
    assert (variable["kind"], variable["spec"]["name"], board["kind"]) == ("Variable", "bucket", "Dashboard")
    found, taken = {}, set()
    for cell in board["spec"]["charts"]:
        text = cell["queries"][0]["query"].replace("v.bucket", '"wattribute"')
        assert "$" not in text
        text = text.replace("v.timeRangeStart", str(start // 10**9)).replace("v.timeRangeStop", str(now_s))
        tables = evaluate(text.replace("v.windowPeriod", "5s"), server.points, now_s)
        found[cell["name"]] = [(table[-1], table[-1]["_value"]) for table in tables]
        cells = {(x, y) for x in range(cell["xPos"], cell["xPos"] + cell["width"])
                 for y in range(cell["yPos"], cell["yPos"] + cell["height"])}  # fmt: skip
        assert not taken & cells
        assert max(x for x, _ in cells) < 12
        taken |= cells
    check(found, joules)


def test_files_are_what_the_description_says_and_panels_do_not_overlap():
    done = subprocess.run([sys.executable, ROOT / "tools" / "make_dashboards.py", "--check"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("prometheus", "influxql", "flux"):
        board = load(name)
        taken = set()
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}  # fmt: skip
            assert not taken & cells
            assert max(x for x, _ in cells) < 24
            taken |= cells
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
        variables = {variable["name"] for variable in board["templating"]["list"]}
        used = set(re.findall(r"\$\{?([a-z]+)\b", json.dumps(board))) - {"timeFilter", "tag"}
        assert used - {"timeFilter"} <= variables


def test_what_is_provisioned_is_there():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert compose["services"].keys() == {"victoria-metrics", "grafana"}
    assert "-dedup.minScrapeInterval=1ms" in compose["services"]["victoria-metrics"]["command"]
    for service in compose["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or (FOLDER / source).exists(), source
    sources = [yaml.safe_load(path.read_text()) for path in FOLDER.glob("provisioning*/datasources/*.yaml")]
    types = {source["type"] for file in sources for source in file["datasources"]}
    assert types == {load(name)["templating"]["list"][0]["query"] for name in ("prometheus", "influxql")}
    for path in FOLDER.glob("provisioning*/dashboards/*.yaml"):
        (provider,) = yaml.safe_load(path.read_text())["providers"]
        mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
        assert any(Path(path).parent == Path(provider["options"]["path"]) for path in mounted)
