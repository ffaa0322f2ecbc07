"""Protocols without a server in Debian, against fakes that take nothing else; addresses, names and secrets."""

import subprocess
from dataclasses import replace

import numpy as np
import pytest

import wattribute
from tests.conftest import need
from tests.outputs.timeseries.conftest import EPOCH_NS
from tests.outputs.timeseries.fakes import Fake, influx2, otlp
from wattribute.errors import OptionError, OutputError
from wattribute.outputs.timeseries.openmetrics import exposition
from wattribute.outputs.timeseries.protocols import csv, csv_format, line_protocol
from wattribute.outputs.timeseries.secrets import headers
from wattribute.outputs.timeseries.send import send
from wattribute.outputs.timeseries.series import ENERGY, Series, chunks, clean, points, run_name, series
from wattribute.outputs.timeseries.target import parse
from wattribute.testing.recordings import RecordingBuilder


@pytest.fixture
def fake(request):
    servers = []

    def start(*arguments):
        servers.append(Fake(*arguments))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def expected(recording, named):
    return {
        (named(each.metric), each.labels, at): value
        for each in series(recording, EPOCH_NS)
        for at, value in zip(each.times_ns.tolist(), each.values.tolist(), strict=True)
    }


def test_influxdb_2_takes_every_point(fake, recording, monkeypatch):
    server = fake(influx2, "Token abc")
    monkeypatch.setenv("WATTRIBUTE_PUSH_TOKEN", "abc\n")
    wattribute.send(recording, f"influx2+http://{server.place}/my%20org/b")
    assert server.faults == []
    assert server.points == expected(recording, lambda metric: f"wattribute_{metric.field}")


def test_an_otlp_collector_takes_every_point(fake, recording, monkeypatch):
    server = fake(otlp, "Bearer abc")
    monkeypatch.setenv("WATTRIBUTE_PUSH_TOKEN", "abc")
    wattribute.send(recording, f"otlp+http://{server.place}?names=wattribute")
    assert server.faults == []
    assert server.points == expected(recording, lambda metric: f"wattribute.{metric.name}")


def test_otlp_has_the_semantic_conventions_of_hardware(fake):
    made = RecordingBuilder(10**9, epoch_ns=EPOCH_NS).thread("main 0..2000000000").host("n01")
    for name, joules in (("node", 300), ("package 0", 120), ("GPU 0", 100), ("dram 0", 30)):
        made.counter(name, [0, joules], every=2_000_000_000, name=f"{name} energy")
    server = fake(otlp, None)
    wattribute.send(made.recording(), f"otlp+http://{server.place}")
    assert server.faults == []
    last = {(name, dict(labels)["hw.id"]): value for (name, labels, _), value in sorted(server.points.items())}
    assert {key: value for key, value in last.items() if "energy" in key[0]} == {
        ("hw.host.energy", "n01"): 300,
        ("hw.energy", "n01/package 0"): 120,
        ("hw.energy", "n01/GPU 0"): 100,
        ("hw.energy", "n01/dram 0"): 30,
    }
    assert last["hw.power", "n01/GPU 0"] == 50
    kinds = {dict(labels)["hw.id"]: dict(labels).get("hw.type") for _, labels, _ in server.points}
    assert kinds == {"n01": None, "n01/package 0": "cpu", "n01/GPU 0": "gpu", "n01/dram 0": "memory"}
    parents = {dict(labels).get("hw.parent") for name, labels, _ in server.points if name == "hw.energy"}
    assert parents == {"n01"}


def test_otlp_names_the_part_that_another_is_inside_of(fake):
    made = RecordingBuilder(10**9, epoch_ns=EPOCH_NS).thread("main 0..2000000000").host("n01")
    for name in ("package 0", "package 1", "core 0", "core 1", "GPU 0"):
        made.counter(name, [0, 100], every=2_000_000_000, name=f"{name} energy")
    server = fake(otlp, None)
    wattribute.send(made.recording(), f"otlp+http://{server.place}")
    parents = {dict(labels)["hw.id"]: dict(labels)["hw.parent"] for _, labels, _ in server.points}
    assert parents == {
        "n01/package 0": "n01", "n01/package 1": "n01", "n01/GPU 0": "n01",
        "n01/core 0": "n01/package 0", "n01/core 1": "n01/package 1",
    }  # fmt: skip


