"""A container's output, line by line."""

import io

from hypothesis import given
from hypothesis import strategies as st

from wattribute.recorders.logs import LONGEST, LogLines, Logs


def test_a_redrawn_line_is_its_last_state():
    lines = LogLines()
    assert lines.take(b"10%\r50%\r") == b""
    assert lines.take(b"100%\nwindows\r\nnext") == b"100%\nwindows\n"
    assert lines.end() == b"next"
    assert lines.end() == b""


def test_a_line_without_an_end_does_not_wait_for_ever():
    lines = LogLines()
    assert lines.take(b"x" * (LONGEST + 1)) == b"x" * (LONGEST + 1)
    assert lines.end() == b""


@given(st.lists(st.binary(max_size=20)))
def test_how_it_was_cut_does_not_matter(pieces):
    one, many = LogLines(), LogLines()
    whole = one.take(b"".join(pieces)) + one.end()
    assert b"".join(many.take(piece) for piece in pieces) + many.end() == whole


class Gone(io.BytesIO):
    def write(self, _):
        raise BrokenPipeError


def test_streams_stay_apart_and_a_reader_that_left_stops_nobody(tmp_path):
    out, path = io.BytesIO(), tmp_path / "log"
    logs = Logs([(b"a", None), (None, b"e1\n"), (b"b\n", b"e2\n")], path, out, Gone())
    logs.start()
    logs.join()
    assert out.getvalue() == b"ab\n"
    assert path.read_bytes() == b"e1\nab\ne2\n"
    assert logs.failure == ""


def test_a_stream_that_breaks_is_told_and_what_came_is_kept(tmp_path):
    def pieces():
        yield b"half", None
        raise ConnectionResetError("gone")

    logs = Logs(pieces(), tmp_path / "log")
    logs.start()
    logs.join()
    assert (tmp_path / "log").read_bytes() == b"half"
    assert logs.failure == "the container's output ended early: gone"
