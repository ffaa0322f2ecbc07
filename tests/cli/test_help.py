"""Help: every verb opens with a sentence and examples that run; it fits 80 columns; exit codes are listed."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from glob import glob
from pathlib import Path

import pytest

import wattribute
from tests.conftest import ROOT
from wattribute.cli import SENTENCE, VERBS, program_parser, verb_parser

PROGRAM = Path(sys.executable).parent / "wattribute"
GROUPS = ["Arguments", "What", "Which part", "Output", "Container", "Advanced"]
SCRIPT = "import sys, time\nend = time.monotonic() + 0.2\nwhile time.monotonic() < end: pass\n"


def help_of(verb, monkeypatch, columns=80):
    monkeypatch.setenv("COLUMNS", str(columns))
    return verb_parser(verb).format_help()


def examples(text):
    return [line.strip() for line in re.search(r"^Examples:\n((?:  .+\n)+)", text, re.MULTILINE)[1].splitlines()]


@pytest.mark.parametrize("verb", VERBS)
def test_help_is_a_sentence_examples_and_groups_in_80_columns(monkeypatch, verb):
    text = help_of(verb, monkeypatch)
    usage, _, sentence, *_ = text.splitlines()
    assert usage.startswith(f"usage: wattribute {verb}")
    assert sentence == VERBS[verb]
    assert 2 <= len(examples(text)) <= 3
    assert all(len(line) <= 80 for line in text.splitlines()), [line for line in text.splitlines() if len(line) > 80]
    titles = [title for title in re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE) if title in GROUPS]
    assert titles == [title for title in GROUPS if title in titles]
    assert text.count("--help") == 1


def test_help_of_the_program_lists_every_verb_and_the_exit_codes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = program_parser().format_help()
    assert SENTENCE in " ".join(text.split())
    assert re.findall(r"^  (\w+) +\S", text[text.index("Verbs") : text.index("\nOptions")], re.MULTILINE) == [*VERBS]
    assert re.findall(r"^  (\d+)  ", text, re.MULTILINE) == ["0", "1", "2", "3", "4", "130"]
    assert all(len(line) <= 80 for line in text.splitlines())


def test_version_and_no_verb():
    def call(*words):
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    assert call("--version") == (0, f"wattribute {wattribute.__version__}\n", "")
    code, out, err = call()
    assert (code, err) == (2, "")
    assert out.startswith("usage: wattribute VERB")
    code, out, err = call("--verison")
    assert (code, out) == (2, "")
    assert "did you mean '--version'" in err
    assert call("atribute")[::2] == (
        2,
        "wattribute: unknown verb 'atribute'; did you mean 'attribute' or 'calibrate'? (see: wattribute --help)\n",
    )


def test_a_terminal_gets_colours_and_the_same_words(monkeypatch):
    plain = help_of("attribute", monkeypatch)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    coloured = verb_parser("attribute").format_help()
    assert "\x1b[" in coloured
    words = re.sub(r"\x1b\[[\d;]*m", "", coloured).replace("-o OUT, --output OUT", "-o, --output OUT")
    assert words.lower().split() == plain.lower().split()


def _calibration(where):
    """A GPU that draws 300 W for 5 s, then 60 W for 5 s: spans, what nvidia-smi logged every 100 ms, and a meter."""
    start = 1_700_000_000
    watts = [300 if i < 50 else 60 for i in range(100)]
    (where / "spans.csv").write_text(f"name,start_s,end_s\nload,{start},{start + 5}\nrest,{start + 5},{start + 10}\n")
    moments = [
        datetime.fromtimestamp(start + i / 10, timezone.utc).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3] for i in range(100)
    ]
    rows = [f"{at}, 0, {power}.00 W" for at, power in zip(moments, watts, strict=True)]
    (where / "smi.csv").write_text("\n".join(["timestamp, index, power.draw.instant [W]", *rows]) + "\n")
    meter = [f"{start + i / 100},{300 if i < 500 else 60}" for i in range(1000)]
    (where / "meter.csv").write_text("\n".join(["time_s,power_w", *meter]) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, warm):
    """A folder with everything that the examples name."""
    program = warm.programs / "wattribute"
    where = tmp_path_factory.mktemp("examples")
    subprocess.run([sys.executable, ROOT / "examples" / "make_trace.py", "trace"], cwd=where, check=True)
    for name in ("train.py", "old.py", "new.py"):
        (where / name).write_text(SCRIPT)

    def run(*words):
        command = [program, "run", "-q", "--meters", "model", *words, "--", "sleep", "0.3"]
        subprocess.run(command, cwd=where, check=True)

    for name, copies in {"a": ("run", "old", "old1", "old2"), "b": ("new", "new1", "new2")}.items():
        run("-o", f"{name}.watt")
        for copy in copies:
            shutil.copytree(where / f"{name}.watt", where / f"{copy}.watt")
    ranks = [[program, "run", "-q", "--meters", "model", "-o", f"rank{n}.watt", "--"] for n in (0, 1)]
    subprocess.run([*ranks[0], *ranks[1], "sleep", "0.3"], cwd=where, check=True)  # one inside the other: at one time
    _calibration(where)
    now = datetime.now(timezone.utc)
    hours = "".join(f"{(now + timedelta(hours=h)).isoformat()},{300 - h}\n" for h in range(-1, 60))
    (where / "forecast.csv").write_text("time,intensity\n" + hours)
    for mode in ("fast", "slow"):
        run("--experiment", "runs", "--label", f"mode={mode}")
    return where


@pytest.fixture
def place(folder, tmp_path):
    """The same for one example, which may write what it likes."""
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


SERVES = {"wattribute monitor", "wattribute view trace"}
APART = {"monitor", "view"}  # end with Ctrl-C: a process of their own


@pytest.mark.parametrize(
    "line",
    [
        line for verb in VERBS if verb != "demo" for line in examples(verb_parser(verb).format_help())
    ]  # a test of its own
    + examples(program_parser().format_help()),
)
def test_every_example_runs(place, line, verb, warm, monkeypatch, capfd):
    if line == "wattribute convert trace run.watt" or "run.watt --metric" in line:
        (place / "run.watt").unlink()  # it makes this one
    words = shlex.split(line)
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("PATH", f"{warm.programs}:{PROGRAM.parent}:{os.environ['PATH']}")
    if words[1] in APART:
        code, err = _apart(line)
    else:
        code = verb([name for word in words for name in (sorted(glob(word)) or [word])])
        err = capfd.readouterr().err
    if (words[1] == "images" or line.endswith("GB-13")) and code == 1:
        assert "wattribute: " in err  # no Docker, no Podman, no network here
        assert err.count("\n") == 1
        return
    assert code in ((0, 3) if "--fail-above" in line else (0,)), err
    assert "Traceback" not in err


def _apart(line):
    process = subprocess.Popen(["sh", "-c", f"exec {line}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if line in SERVES or "--no-browser" in line:  # until Ctrl-C
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    return process.returncode, err