def test_points_that_a_collector_rejects_are_told(fake, recording):
    said = b'{"partialSuccess": {"rejectedDataPoints": "3", "errorMessage": "too old"}}'
    server = fake(lambda *_: (200, said), None)
    with pytest.raises(OutputError, match="too old"):
        wattribute.send(recording, f"otlp+http://{server.place}")


def test_tls_is_checked_and_a_wrong_token_is_told_without_it(fake, recording, tmp_path, monkeypatch):
    openssl = need("openssl")
    pem = tmp_path / "pem"
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=here"]
    files = ["-keyout", pem, "-out", tmp_path / "cert", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, *made, *files], check=True, capture_output=True)
    pem.write_text(pem.read_text() + (tmp_path / "cert").read_text())
    server = fake(influx2, "Token abc", pem)
    monkeypatch.setenv("WATTRIBUTE_PUSH_TOKEN", "wrong-word")
    target = f"influx2+https://{server.place}/my%20org/b"
    with pytest.raises(OutputError, match="certificate is not trusted"):
        wattribute.send(recording, target)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert"))
    with pytest.raises(OutputError, match="does not accept") as refused:
        wattribute.send(recording, target)
    assert "wrong-word" not in str(refused.value)
    monkeypatch.setenv("WATTRIBUTE_PUSH_TOKEN", "abc")
    wattribute.send(recording, target)
    assert len(server.points) == points(list(series(recording, EPOCH_NS)))


def test_a_busy_server_is_asked_again_as_late_as_it_wants(fake, recording):
    server = fake(otlp, None)
    server.mode, server.retry_after, waits = "503", "7", []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            server.mode = ""

    send(recording, f"otlp+http://{server.place}", sleep=sleep)
    assert waits == [7, 7]
    server.mode = "503"
    with pytest.raises(OutputError) as failed:
        send(recording, f"otlp+http://{server.place}", sleep=lambda _: None)
    assert str(failed.value).endswith('HTTP 503: {"message": "busy [31m"}')  # and no escape


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://host", "'http://host' is not an address to push to; known: victoria+http://"),
        ("victoria+ftp://host", "known: victoria+http://"),
        ("victria+http://host", "did you mean 'victoria'"),
        ("victoria+http://ada:secret@host", "WATTRIBUTE_PUSH_PASSWORD"),
        ("victoria+http://host?token=secret", "WATTRIBUTE_PUSH_TOKEN"),
        ("victoria+http://host?format=cvs", "did you mean 'csv'"),
        ("victoria+http://host?fromat=csv", "did you mean 'format'"),
        ("victoria+http://:8428", "'victoria+http://:8428' names no host"),
        ("victoria+http://host:port?token=secret", "'victoria+http://host:port' is not an address"),
        ("influx2+https://host/bucket", "ORG/BUCKET"),
        ("openmetrics:", "needs a file"),
    ],
)
def test_a_wrong_address_is_one_line_without_its_secret(recording, address, words):
    with pytest.raises(OptionError) as refused:
        wattribute.send(recording, address)
    assert words in str(refused.value)
    assert "secret" not in str(refused.value).replace("--secrets", "")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("victoria+http://host", "victoria+http://host:8428"),
        ("victoria+https://host/a/b/", "victoria+https://host:443/a/b"),
        ("influx+http://[::1]:1", "influx+http://[::1]:1/wattribute"),
        ("otlp+http://Host:4318/x?", "otlp+http://host:4318/x"),
    ],
)
def test_ports_and_names_have_defaults(address, name):
    assert parse(address).name == name


