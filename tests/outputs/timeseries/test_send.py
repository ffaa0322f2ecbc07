"""A finished recording sent to real servers: what they answer is what was recorded."""

import subprocess
from dataclasses import replace

import pytest

import wattribute
from tests.conftest import need
from tests.outputs.timeseries.conftest import EPOCH_NS
from tests.outputs.timeseries.servers import Prometheus, SecuredInflux, SecuredVictoria
from wattribute import samples
from wattribute.errors import NoDataError, OptionError, OutputError
from wattribute.model import Recording
from wattribute.outputs.timeseries.send import send
from wattribute.outputs.timeseries.series import bill_series, series
from wattribute.testing.simulation import Simulation, Wave

RUN = "train it.py 2025-10-09T08:53:20.123Z"
END_S = EPOCH_NS / 1e9 + 30
COUNTERS = f'last_over_time(wattribute_energy_joules_total{{run="{RUN}"}}[1h])'
COUNTED = f'sum(last_over_time(wattribute_energy_joules_total{{run="{RUN}", apart=""}}[1h]))'


def by_device(rows):
    return {labels["device"]: value for labels, value in rows}


def test_the_bill_of_a_finished_run_is_a_counter_with_its_parts(tmp_path):
    """20 W x 10 s static, 30 W x 6 s the command, 30 W x 10 s a neighbour: 680 J."""
    machine = Simulation(length_s=10)
    cpu = machine.device("package 0", floor_w=20).counter(period_s=0.02)
    machine.thread(cpu, [("work", 1.0, 7.0, 30.0)])
    machine.tenant(cpu, "neighbour", Wave(30.0), cores=1.0)
    recording = machine.run().recording
    floors = {"host": "n01", "devices": {"package 0": {"floor_w": 20.0, "low_w": 20.0, "high_w": 20.0}}}
    recording = replace(recording, metadata={**recording.metadata, "floors": floors})
    parts = {dict(each.labels)["part"]: float(each.values[-1]) for each in bill_series(recording, EPOCH_NS)}
    assert parts == pytest.approx({"command": 180, "others": 300, "static": 200}, rel=1e-3)
    send(recording, f"openmetrics:{tmp_path / 'x.om'}", start=EPOCH_NS)
    assert 'wattribute_bill_joules_total{device="package 0"' in (tmp_path / "x.om").read_text()


def test_a_recording_that_tells_no_parts_has_no_bill(recording):
    assert list(bill_series(recording, EPOCH_NS)) == []


@pytest.mark.parametrize("form", ["influx", "prometheus", "csv"])
def test_victoria_metrics_gives_the_recordings_joules(victoria, recording, joules, form):
    renamed = f"wattribute_energy_joules_total{{run=~'.*{form}.*'}}"
    told = {**recording.metadata, "command": [f"by {form}"]}
    sent = wattribute.send(replace(recording, metadata=told), victoria.push(format=form))
    assert sent > 4000
    assert by_device(victoria.query(f"last_over_time({renamed}[1h])", END_S)) == pytest.approx(joules, rel=1e-9)
    ((labels, _),) = victoria.query(f"last_over_time({renamed[:-1]},kind='psys'}}[1h])", END_S)
    assert labels["apart"] == "true"
    assert (labels["host"], labels["zone"]) == ("node [1], a=b", "FR")


