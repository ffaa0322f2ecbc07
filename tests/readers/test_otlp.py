"""OTLP spans: what the real SDK writes becomes a recording; joules per request and token are those of a known GPU."""

import json

import numpy as np
import pytest

import wattribute
from tests.inference_server import DECODE_J, HOST, IDLE_W, PREFILL_J, STEP_NS, TOKENS, FileExporter, Server
from wattribute.errors import FormatError, WattributeError
from wattribute.readers import otlp, otlp_format
from wattribute.testing.recordings import as_text

pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK is not installed")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """(server, its spans in a file) for steps of one kind and for mixed ones."""
    made = {}
    for mixed in (False, True):
        server = Server(mixed)
        path = tmp_path_factory.mktemp("otlp") / f"spans.{'pb' if mixed else 'jsonl'}"
        server.record(FileExporter(path))
        made[mixed] = server, path
    return made


def asked(server, path, period_ns=STEP_NS, **more):
    how = {"signals": server.power_log(period_ns), "offset": 0.0, "share": "load", "load": TOKENS, "per": TOKENS}
    return wattribute.attribute(path, **how | more)


def test_both_forms_are_read_alike_and_keep_everything(servers, tmp_path):
    _, path = servers[False]
    requests = list(otlp_format.requests(path, []))
    framed = tmp_path / "again"
    framed.write_bytes(b"".join(len(b := otlp_format.encode(r)).to_bytes(4, "big") + b for r in requests))
    (tmp_path / "one").write_text(json.dumps(requests[0], indent=1))
    (tmp_path / "bare").write_bytes(otlp_format.encode(requests[0]))
    expected = as_text(wattribute.read(path))
    assert as_text(wattribute.read(framed)) == expected
    assert as_text(wattribute.read(tmp_path / "bare")) == as_text(wattribute.read(tmp_path / "one"))


def test_our_bytes_are_those_of_the_protobuf_package(servers):
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request

    _, path = servers[True]
    data = path.read_bytes()
    theirs = Request.FromString(data[4 : 4 + int.from_bytes(data[:4], "big")])
    assert Request.FromString(otlp_format.encode(otlp_format.decode(theirs.SerializeToString()))) == theirs


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("period_ns", [STEP_NS, 7_300_000])
def test_requests_and_idle_are_what_the_gpu_used(servers, mixed, period_ns):
    server, path = servers[mixed]
    found = asked(server, path, period_ns, by="location")
    (device,) = found.devices.to_dicts()
    measured = device["measured_j"]
    assert found.rows["self_j"].sum() + device["idle_j"] == pytest.approx(measured, rel=1e-9)
    if period_ns == STEP_NS:
        assert measured == pytest.approx(float(server.energy_at([server.end])[0]), rel=1e-9)
        assert device["idle_j"] == pytest.approx(server.idle_j(), rel=1e-9)
    by_trace = truth_by_trace(server, path)
    assert len(found.rows) == 64
    for row in found.rows.to_dicts():
        true = by_trace[row["location"]]
        assert row["self_low_j"] <= true * (1 + 1e-9)
        assert true <= row["self_high_j"] * (1 + 1e-9)
        if period_ns == STEP_NS:
            assert row["self_j"] == pytest.approx(true, rel=1e-9)


def truth_by_trace(server, path):
    """Label of a location → what its request truly used; requests are told apart by their times."""
    recording = wattribute.read(path)
    origin = recording.clock.epoch_ns
    truth = server.by_request()
    by_start = {}
    for request in server.requests:
        steps = [s for s in server.steps if request.number in (*s.prefill, *s.decode)]
        by_start[request.arrives, steps[-1].end, request.prompt] = truth[request.number]
    labels = {}
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        tokens = [s for s in recording.signals if s.location == location and s.name == TOKENS]
        prompt = int(tokens[0].values[np.flatnonzero(tokens[0].values)[0]])
        key = (origin + int(spans.start[0]), origin + int(spans.end[0]), prompt)
        labels[recording.locations.name[location]] = by_start[key]
    return labels


def test_joules_per_token_where_steps_are_of_one_kind(servers):
    server, path = servers[False]
    found = asked(server, path, by="frame")
    rows = {row["frame"]: row for row in found.rows.to_dicts()}
    for kind, cost_j in (("prefill", PREFILL_J), ("decode", DECODE_J)):
        steps = [step for step in server.steps if getattr(step, kind)]
        tokens = sum(sum(getattr(step, kind).values()) for step in steps)
        expected = cost_j + IDLE_W * sum(step.end - step.start for step in steps) / 1e9 / tokens
        assert rows[kind]["count"] == tokens
        assert rows[kind]["j_per_unit"] == pytest.approx(expected, rel=1e-9)
        assert rows[kind]["j_per_unit_low"] <= expected <= rows[kind]["j_per_unit_high"]
    assert not [problem for problem in found.problems if problem.kind == "inseparable"]


def test_mixed_steps_are_said_to_be_inseparable(servers):
    server, path = servers[True]
    found = asked(server, path, by="frame")
    problems = {p.message.split()[0]: p.message for p in found.problems if p.kind == "inseparable"}
    assert set(problems) == {"prefill", "decode"}
    shared = [step for step in server.steps if step.prefill and step.decode]
    assert shared
    for kind in ("prefill", "decode"):
        steps = [step for step in server.steps if getattr(step, kind)]
        tokens = sum(sum(getattr(step, kind).values()) for step in steps)
        low = sum(step.energy_j for step in steps if step not in shared) / tokens
        high = sum(step.energy_j for step in steps) / tokens
        assert f"{low:.3g} to {high:.3g} J per {TOKENS}" in problems[kind]


def test_a_round_trip_finds_the_same_joules(servers, tmp_path):
    """SDK → file → attribute → OTLP → the protobuf package, and our own reader."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Request

    server, path = servers[False]
    found = asked(server, path, by="frame")
    target = tmp_path / "out.otlp.pb"
    wattribute.write(found, target, zone="FR")
    wattribute.write(found, tmp_path / "out.otlp.jsonl", zone="FR")
    data, at, spans = target.read_bytes(), 0, []
    while at < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        request = Request.FromString(data[at + 4 : at + 4 + length])
        spans += [s for r in request.resource_spans for scope in r.scope_spans for s in scope.spans]
        at += 4 + length
    numbers = [{a.key: a.value.double_value or a.value.int_value for a in span.attributes} for span in spans]
    (device,) = found.devices.to_dicts()
    assert sum(one["energy.self_j"] for one in numbers) == pytest.approx(device["attributed_j"], rel=1e-9)
    roots = [one for one, span in zip(numbers, spans, strict=True) if not span.parent_span_id]
    assert sum(one["energy.j"] for one in roots) == pytest.approx(device["attributed_j"], rel=1e-9)
    for one in numbers:
        assert one["energy.low_j"] <= one["energy.j"] <= one["energy.high_j"]
        assert one["co2e.g"] == pytest.approx(one["energy.j"] * 44.18 / 3.6e6, rel=1e-3)
    assert {one["server.port"] for one in roots} == {8000}  # what was there stays
    assert as_text(wattribute.read(target)) == as_text(wattribute.read(path))
    assert as_text(wattribute.read(tmp_path / "out.otlp.jsonl")) == as_text(wattribute.read(path))