def test_one_secret_is_never_shown_to_two_servers(tmp_path):
    one, two = parse("victoria+http://a"), parse("influx2+http://b/o/k")
    own = {"WATTRIBUTE_PUSH_TOKEN": "t", "XDG_CONFIG_HOME": str(tmp_path)}
    assert headers([one, one], environment=own) == [{"Authorization": "Bearer t"}] * 2
    with pytest.raises(OptionError, match="several servers"):
        headers([one, two], environment=own)
    file = tmp_path / "wattribute" / "secrets.toml"
    file.parent.mkdir()
    file.write_text('["b:8086"]\ntoken = "u"\n')
    file.chmod(0o600)
    assert headers([one, two], environment=own) == [{"Authorization": "Bearer t"}, {"Authorization": "Token u"}]
    assert headers([one], environment={"XDG_CONFIG_HOME": str(tmp_path)}) == [{}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('token = "very-secret', "is not TOML"),
        ('token = "very-secret"', "belong to a server"),
        ('["a:8428"]\ntoken = "very-secret\\u0007"', "cannot be sent"),
    ],
)
def test_a_broken_file_of_secrets_is_told_without_them(tmp_path, content, words):
    file = tmp_path / "s"
    file.write_text(content)
    file.chmod(0o600)
    with pytest.raises(OptionError, match=words) as refused:
        headers([parse("victoria+http://a")], file, {})
    assert "very-secret" not in str(refused.value)
    with pytest.raises(OptionError, match="No such file"):
        headers([], tmp_path / "none", {})


def tiny(times, values, labels=(("device", "GPU 0"),)):
    return Series(ENERGY, labels, np.array(times, np.int64), np.array(values, float), 0)


def test_texts_by_hand():
    one = tiny([1_500_000, 1_999_999, 2_000_000], [0, 1.5, 2], (("device", 'a, "b"=c'), ("host", "h")))
    assert line_protocol([one]).splitlines()[1] == (
        r'wattribute,device=a\,\ "b"\=c,host=h energy_joules_total=1.5 1999999'
    )
    # VictoriaMetrics counts milliseconds: 1.5 and 1.999999 are both in the first one, where the later counts
    assert line_protocol([one], step_ns=1_000_000) == (
        'wattribute,device=a\\,\\ "b"\\=c,host=h energy_joules_total=1.5 1\n'
        'wattribute,device=a\\,\\ "b"\\=c,host=h energy_joules_total=2.0 2\n'
    )
    assert csv([one]).splitlines() == [',"a, ""b""=c",,h,,,,,1,1.5', ',"a, ""b""=c",,h,,,,,2,2.0']
    assert csv_format(ENERGY).endswith("8:label:zone,9:time:unix_ms,10:metric:wattribute_energy_joules_total")
    assert exposition([one]).splitlines() == [
        "# HELP wattribute_energy_joules Energy used since the run began.",
        "# TYPE wattribute_energy_joules counter",
        "# UNIT wattribute_energy_joules joules",
        'wattribute_energy_joules_total{device="a, \\"b\\"=c",host="h"} 1.5 0.001',
        'wattribute_energy_joules_total{device="a, \\"b\\"=c",host="h"} 2.0 0.002',
        "# EOF",
    ]
    assert exposition([one], openmetrics=False, times=False).splitlines()[1:] == [
        "# TYPE wattribute_energy_joules_total counter",
        'wattribute_energy_joules_total{device="a, \\"b\\"=c",host="h"} 2.0',
    ]


def test_chunks_lose_nothing():
    told = [tiny(range(7), range(7)), tiny(range(5), range(5))]
    cut = list(chunks(told, 3))
    assert [points(chunk) for chunk in cut] == [3, 3, 3, 3]
    assert [t for chunk in cut for each in chunk for t in each.times_ns.tolist()] == [*range(7), *range(5)]


def test_names_of_runs_tell_no_arguments_and_labels_no_tricks():
    assert run_name({"command": ["/bin/mysql", "-psecret"]}, 0) == "mysql 1970-01-01T00:00:00.000Z"
    assert run_name({"command": ["python3.11", "a/b.py", "x"]}, 1_700_000_000_999_999_999).startswith(
        "b.py 2023-11-14T"
    )
    assert run_name({"name": "simple"}, 0) == "simple 1970-01-01T00:00:00.000Z"
    assert clean("a\nb\\\x1b[0m\ud800 ") == "a b/ [0m"
    assert len(clean("x" * 1000)) == 120


def test_promtool_finds_nothing_to_complain_about(recording):
    promtool = need("promtool")
    text = exposition(series(recording, EPOCH_NS), openmetrics=False, times=False)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_two_sensors_of_one_name_are_one_series(recording):
    doubled = replace(recording, signals=(*recording.signals, replace(recording.signals[5], values=np.arange(20))))
    told = [(each.metric, each.labels, each.values.tolist()) for each in series(doubled, EPOCH_NS)]
    assert told == [(each.metric, each.labels, each.values.tolist()) for each in series(recording, EPOCH_NS)]
