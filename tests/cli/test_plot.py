"""``wattribute plot`` as a stranger uses it."""

import re

import pytest

from tests.views.stories import streams
from wattribute import save


@pytest.fixture
def recording(tmp_path):
    target = tmp_path / "run.watt"
    save(streams(["a", "<b>"]), target)
    return target


@pytest.mark.parametrize(
    ("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("pdf", b"%PDF"), ("html", b"<!DOC")]
)
def test_the_ending_says_what_is_written(command, recording, tmp_path, ending, magic):
    done = command("plot", "timeline", recording, "-o", tmp_path / f"out.{ending}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / f"out.{ending}").read_bytes().startswith(magic)
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"out.{ending}", "run.watt"]


@pytest.mark.parametrize(("format", "magic"), [(None, b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOC")])
def test_a_dash_is_standard_output(command, recording, tmp_path, format, magic):
    more = ["--format", format] if format else []
    done = command("plot", "timeline", recording, "-o", "-", *more, cwd=tmp_path, text=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(magic)
    assert [path.name for path in tmp_path.iterdir()] == ["run.watt"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("flam", "run.watt", "-o", "x.png"), "unknown kind of chart 'flam'; did you mean 'flame'?"),
        (("flame", "run.watt", "-o", "x.gif"), "unknown ending of the output file '.gif'"),
        (("flame", "nowhere", "-o", "x.png"), "nowhere"),
        (("flame", "run.watt", "-o", "-", "--format", "gif"), "unknown format 'gif'"),
        (("flame", "run.watt", "-o", "no/such/x.png"), "no/such does not exist"),
        (("power", "run.watt", "run.watt", "-o", "x.png"), "shows one recording, not 2"),
        (
            ("power", "run.watt", "-o", "x.png", "--metric", "enrgy"),
            "did you mean 'gpu_energy'?",
        ),
        (("heatmap", "run.watt", "-o", "x.png", "--share", "evn"), "did you mean 'even'"),
    ],
)
def test_mistakes_are_one_line(command, recording, tmp_path, words, said):
    done = command("plot", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_picture_of_a_size(tmp_path):
    from wattribute import samples
    from wattribute.views import plot

    trace = samples.path("trace")
    plot.write("flame", [trace], tmp_path / "a.svg", of="host", size=(400, 250))
    match = re.search(r'width="([\d.]+)" height="([\d.]+)"', (tmp_path / "a.svg").read_text())
    width, height = float(match[1]), float(match[2])
    assert max(width / 400, height / 250) == pytest.approx(1, abs=0.001)  # it fits, and one side is full
    assert min(width / 400, height / 250) > 0.9
    with pytest.raises(ValueError, match="--size is for pictures"):
        plot.write("flame", [trace], tmp_path / "a.html", of="host", size=(400, 250))
