"""A third-party output, installed in a site folder, works in every verb that writes, without a change of ours."""

import pytest

from tests.recorders.profiled import constant_power
from tests.views.stories import streams
from wattribute import save

MODULE = """
SUFFIXES = (".theirs",)

def write(attribution, target, **options):
    import sys
    text = "theirs: " + ",".join(sorted(attribution.rows["frame"].to_list())) + "\\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        with open(target, "w") as file:
            file.write(text)
"""
SCRIPT = (
    "import time\ndef works():\n    end = time.monotonic() + 0.3\n    while time.monotonic() < end: pass\nworks()\n"
)


@pytest.fixture
def call(command, tmp_path, monkeypatch):
    """Run a verb where the plug-in is installed, beside a recording ``a.watt`` and a script ``s.py``."""
    site = tmp_path / "site"
    (site / "theirs-1.0.dist-info").mkdir(parents=True)
    (site / "their_output.py").write_text(MODULE)
    (site / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (site / "theirs-1.0.dist-info" / "entry_points.txt").write_text("[wattribute.outputs]\ntheirs = their_output\n")
    save(streams(["a", "b"]), tmp_path / "a.watt")
    (tmp_path / "s.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(site)

    def run(*words, code=0):
        done = command(*words, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    run.folder = tmp_path
    return run


def test_export_attribute_and_the_ending_of_a_file(call):
    assert "theirs" in " ".join(call("export", "--help").stdout.split())
    assert call("export", "a.watt", "--to", "theirs").stderr == "wrote a.theirs\n"
    assert (call.folder / "a.theirs").read_text() == "theirs: a,b\n"
    assert call("attribute", "a.watt", "--format", "theirs").stdout == "theirs: a,b\n"
    call("attribute", "a.watt", "-o", "rows.theirs")
    assert (call.folder / "rows.theirs").read_text() == "theirs: a,b\n"
    assert "did you mean 'theirs'" in call("attribute", "a.watt", "--format", "thiers", code=1).stderr
    assert "one run" in call("export", "a.watt", "a.watt", "--to", "theirs", code=1).stderr


def test_profile(call):
    meter = constant_power(call.folder / "p.csv", length_s=30)
    for words in (["-o", "x.theirs"], ["--format", "theirs", "-o", "x.any"]):
        call("profile", "--meters", meter, *words, "s.py")
        text = (call.folder / words[-1]).read_text()
        assert text.startswith("theirs: ")
        assert "works" in text
    assert "works" in call("profile", "--meters", meter, "--format", "theirs", "s.py").stderr
