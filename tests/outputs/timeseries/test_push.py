"""Pushing while something runs: real servers that go away and come back, wrong passwords, spools of earlier runs."""

import os
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

import wattribute
from tests.conftest import need, until
from tests.outputs.timeseries.servers import Influx, SecuredVictoria, Victoria, free_port
from tests.outputs.timeseries.test_follow import all_series, told
from wattribute.outputs.timeseries.series import series

MS = 1_000_000
# whatever runs, for as long as it takes until a file says "go on"; exit code 3
WAITS = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)\ntime.sleep(1)\nsys.exit(3)"

LOOKS = """
import subprocess, sys
print(["hidden-word" in line for line in subprocess.check_output(["ps", "axww"], text=True).splitlines()].count(True))
sys.exit(5)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a meter's file, and a home of its own for spools."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    rows = [f"{i / 50:.2f},{1e6 + 4.7 * i:.3f},{250 + i % 7},{i // 4 * 3.5:.2f}" for i in range(2000)]
    header = "time_s,GPU 0:energy_j,GPU 0:power_w,package 0:energy_j"
    (tmp_path / "meter.csv").write_text("\n".join([header, *rows]) + "\n")
    return tmp_path


def command(place, *arguments, verb="run"):
    return [sys.executable, "-m", "wattribute", verb, "--meters", f"replay:{place / 'meter.csv'}", *map(str, arguments)]


def run(place, *arguments, **how):
    how = {"cwd": place, "capture_output": True, "text": True} | how
    return subprocess.run(command(place, "-q", *arguments), **how)


def expected(folder):
    """What a server that counts milliseconds has to hold: {(metric, device, part): [(ms, value)]}."""
    found = {}
    for each in all_series(wattribute.read(folder)):
        ((key, points),) = told([each.thinned(MS)]).items()
        labels = dict(key[1])
        row = f"wattribute_{key[0]}", labels["device"], labels.get("part")
        found[row] = [(at // MS, value) for at, value in points]
    return found


def run_of(folder):
    recording = wattribute.read(folder)
    return dict(next(series(recording, recording.clock.epoch_ns)).labels)["run"]


def check_victoria(server, folder):
    """The server holds exactly what the recording tells: nothing is missing, nothing is there twice."""
    rows = server.rows(f'{{run="{run_of(folder)}"}}')
    stored = {(m["__name__"], m["device"], m.get("part")): points for m, points in rows if "device" in m}
    wanted = expected(folder)
    assert stored.keys() == wanted.keys()
    for key, rows in wanted.items():
        assert [at for at, _ in stored[key]] == [at for at, _ in rows]
        assert [v for _, v in stored[key]] == pytest.approx([v for _, v in rows], rel=1e-9)


def check_influx(server, folder):
    asked = "SELECT count(energy_joules_total) AS n, last(energy_joules_total) AS j FROM wattribute"
    found = server.query(f"{asked} WHERE run = '{run_of(folder)}' GROUP BY device")
    rows = {row["device"]: (row["n"], row["j"]) for row in found}
    recording = wattribute.read(folder)
    wanted = {dict(s.labels)["device"]: (len(s), s.values[-1]) for s in series(recording, recording.clock.epoch_ns)
              if s.metric.kind == "counter"}  # fmt: skip
    assert rows == {device: (n, pytest.approx(joules, rel=1e-9)) for device, (n, joules) in wanted.items()}


def spooled(place):
    return sorted(path for path in (place / "state").rglob("*") if path.name.isdigit())


def test_a_run_is_on_every_server_when_it_ends(place, victoria, influx):
    targets = ["--push", victoria.push(), "--push", influx.push()]
    secrets = place / "secrets"
    secrets.write_text(f'["127.0.0.1:{influx.port}"]\nuser = "x"\npassword = "hidden-word"\n')
    secrets.chmod(0o600)
    (place / "look.py").write_text(LOOKS)
    done = run(place, *targets, "--secrets", secrets, "-o", "x.watt", "--", sys.executable, "look.py")
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout == "0\n"  # nobody's command line shows a secret
    check_victoria(victoria, place / "x.watt")
    check_influx(influx, place / "x.watt")
    assert not any(b"hidden-word" in path.read_bytes() for path in (place / "x.watt").rglob("*") if path.is_file())
    assert spooled(place) == []


@pytest.mark.parametrize("kind", [Victoria, Influx])
def test_a_server_that_is_killed_and_comes_back_loses_and_doubles_nothing(place, kind):
    server = kind(place / "server").start()
    try:
        running = subprocess.Popen(
            command(place, "-q", "-ox.watt", "--push", server.push(), "--", sys.executable, "-c", WAITS, place / "go"),
            cwd=place, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        until(lambda: _points(server) > 50)  # it has confirmed readings …
        server.kill()  # … of which it has not written all to its disk
        until(lambda: len(spooled(place)) > 1)
        server.start()
        (place / "go").touch()
        _, words = running.communicate()
        assert (running.returncode, words) == (3, "")
        check = check_victoria if kind is Victoria else check_influx
        check(server, place / "x.watt")
        assert spooled(place) == []
    finally:
        server.stop()


def _points(server):
    if isinstance(server, Victoria):
        return sum(len(rows) for _, rows in server.rows())
    try:
        return sum(row["n"] for row in server.query("SELECT count(energy_joules_total) AS n FROM wattribute"))
    except AssertionError:  # no database yet
        return 0


def test_a_wrong_password_costs_a_line_and_the_next_run_sends_all(place):
    server = SecuredVictoria(place / "server").start()
    try:
        wrong = os.environ | {"WATTRIBUTE_PUSH_USER": "ada", "WATTRIBUTE_PUSH_PASSWORD": "not-the-word"}
        done = run(place, "--push", server.push(), "-o", "one.watt", "--", "sh", "-c", "sleep 1.5; exit 4", env=wrong)
        assert done.returncode == 4
        (line,) = done.stderr.splitlines()
        assert re.search(r"[\d,]+ readings are not sent yet \(HTTP 401, the server does not accept our user", line)
        assert str(place / "state") in line
        assert "not-the-word" not in line
        kept = spooled(place)
        assert kept
        assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
        assert {path.parent.stat().st_mode & 0o777 for path in kept} == {0o700}
        assert not any(b"not-the-word" in path.read_bytes() for path in place.rglob("*") if path.is_file())
        right = wrong | {"WATTRIBUTE_PUSH_PASSWORD": "secret-word"}
        done = run(place, "--push", server.push(), "-o", "two.watt", "--", "sleep", "0.3", env=right)
        assert (done.returncode, done.stderr) == (0, "")
        assert not list((place / "state").rglob("*-*"))
        server.process.terminate()
        server.process.wait()
        server.arguments = ()  # the same data without a password
        server.start()
        check_victoria(server, place / "one.watt")
        check_victoria(server, place / "two.watt")
    finally:
        server.stop()


def test_monitor_pushes_without_keeping_a_recording(place, victoria):
    arguments = ["--push", victoria.push(), "--duration", "1.5", "--zone", "FR", "--format", "json"]
    done = subprocess.run(command(place, *arguments, verb="monitor"), cwd=place, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    rows = victoria.rows('{__name__="wattribute_energy_joules_total",run=~"monitor.*",device="GPU 0",zone="FR"}')
    assert len(rows) == 1
    assert len(rows[0][1]) > 40
    assert sorted(path.name for path in place.iterdir()) == ["meter.csv"]


def test_a_scraper_finds_what_is_served(place):
    port, promtool = free_port(), need("promtool")
    (place / "scrape.yml").write_text(
        "global: {scrape_interval: 200ms}\n"
        f"scrape_configs: [{{job_name: w, honor_labels: true, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    server = Victoria(place / "server")  # finds its targets at once; Prometheus takes five seconds
    server.arguments = (f"-promscrape.config={place / 'scrape.yml'}",)
    running = subprocess.Popen(
        command(place, "-q", "-o", "x.watt", "--serve", f":{port}", "--", sys.executable, "-c", WAITS, place / "go"),
        cwd=place, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        server.start()
        until(lambda: _listens(port) and "wattribute_energy" in _served(port))
        text = _served(port)
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert _served(port, Accept="application/openmetrics-text; version=1.0.0").endswith("\n# EOF\n")
        with pytest.raises(OSError, match="403"):
            _served(port, Host="evil.example.org")
        until(lambda: server.query('changes(wattribute_energy_joules_total{device="GPU 0"}[1m]) > 1'))
        ((labels, watts),) = server.query('wattribute_power_watts{device="GPU 0"}')
        assert 250 <= watts < 257
        assert (labels["kind"], labels["run"].split()[0]) == ("gpu", os.path.basename(sys.executable))
        until(lambda: "wattribute_process_power_watts{" in _served(port))  # two looks at /proc, a second apart
    finally:
        (place / "go").touch()
        _, words = running.communicate()
        server.stop()
    assert (running.returncode, words) == (3, "")
    with pytest.raises(OSError, match="refused"):
        _served(port)


def _listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _served(port, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--push", "http://host"], "is not an address to push to"),
        (["--push", "victoria+http://me:secret@host"], "seen by others"),
        (["--push", "victoria+http://host", "--secrets", "none.toml"], "No such file"),
        (["--serve", "9401x"], "give a port"),
        (["--serve", "203.0.113.9:9401"], "cannot listen there"),
        (["--compare", "--push", "victoria+http://host"], "export --to"),
    ],
)
def test_mistakes_are_one_line_and_nothing_runs(place, arguments, words):
    done = run(place, *arguments, "--", "touch", "ran", "---", "true")
    assert done.returncode == 1
    assert words in done.stderr
    assert "secret" not in done.stderr.replace("--secrets", "")
    assert len(done.stderr.splitlines()) == 1
    assert sorted(path.name for path in place.iterdir()) == ["meter.csv"]


def test_a_taken_port_is_told(place):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(place, "--serve", f":{taken.getsockname()[1]}", "--", "touch", "ran")
    assert (done.returncode, "already in use" in done.stderr) == (1, True)
