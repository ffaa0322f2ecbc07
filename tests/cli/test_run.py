"""``wattribute run`` as a stranger would use it, on a machine without sensors and under hostile conditions."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import wattribute
from tests.conftest import until
from tests.meters.test_rapl import DUMMY, power_pmu
from wattribute.archive import new_folder
from wattribute.errors import OutputError
from wattribute.journal.file import is_being_written

WATTRIBUTE = [sys.executable, "-m", "wattribute", "run"]
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user or to cut the network")


@pytest.fixture
def run(command, tmp_path):
    return partial(command, "run", cwd=tmp_path)


def process(folder, *arguments, **how):
    """The same in a process of its own."""
    how = {"cwd": folder, "capture_output": True, "text": True} | how
    return subprocess.run([*WATTRIBUTE, *map(str, arguments)], **how)


def start(folder, *arguments):
    return subprocess.Popen(
        [*WATTRIBUTE, *map(str, arguments)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip


def test_a_machine_without_sensors_is_told_an_estimate(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # a line per thing
    done = run("--", "sh", "-c", "echo out; exit 3")
    assert (done.returncode, done.stdout) == (3, "out\n")
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    for line in lines:
        if any(unit in line for unit in (" J", " mJ", " W", " mW", "CO2e")):
            assert "est" in line
    assert " 0 J" not in done.stderr
    (folder,) = tmp_path.glob("wattribute-*.watt")
    assert sorted(p.name for p in folder.iterdir() if p.suffix == ".json") == [
        "metrics.json",
        "summary.json",
        "wattribute.json",
    ]
    assert not (folder / "journal").exists()
    assert not (folder / "regions").exists()


def test_json_is_the_last_thing_on_stderr_and_the_recording_is_whole(run, tmp_path):
    done = run("-o", "x.watt", "--format", "json", "--zone", "FR", "--", "sh", "-c", "echo err >&2; kill -TERM $$")
    assert done.returncode == 143
    told = json.loads(done.stderr.splitlines()[-1])
    assert told == json.loads((tmp_path / "x.watt/summary.json").read_text())
    assert told["exit_code"] == 143
    assert told["carbon"]["zone"] == "FR"
    assert {"device", "kind", "energy_j", "low_j", "high_j", "mean_w", "peak_w", "estimated"} <= told["devices"][
        0
    ].keys()
    assert told["devices"][0]["kind"] == "cpu"
    recording = wattribute.read(tmp_path / "x.watt")
    assert recording.metadata["command"][0] == "sh"
    assert recording.metadata["versions"]["wattribute"] == wattribute.__version__
    assert recording.problems == ()
    rows = wattribute.attribute(recording, by=("device", "frame")).rows
    energies = {row["device"]: row["total_j"] for row in rows.to_dicts()}
    assert energies == {d["device"]: pytest.approx(d["energy_j"]) for d in told["devices"]}


def test_an_existing_folder_is_never_touched_and_nothing_runs(run, tmp_path):
    (tmp_path / "x.watt").mkdir()
    done = run("-o", "x.watt", "--", "touch", "ran")
    assert done.returncode == 1
    assert done.stderr.strip() == "wattribute: x.watt exists already; choose another name or remove it"
    assert list(tmp_path.iterdir()) == [tmp_path / "x.watt"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--meters", "nvlm", "--", "true"], "did you mean 'nvml'"),
        (["--meters", "craypm:/nonexistent", "--", "true"], "not a Cray node"),
        (["--scope", "proces", "--", "true"], "did you mean 'process'"),
        (["--interval", "0", "--", "true"], "0.001 to 3600"),
        (["--format", "jsn", "--", "true"], "did you mean 'json'"),
        (["--zone", "Frnace", "--", "true"], "zone"),
        (["--repeat", "0", "--", "true"], "at least 1"),
        (["--repeat", "2", "--cooldown", "nan", "--", "true"], "0 or more"),
        (["--fail-above", "5%", "--", "true"], "needs --compare"),
        (["-o", "-", "--", "true"], "standard output"),
    ],
)
def test_a_wrong_option_is_one_line_and_nothing_is_left_behind(command, tmp_path, arguments, words):
    done = command("run", *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_not_found_is_127_and_says_what(run, tmp_path):
    done = run("--", "no-such-[red]program")
    assert done.returncode == 127
    assert done.stderr == "wattribute: no-such-[red]program: command not found\n"
    assert list(tmp_path.iterdir()) == []  # nothing ran, nothing is kept
    done = run("--", "")
    assert (done.returncode, done.stderr) == (127, "wattribute: : command not found\n")


@root
def test_not_found_is_127_where_a_folder_of_the_path_is_closed_to_us(somebody, everybodys):
    (everybodys / "closed").mkdir(mode=0o700)
    somebody.environment["PATH"] = f"{everybodys}/closed:{os.environ['PATH']}"
    done = somebody("run", "--", "no-such-program")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (127, "wattribute: no-such-program: command not found")


def test_runs_in_the_same_second_find_names_of_their_own(tmp_path):
    command = [sys.executable, "-m", "wattribute", "run", "--quiet", "--", "true"]
    several = [subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) for _ in range(5)]
    assert [(one.communicate()[1], one.returncode) for one in several] == [(b"", 0)] * 5
    assert len(list(tmp_path.glob("wattribute-*.watt/summary.json"))) == 5


def test_a_recording_that_the_command_removes_is_told(run, tmp_path):
    done = run("-o", "x.watt", "--", "sh", "-c", "rm -rf x.watt; exit 4")
    assert done.returncode == 4
    assert done.stderr == ("wattribute: x.watt was removed while the command ran: nothing is left of its recording\n")


def test_what_follows_the_command_is_the_commands(run):
    done = run("--quiet", sys.executable, "-c", "import sys; print(sys.argv)", "--output", "y", "--", "-q")
    assert done.stdout == "['-c', '--output', 'y', '--', '-q']\n"
    assert done.stderr == ""


def test_hostile_names_are_shown_as_they_are(run, tmp_path):
    name = "a [bold]b[/bold] <script> \x1b[31m.watt"
    done = run("-o", name, "--", "sh", "-c", "# [red]x[/red] '\"; exit 0")
    assert done.returncode == 0
    assert wattribute.read(tmp_path / name).metadata["command"][2].startswith("# [red]x")
    assert "[bold]" in done.stderr


def test_arguments_that_are_not_utf_8_reach_the_command_and_cost_nothing(tmp_path):
    word = os.fsdecode(b"caf\xe9")
    done = process(tmp_path, "-o", "x.watt", "--", "sh", "-c", 'printf %s "$1"; exit 5', "sh", word, text=False)
    assert (done.returncode, done.stdout) == (5, b"caf\xe9")
    assert b"saved: x.watt" in done.stderr
    assert wattribute.read(tmp_path / "x.watt").metadata["command"][-1] == "caf?"
    assert json.loads((tmp_path / "x.watt" / "metrics.json").read_text())["command"][-1] == "caf?"


def test_a_folder_whose_name_is_not_utf_8_is_refused_before_anything_runs(run, tmp_path):
    name = os.fsdecode(b"caf\xe9.watt")
    done = run("-o", name, "--", "touch", "ran")
    said = "wattribute: caf?.watt: cannot be made: the name is not UTF-8; choose another\n"
    assert (done.returncode, done.stderr) == (1, said)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OutputError, match="not UTF-8"):
        new_folder(tmp_path / name)  # of convert


def test_a_command_longer_than_one_argument_may_be(run, tmp_path):
    words = [str(number) for number in range(40_000)]  # 229 kB; the kernel takes 128 kB per argument, 2 MB in all
    done = run("-o", "x.watt", "--", "sh", "-c", "echo $#", "sh", *words)
    assert (done.returncode, done.stdout) == (0, "40000\n"), done.stderr[:500]
    assert wattribute.read(tmp_path / "x.watt").metadata["command"][4:] == words


def test_repeats_give_a_table_with_an_interval(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")  # on a busy machine the numbers of two runs differ by many digits
    done = run("-o", "x.watt", "--repeat", 2, "--cooldown", 0.01, "--", "true")
    assert done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x-1.watt", "x-2.watt"]
    _, *rows, where = done.stderr.splitlines()
    assert [row.count("est.") for row in rows] == [3, 3, 1]  # no sensor here: energy, mean and CO2e; all of the means
    assert where == "± is the 95 % confidence interval of the mean; saved: x-1.watt, x-2.watt"


def test_two_hundred_short_lived_children(run):
    script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; exit 7"
    done = run("--scope", "process", "--format", "json", "--", "sh", "-c", script)
    assert done.returncode == 7
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["cpu_s"] > 0
    assert "share of busy CPU time" in told["share_rule"]
    assert 0 < told["devices"][0]["share"] <= 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command_and_the_results_are_written(tmp_path, number, code):
    process = start(tmp_path, "-o", "x.watt", "--", "sh", "-c", "echo up; exec sleep 60")
    assert process.stdout.readline() == "up\n"
    os.killpg(process.pid, number)
    _, told = process.communicate()
    assert process.returncode == code
    assert "estimated" in told
    assert wattribute.read(tmp_path / "x.watt").metadata["run"]["exit_code"] == code


def test_a_signal_between_two_repeats_is_not_lost(tmp_path):
    """Each command leaves a process behind that interrupts wattribute, wherever it is by then."""
    command = "echo x >> ran; (sleep 0.1; kill -INT $PPID 2> /dev/null) < /dev/null > /dev/null 2>&1 &"
    done = process(tmp_path, "--no-save", "--repeat", "50", "--", "sh", "-c", command)
    assert done.returncode == 130
    assert len((tmp_path / "ran").read_text().split()) < 50


def test_what_was_sampled_survives_the_killing_of_wattribute_itself(tmp_path):
    process = start(tmp_path, "-o", "x.watt", "--", "sh", "-c", "echo $$; exec sleep 60")
    child = int(process.stdout.readline())
    journal = tmp_path / "x.watt/journal"
    begin = journal.stat().st_size
    until(lambda: journal.stat().st_size > begin)  # it is flushed every second
    process.kill()
    process.wait()
    os.kill(child, signal.SIGTERM)
    process.communicate()
    until(lambda: b"abandoned" in journal.read_bytes() and not is_being_written(tmp_path / "x.watt"))
    recording = wattribute.read(tmp_path / "x.watt")
    assert len(recording.signals[0]) > 1
    assert "recovered" in recording.problems[-1].message
    assert wattribute.attribute(recording, by=("device",)).rows["total_j"].sum() > 0


def test_a_sampler_that_is_killed_leaves_what_it_had_flushed(tmp_path):
    code = (
        "import os, sys, time; from wattribute.recorders.accounting import descendants\n"
        "begin = os.stat('x.watt/journal').st_size\n"
        "while os.stat('x.watt/journal').st_size == begin: time.sleep(0.02)\n"  # it is flushed every second
        "family = set(descendants(os.getppid())) - {os.getpid(), os.getppid()}\n"
        "[os.kill(p, 9) for p in family if b'recorders.sampler' in open(f'/proc/{p}/cmdline', 'rb').read()]\n"
        "time.sleep(0.2); sys.exit(4)"
    )
    done = process(tmp_path, "-o", "x.watt", "--format", "json", "--", sys.executable, "-c", code)
    assert done.returncode == 4
    trouble, told = done.stderr.splitlines()
    assert "the sampler ended early" in trouble
    assert json.loads(told)["exit_code"] == 4
    assert json.loads(told)["energy_j"] > 0
    assert 0 < json.loads(told)["devices"][0]["coverage"] < 1


def test_a_full_disk_costs_the_recording_but_not_the_answer(tmp_path):
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    done = process(
        tmp_path, "-o", "x.watt", "--format", "json", "--", "sh", "-c", "sleep 1.2; exit 5", preexec_fn=limit
    )
    assert done.returncode == 5
    *trouble, told = done.stderr.splitlines()
    assert json.loads(told)["energy_j"] > 0
    assert json.loads(told)["duration_s"] > 1
    assert "File too large" in trouble[0]
    assert "Traceback" not in done.stderr


def test_where_files_may_not_grow_no_module_is_left_compiled_to_the_half(tmp_path):
    root = Path(wattribute.__file__).parents[1]
    shutil.copytree(root / "wattribute", tmp_path / "wattribute", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512)); from wattribute.cli import main"
    )
    code += "; sys.argv[1:] = ['run', '-q', '-o', 'x.watt', '--', 'true']; main()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True)
    assert not [path for path in (tmp_path / "wattribute/meters").rglob("*.pyc") if path.stat().st_size <= 512]


@root
def test_a_small_disk_that_fills_up(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", disk], capture_output=True).returncode:
        pytest.skip("mounting is not permitted here")
    try:
        done = process(tmp_path, "-o", disk / "x.watt", "--format", "json", "--", "sh", "-c", "exit 5")
        assert done.returncode == 5
        assert "No space left" in done.stderr
        assert json.loads(done.stderr.splitlines()[-1])["energy_j"] > 0
    finally:
        subprocess.run(["umount", disk], check=True)


def _usable(python, environment):
    try:
        done = subprocess.run([python, "-c", "import wattribute, numpy"], user=65534, env=environment, cwd="/")
    except OSError:
        return False
    return done.returncode == 0


@pytest.fixture
def somebody(everybodys):
    """``somebody(*arguments)`` runs wattribute as another user, without a home, in a folder that cannot be written;
    ``somebody.places`` is where temporary files may go."""
    places = everybodys / "tmp"
    places.mkdir()
    places.chmod(0o777)
    environment = {**os.environ, "HOME": "/nonexistent", "TMPDIR": str(places), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = ":".join(filter(None, sys.path))
    usable = (python for python in (sys.executable, "/usr/bin/python3") if _usable(python, environment))
    python = next(usable, None) or pytest.skip("no interpreter here that another user may run")

    def start(*arguments):
        command = [python, "-m", "wattribute", *map(str, arguments)]
        return subprocess.run(command, user=65534, env=environment, cwd="/", capture_output=True, text=True)

    start.places, start.environment = places, environment
    return start


@root
def test_another_user_with_nothing_writable_and_no_home(somebody):
    done = somebody("run", "--", "sh", "-c", "exit 9")
    assert done.returncode == 9
    assert done.stderr.startswith("wattribute: this folder cannot be written: the recording goes to")
    assert len(list(somebody.places.glob("*.watt/wattribute.json"))) == 1, done.stderr
    assert "Traceback" not in done.stderr


@root
def test_another_user_asks_the_doctor(somebody):
    done = somebody("doctor", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["meters"]


@root
def test_another_user_profiles(somebody, everybodys):
    (everybodys / "p.py").write_text("import os, time\ntime.sleep(0.2)\nopen(os.environ['TMPDIR'] + '/ran', 'w')\n")
    refused = somebody("profile", "-o", everybodys / "x.html", everybodys / "p.py")
    assert refused.returncode == 1
    assert refused.stderr.endswith("x.html: cannot be written; choose another name or folder\n")
    assert not (somebody.places / "ran").exists()  # said before the program ran, not after hours
    done = somebody("profile", "-o", somebody.places / "x.csv", everybodys / "p.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert (somebody.places / "ran").exists()
    assert "p.py" in (somebody.places / "x.csv").read_text()


@root
def test_without_a_network(tmp_path):
    command = ["unshare", "--net", *WATTRIBUTE, "--zone", "GB-16", "--intensity", "gb", "--", "sh", "-c", "exit 2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if "unshare" in done.stderr:
        pytest.skip("namespaces are not permitted here")
    assert "Traceback" not in done.stderr
    assert done.returncode in (1, 2)
    plain = subprocess.run(
        ["unshare", "--net", *WATTRIBUTE, "--zone", "FR", "--", "sh", "-c", "exit 2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert plain.returncode == 2
    assert "France" in plain.stderr


def test_a_dead_psys_is_reported_dead(run, tmp_path):
    sysfs = power_pmu(tmp_path / "sys", {"energy-psys": DUMMY})
    done = run("--meters", f"rapl:{sysfs}", "--meters", "model", "--", "sleep", "0.3")
    if "cannot be used" in done.stderr:
        pytest.skip("perf_event_open is not permitted here")
    assert "psys" in done.stderr
    assert "dead, not 0 J" in done.stderr
    assert "estimated" in done.stderr


def test_a_dead_psys_in_a_run_too_short_to_know_is_no_zero_anywhere(command, run, tmp_path, monkeypatch):
    sysfs = power_pmu(tmp_path / "sys", {"energy-psys": DUMMY})
    monkeypatch.setenv("WATTRIBUTE_METERS", f"rapl:{sysfs},model")
    done = run("-o", "x.watt", "--", "true")
    assert done.returncode == 0
    if "psys" not in done.stderr:
        pytest.skip("perf_event_open is not permitted here")
    assert "psys: below resolution" in done.stderr or "dead, not 0 J" in done.stderr
    answer = command("attribute", "x.watt")
    assert answer.returncode == 0
    told = [line for line in (answer.stdout + answer.stderr).splitlines() if "psys" in line]
    assert told
    assert all("did not move" in line or "not 0 J" in line for line in told)


def test_readings_can_be_replayed(run, tmp_path):
    rows = "".join(f"{i / 100},{3 * i},{1.0}\n" for i in range(1000))
    (tmp_path / "r.csv").write_text("time_s,GPU 0:energy_j,dram 0:power_w\n" + rows)
    done = run("--meters", "replay:r.csv", "--interval", 0.02, "--format", "json", "--", "sleep", "1")
    told = json.loads(done.stderr.splitlines()[-1])
    devices = {d["device"]: d for d in told["devices"]}
    assert devices["GPU 0"]["energy_j"] == pytest.approx(300 * told["duration_s"], rel=0.05)
    assert devices["dram 0"]["energy_j"] == pytest.approx(told["duration_s"], rel=0.01)
    assert not told["estimated"]


def test_regions_of_the_program_take_the_place_of_the_commands_span(run, tmp_path):
    code = "import time, wattribute\nwith wattribute.region('train'): time.sleep(0.2)"
    done = run("-o", "x.watt", "--quiet", "--", sys.executable, "-c", code)
    assert (done.returncode, done.stderr) == (0, "")
    recording = wattribute.read(tmp_path / "x.watt")
    assert "train" in recording.frames.name
    attribution = wattribute.attribute(recording, by=("frame",))
    (joules,) = (row["total_j"] for row in attribution.rows.to_dicts() if row["frame"] == "train")
    assert joules > 0


def test_a_working_folder_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"rmdir {gone}; exec {' '.join(WATTRIBUTE)} -o {tmp_path}/x.watt --quiet -- sh -c 'exit 6'"
    done = subprocess.run(["sh", "-c", script], cwd=gone, capture_output=True, text=True)
    assert done.returncode == 6
    assert (tmp_path / "x.watt/summary.json").exists()


def test_nothing_of_the_run_is_left_behind():
    assert not list(Path.cwd().glob("wattribute-*.watt"))


def test_counts_of_a_program_and_of_its_files_divide_its_joules(run, tmp_path):
    (tmp_path / "work.py").write_text(
        "import json, wattribute\n"
        "with wattribute.region('step'):\n"
        "    wattribute.count('tokens', 7)\n"
        "json.dump({'n': 4}, open('out.json', 'w'))\n"
    )
    done = run("-o", "x.watt", "--count", "requests=out.json:n", "--", sys.executable, "work.py")
    assert done.returncode == 0
    shown = " ".join(done.stderr.split())  # long lines are folded
    assert "per tokens: " in shown
    assert "(7 counted)" in shown
    assert "(4 counted)" in shown
    told = json.loads((tmp_path / "x.watt" / "summary.json").read_text())
    assert told["counts"] == {"tokens": 7, "requests": 4}
    assert told["per"]["requests"]["energy_j"] == pytest.approx(told["energy_j"] / 4)
    found = wattribute.attribute(tmp_path / "x.watt", by="frame", per="tokens")
    assert found.rows.select("frame", "count").rows() == [("step", 7)]
    assert wattribute.attribute(tmp_path / "x.watt", by="frame", per="requests").count == 4
    done = run("-o", "y.watt", "--per", "token", "--", sys.executable, "work.py")
    assert "the program counted no token (it counted tokens)" in done.stderr
    done = run("--count", "requests=missing.json:n", "-o", "z.watt", "--", "true")
    assert done.returncode == 0
    assert "no count of requests: missing.json" in done.stderr


def test_options_of_an_earlier_tool_are_answered_with_ours(run, tmp_path):
    done = run("--benchmark_image", "dummy")
    assert done.returncode == 2
    assert "--benchmark_image is --image here" in done.stderr
    done = run("--zone", "", "--", "touch", "ran")
    assert (done.returncode, (tmp_path / "ran").exists()) == (2, False)
    assert "France" in done.stdout
    assert "--zone is empty" in done.stderr


def test_no_save_leaves_nothing_behind(run, tmp_path):
    done = run("--no-save", "--", "true")
    assert done.returncode == 0
    assert "estimated in" in done.stderr
    assert "saved:" not in done.stderr
    assert list(tmp_path.iterdir()) == []
    done = run("--no-save", "-o", "x.watt", "--", "true")
    assert "--no-save keeps nothing" in done.stderr


def test_a_rank_that_reads_no_meter_says_so(command, tmp_path):
    (tmp_path / "tmp").mkdir()  # what the ranks of a node share lies there
    ranks = {"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "TMPDIR": str(tmp_path / "tmp")}
    done = process(tmp_path, "-o", "x.watt", "--", "true", env=os.environ | ranks)
    assert done.stderr.startswith("no energy: nothing was metered here in ")
    said = " ".join(done.stderr.split())
    assert "! rank 1 reads no meter: another rank of its node does; join them with: wattribute merge" in said
    shown = command("summary", *tmp_path.glob("*.watt"), "--format", "json")
    assert "a rank that reads no meter" in shown.stderr


def test_a_command_as_one_text_is_refused():
    with pytest.raises(ValueError, match=r"run\(\['sleep', '0.1'\]\)"):
        wattribute.run("sleep 0.1")