def test_what_is_sent_twice_is_stored_once_and_with_its_own_times(victoria, recording, joules):
    for _ in range(2):
        wattribute.send(recording, victoria.push())
    told = list(series(recording, EPOCH_NS))
    stored = {(m["__name__"], m["device"]): rows for m, rows in victoria.rows(f'{{run="{RUN}"}}')}
    assert len(stored) == len(told)
    for each in told:
        rows = stored[f"wattribute_{each.metric.field}", dict(each.labels)["device"]]
        thin = each.thinned(1_000_000)
        assert [at for at, _ in rows] == (thin.times_ns // 1_000_000).tolist()
        assert [value for _, value in rows] == pytest.approx(thin.values.tolist(), rel=1e-12)
    # the node's joules: psys contains the package, so it is shown but not added
    ((_, total),) = victoria.query(COUNTED, END_S)
    assert total == pytest.approx(sum(joules.values()) - joules["psys"], rel=1e-9)


def test_influxdb_gives_the_recordings_joules_and_makes_its_database(influx, recording, joules):
    for _ in range(2):
        wattribute.send(recording, influx.push("new base"))
    where = f"WHERE run = '{RUN}' GROUP BY device"
    rows = influx.query(f"SELECT last(energy_joules_total) AS j FROM wattribute {where}", "new base")
    assert {row["device"]: row["j"] for row in rows} == pytest.approx(joules, rel=1e-12)
    rows = influx.query(f"SELECT count(energy_joules_total) AS n FROM wattribute {where}", "new base")
    assert {row["device"]: row["n"] for row in rows} == dict.fromkeys(joules, 1000)
    (row,) = influx.query("SELECT first(power_watts) AS w FROM wattribute WHERE device = 'GPU 0'", "new base")
    power = recording.signals[4]
    assert (row["time"], row["w"]) == (EPOCH_NS + int(power.times[0]), power.values[0])


def test_older_dashboards_get_milliwatts_by_kind(influx, recording):
    wattribute.send(recording, influx.push("old") + "?schema=milliwatts")
    (row,) = influx.query("SELECT mean(power) AS mw FROM GPU WHERE device = 'GPU 0' AND host =~ /node/", "old")
    assert row["mw"] == pytest.approx(1000 * recording.signals[4].values.mean())
    assert {row["name"] for row in influx.query("SHOW MEASUREMENTS", "old")} == {"CPU", "GPU", "PSYS"}


def test_line_protocol_in_a_file_is_what_influxdb_takes(influx, recording, tmp_path):
    wattribute.send(recording, f"influx:{tmp_path / 'old.lp'}?schema=milliwatts")
    influx.write("file", (tmp_path / "old.lp").read_text())
    (row,) = influx.query("SELECT mean(power) AS mw FROM GPU WHERE device = 'GPU 0'", "file")
    assert row["mw"] == pytest.approx(1000 * recording.signals[4].values.mean())
    with pytest.raises(OptionError, match=r"needs a file, as in --to influx:run[.]lp"):
        wattribute.send(recording, "influx:")
    with pytest.raises(OptionError, match="did you mean 'milliwatts'"):
        wattribute.send(recording, "influx:x.lp?schema=milliwat")


def test_a_database_that_keeps_milliwatts_as_integers_gets_integers(influx, recording):
    """Earlier tools wrote ``power=1500i``; InfluxDB refuses a float beside it."""
    influx.write("ints", f"CPU,host=a power=1500i {EPOCH_NS}\nGPU,host=a power=7i {EPOCH_NS}\n")
    wattribute.send(recording, influx.push("ints") + "?schema=milliwatts")
    rows = influx.query("SELECT power FROM GPU WHERE device = 'GPU 0'", "ints")
    assert [row["power"] for row in rows] == [round(1000 * value) for value in recording.signals[4].values.tolist()]
    assert influx.query("SELECT first(power) AS mw FROM CPU WHERE host = 'a'", "ints")[0]["mw"] == 1500


def test_prometheus_started_on_blocks_gives_the_recordings_joules(tmp_path, recording, joules):
    promtool = need("promtool")
    wattribute.send(recording, f"openmetrics:{tmp_path / 'run.om'}")
    blocks = [promtool, "tsdb", "create-blocks-from", "openmetrics", tmp_path / "run.om", tmp_path / "data"]
    subprocess.run(blocks, check=True, capture_output=True)
    server = Prometheus(tmp_path)
    try:
        server.start()
        assert by_device(server.query(COUNTERS, END_S)) == pytest.approx(joules, rel=1e-9)
    finally:
        server.stop()


@pytest.mark.parametrize("kind", [SecuredVictoria, SecuredInflux])
def test_secrets_open_the_door_and_wrong_ones_are_one_line(tmp_path, recording, monkeypatch, kind):
    server = kind(tmp_path / "server")
    try:
        server.start()
        with pytest.raises(OutputError, match="does not accept our user, password or token"):
            wattribute.send(recording, server.push())
        secrets = tmp_path / "secrets.toml"
        secrets.write_text(f'["127.0.0.1:{server.port}"]\nuser = "ada"\npassword = "secret-word"\n')
        with pytest.raises(OptionError, match=r"others can read the secrets in it; run: chmod 600"):
            wattribute.send(recording, server.push(), secrets=secrets)
        secrets.chmod(0o600)
        assert wattribute.send(recording, server.push(), secrets=secrets)
        monkeypatch.setenv("WATTRIBUTE_PUSH_USER", "ada")
        monkeypatch.setenv("WATTRIBUTE_PUSH_PASSWORD", "secret-word")
        assert wattribute.send(recording, server.push())
    finally:
        server.stop()


def test_a_trace_without_a_wall_clock_is_sent_when_told_when_it_began(victoria):
    trace = wattribute.read(samples.path("trace"))
    with pytest.raises(OptionError, match="--start"):
        wattribute.send(trace, victoria.push())
    wattribute.send(trace, victoria.push(), start="2024-09-04T14:00Z")
    found = victoria.query("sum(last_over_time(wattribute_energy_joules_total{run=~'trace.*'}[1h])) by (host, device)",
                           1725458460)  # fmt: skip
    devices = wattribute.attribute(trace, by=("device",)).devices
    measured = {(host, device): joules for host, device, joules in devices["host", "device", "measured_j"].iter_rows()}
    assert {(labels["host"], labels["device"]): v for labels, v in found} == pytest.approx(measured, rel=1e-6)


def test_nothing_to_send_is_said(tmp_path):
    with pytest.raises(NoDataError, match="no energy, power or other reading"):
        wattribute.send(Recording(), f"openmetrics:{tmp_path / 'x'}", start=0)
    assert not list(tmp_path.iterdir())


def test_a_server_that_is_away_is_one_line(recording):
    waits = []
    with pytest.raises(OutputError, match=r"victoria\+http://127.0.0.1:9: .*refused"):
        send(recording, "victoria+http://127.0.0.1:9", sleep=waits.append)
    assert waits == [0.5, 1, 2, 4]