def span(name, start, end, own, parent="", trace="ab" * 16, **attributes):
    numbers = [{"key": key, "value": {"intValue": str(value)}} for key, value in attributes.items()]
    ids = {"traceId": trace, "spanId": f"{own:016x}", "parentSpanId": f"{parent:016x}" if parent else ""}
    return {**ids, "name": name, "startTimeUnixNano": str(start), "endTimeUnixNano": end, "attributes": numbers}


def document(tmp_path, *spans, text="{}\n"):
    path = tmp_path / "spans.jsonl"
    scope = {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}
    path.write_text(text.format(json.dumps(scope)))
    return path


def test_overlapping_siblings_and_late_children_get_locations_of_their_own(tmp_path):
    path = document(
        tmp_path,
        span("root", 100, 200, 1),
        span("a", 110, 150, 2, 1),
        span("b", 140, 180, 3, 1),
        span("c", 160, 170, 4, 1),
        span("late", 190, 260, 5, 1),
    )
    recording = wattribute.read(path)
    found = {}
    for location in recording.spans.locations():
        spans = recording.spans.spans(location)
        found[recording.locations.name[location]] = [recording.frames.name[f] for f in spans.frame]
    name = "trace " + "ab" * 8
    assert found == {name: ["root", "a", "c"], f"{name} #2": ["b", "late"]}


