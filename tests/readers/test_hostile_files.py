"""Files that are cut, damaged or made to hurt: an error of ours or a problem that is told, never a crash."""

import gzip
import json
import random
import re

import pytest

import wattribute
from tests.readers.samples import SAMPLES, as_gzip, format_of, made
from wattribute.errors import FormatError, WattributeError
from wattribute.readers import building, files, json_stream

FILES = [sample for sample in SAMPLES if sample.is_file()]
WHOLE = ("cprofile", "nsys", "pyinstrument", "scalene", "speedscope")  # read as one value: cut means unusable


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


def nan(data: bytes) -> bytes:
    return re.sub(rb"\b\d+\.\d+\b", b"NaN", data)


def negative(data: bytes) -> bytes:
    return re.sub(rb"(?<=[ :,])(\d)", rb"-\1", data)


def huge(data: bytes) -> bytes:
    return re.sub(rb"\b\d+\b", b"9" * 400, data)


def wrong_encoding(data: bytes) -> bytes:
    return data.replace(b"e", b"\xe9\xff")


def no_text(data: bytes) -> bytes:
    return data.replace(b'"', b"").replace(b"\n", b" ")


def empty(data: bytes) -> bytes:
    return b""


def zeros(data: bytes) -> bytes:
    return bytes(len(data))


def flipped(data: bytes) -> bytes:
    bits = random.Random(len(data))
    damaged = bytearray(data)
    for _ in range(20):
        damaged[bits.randrange(len(damaged))] = bits.randrange(256)
    return bytes(damaged)


@pytest.mark.parametrize("harm", [cut, nan, negative, huge, wrong_encoding, no_text, empty, zeros, flipped])
@pytest.mark.parametrize("sample", FILES, ids=lambda path: path.name)
def test_damage_is_told(sample, harm, tmp_path):
    data = made(sample, tmp_path).read_bytes()
    path = tmp_path / "harmed"
    path.write_bytes(harm(data))
    try:
        found = wattribute.read(path, format=format_of(sample))
    except WattributeError:
        return
    assert harm not in (empty, zeros)
    assert not (harm is cut and format_of(sample) in WHOLE)
    for location in found.spans.locations():
        spans = found.spans.spans(location)
        assert (spans.end >= spans.start).all()
        assert (spans.start >= 0).all()
    if harm is cut and sample.name == "chrome-pytorch.json":
        assert "truncated" in {problem.kind for problem in found.problems}
    wattribute.save(found, tmp_path / "kept.watt")  # whatever was kept can be kept


@pytest.mark.parametrize("sample", [s for s in FILES if format_of(s) in ("chrome", "table", "nvidia_smi", "folded")])
def test_cut_gzip_is_told(sample, tmp_path):
    whole = as_gzip(sample, tmp_path).read_bytes()
    path = tmp_path / "cut.gz"
    path.write_bytes(whole[: len(whole) // 2])
    try:
        found = wattribute.read(path, format=format_of(sample))
    except WattributeError:
        return
    assert any("gzip" in problem.message for problem in found.problems)


def test_a_million_threads_are_refused(tmp_path):
    path = tmp_path / "threads.json"
    events = (f'{{"ph":"X","name":"f","pid":1,"tid":{tid},"ts":{tid},"dur":1}},\n' for tid in range(10**6))
    path.write_text("[" + "".join(events))
    with pytest.raises(FormatError, match="more than 131,072 threads"):
        wattribute.read(path)


def test_thousands_of_threads_are_read(tmp_path):
    path = tmp_path / "threads.json"
    events = [{"ph": "X", "name": "f", "pid": 1, "tid": f"t{n}", "ts": n, "dur": 1} for n in range(5000)]
    path.write_text(json.dumps({"traceEvents": events}))
    found = wattribute.read(path)
    assert len(found.locations) == len(found.spans.locations()) == 5000
    assert found.spans.spans(4999).start.tolist() == [4999 * 1000]


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": [{"ph": "X", "args": ' + "[" * 200_000,
        '{"a": ' * 100_000,
        '[{"ph": "X", "name": {"a": [1]}, "pid": [], "tid": {}, "ts": 1, "dur": "x"}]',
        '[{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1e400, "dur": 1}]',
        '[{"ph": "X", "name": "f", "pid": 1, "tid": 1, "ts": 1.5e999999999, "dur": 1}]',
        '[{"ph": "X", "name": "f", "ts": ' + "1" * 5000 + "}]",
        '{"traceEvents": {"ph": "X"}}',
        "[1, null, true, [], {}]",
    ],
    ids=range(8),
)
def test_hostile_json_is_an_error_of_ours(text, tmp_path):
    path = tmp_path / "hostile.json"
    path.write_text(text)
    for name in ("chrome", "speedscope", "pyinstrument", "scalene"):
        with pytest.raises(FormatError):
            wattribute.read(path, format=name)


def test_what_swells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST", 1 << 22)
    monkeypatch.setattr(json_stream, "_LARGEST", 1 << 22)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(b'{"traceEvents": ["' + bytes(1 << 25), 1))
    for name in ("chrome", "speedscope", "table"):
        with pytest.raises(FormatError, match="MB"):
            wattribute.read(bomb, format=name)
    line = tmp_path / "line.gz"
    line.write_bytes(gzip.compress(b"a" * (20 << 20), 1))
    with pytest.raises(FormatError, match="line of more than 16 MB"):
        wattribute.read(line, format="folded")


def test_overlaps_are_cut_and_rounding_is_mended(tmp_path):
    path = tmp_path / "overlap.json"

    def event(tid, ts, dur):
        return {"ph": "X", "name": f"{ts}", "pid": 1, "tid": tid, "ts": ts, "dur": dur}

    # 1: b begins 0.5 µs before a ends, as rounding does; 2: d reaches 0.4 µs beyond c; 3: f really overlaps e
    pairs = [(1, 0, 10.5), (1, 10, 10), (2, 0, 10), (2, 5, 5.4), (3, 0, 10), (3, 5, 10)]
    path.write_text(json.dumps([event(*one) for one in pairs]))
    found = wattribute.read(path)
    rows = [
        list(zip(*(getattr(found.spans.spans(at), c).tolist() for c in ("start", "end", "parent")), strict=True))
        for at in range(3)
    ]
    assert rows[0] == [(0, 10_000, -1), (10_000, 20_000, -1)]
    assert rows[1] == [(0, 10_000, -1), (5_000, 10_000, 0)]
    assert rows[2] == [(0, 10_000, -1), (5_000, 10_000, 0), (10_000, 15_000, -1)]  # f goes on after e: resumed
    assert [problem.kind for problem in found.problems] == ["overlap"]
    assert building.MOST_LOCATIONS == 131_072


def test_what_stands_before_the_cut_of_a_small_gzip_is_read(tmp_path):
    rows = "".join(f"{i},{random.Random(i).random()}\n" for i in range(2000))
    whole = gzip.compress(f"time_s,cpu_power_w\n{rows}".encode())
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    found = wattribute.read(tmp_path / "cut.csv.gz")
    assert 900 < len(found.signals[0]) < 1100  # half of it, as the numbers are noise
    assert any("gzip data is cut" in problem.message for problem in found.problems)


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "x.json").write_bytes(b"")
    with pytest.raises(WattributeError, match=r"x\.json: the file is empty"):
        wattribute.read(tmp_path / "x.json")