def test_spans_on_a_lane_nest_and_lanes_are_as_few_as_they_can_be():
    generator = np.random.default_rng(5)
    for _ in range(50):
        spans = []
        for own in range(1, 40):
            start, length = (int(n) for n in generator.integers(1, 60, 2))
            spans.append(span("s", start, start + length // 3, own, int(generator.integers(0, own))))
        members = otlp.spans([{"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}])
        lanes = otlp.lanes(members)
        assert sorted(one.id for lane in lanes for one in lane.spans) == sorted(one.id for one in members)
        for lane in lanes:
            stack = []
            for one in lane.spans:
                while stack and stack[-1].end <= one.start:
                    stack.pop()
                assert not stack or (stack[-1].id == one.parent and one.end <= stack[-1].end)
                stack.append(one)
        at_once = max(sum(one.start <= t < one.end for one in members) for t in range(80))
        assert len(lanes) <= max(at_once, 1) + sum(one.start == one.end for one in members)


def test_traces_one_after_another_can_share_a_location(tmp_path):
    """Packed lanes give every span the same joules: as many users are active at every moment."""
    from wattribute.outputs.otlp_spans import span_energies
    from wattribute.plugins import Selection
    from wattribute.readers.building import Builder

    server = Server(False, requests=40, seed=4)
    path = tmp_path / "spans.jsonl"
    server.record(FileExporter(path))
    lanes = otlp.lanes(otlp.spans(list(otlp_format.requests(path, []))))
    joules = []
    for some in (lanes, otlp.packed(lanes)):
        recording = otlp.recording(some, Builder(tmp_path, Selection(), "otlp"))
        found = wattribute.attribute(recording, signals=server.power_log(), offset=0.0, share="load", load=TOKENS)
        energies = span_energies(found)
        joules.append({s.id: e.total_j[row] for at, e in energies.items() for row, s in enumerate(some[at].spans)})
    assert joules[1] == pytest.approx(joules[0], rel=1e-9)
    at_once = max(
        sum(lane.spans[0].start <= one.spans[0].start <= lane.spans[0].end for lane in lanes) for one in lanes
    )
    assert len(otlp.packed(lanes)) == at_once < len(lanes)


def test_numbers_count_once_innermost(tmp_path):
    path = document(
        tmp_path, span("request", 100, 200, 1, tokens=5, port=80), span("step", 110, 150, 2, 1, tokens=5, bytes=7)
    )
    recording = wattribute.read(path)
    sums = {signal.name: float(signal.values.sum()) for signal in recording.signals}
    assert sums == {"tokens": 5, "bytes": 7}


def test_events_count_what_was_done_since_the_one_before(tmp_path):
    request = span("request", 100, 200, 1, tokens=3)
    tokens = {"key": "tokens", "value": {"intValue": "1"}}
    request["events"] = [{"timeUnixNano": str(at), "attributes": [tokens]} for at in (120, 140, 200)]
    recording = wattribute.read(document(tmp_path, request))
    (signal,) = recording.signals
    assert list(zip(signal.times.tolist(), signal.values.tolist(), strict=True)) == [
        (0, 0.0), (20, 1.0), (40, 1.0), (99, 1.0),
    ]  # fmt: skip


def test_a_request_takes_the_energy_of_a_step_by_its_tokens(tmp_path):
    # both run 0..100 ns; A did 3 tokens, B 1: 3 : 1 of 100 J
    a, b = span("a", 100, 200, 1, tokens=3), span("b", 100, 200, 2, trace="cd" * 16, tokens=1)
    from wattribute.testing.recordings import RecordingBuilder

    log = RecordingBuilder(10**9, epoch_ns=100).counter("GPU 0", [0, 100], every=100).recording()
    how = {"signals": log, "offset": 0.0, "by": "frame"}
    found = wattribute.attribute(document(tmp_path, a, b), share="load", load="tokens", **how)
    assert dict(found.rows.select("frame", "self_j").rows()) == pytest.approx({"a": 75, "b": 25})
    even = wattribute.attribute(document(tmp_path, a, b), **how)
    assert dict(even.rows.select("frame", "self_j").rows()) == pytest.approx({"a": 50, "b": 50})


@pytest.mark.parametrize("text", ['{}\n{{"resourceSpans": [', "{{cut\n{}\n", "{}\n[]\n3\n{{}}\n"])
def test_a_cut_line_costs_that_line(tmp_path, text):
    recording = wattribute.read(document(tmp_path, span("a", 100, 200, 1), text=text), format="otlp")
    assert recording.frames.name == ("a",)
    assert any(problem.kind == "truncated" for problem in recording.problems) == ("cut" in text or text.endswith("["))


@pytest.mark.parametrize(
    "wrong",
    [
        {"traceId": 5}, {"spanId": ""}, {"traceId": "00" * 16}, {"startTimeUnixNano": "x"}, {"endTimeUnixNano": None},
        {"endTimeUnixNano": "1"}, {"startTimeUnixNano": str(10**30)},
    ],
)  # fmt: skip
def test_a_span_without_ids_or_times_is_left_out(tmp_path, wrong):
    path = document(tmp_path, span("a", 100, 200, 1), span("b", 100, 200, 2) | wrong)
    recording = wattribute.read(path)
    assert recording.frames.name == ("a",)
    assert any("1 × span without ids or times" in problem.message for problem in recording.problems)
    with pytest.raises(FormatError, match="holds no spans"):
        wattribute.read(document(tmp_path, span("b", 100, 200, 2) | wrong))


def test_damaged_protobuf_never_raises_anything_else(servers, tmp_path):
    _, path = servers[True]
    data, path = path.read_bytes()[:3000], tmp_path / "damaged.pb"
    generator = np.random.default_rng(3)
    for _ in range(200):
        bytes_ = bytearray(data[: generator.integers(5, len(data))])
        for at in generator.integers(0, len(bytes_), 8):
            bytes_[at] = generator.integers(256)
        path.write_bytes(bytes_)
        try:
            wattribute.read(path, format="otlp")
        except WattributeError:
            continue


def test_a_log_of_the_same_host_is_joined_by_its_one_clock(servers):
    server, path = servers[False]
    found = wattribute.read(path, signals=server.power_log(), offset=0.0)
    (signal,) = [s for s in found.signals if s.device == "GPU 0"]
    assert signal.clock_error_s == pytest.approx(1e-3)
    assert found.hosts() == [HOST]
