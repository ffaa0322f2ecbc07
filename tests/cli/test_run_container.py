"""``wattribute run --image`` against a real Podman."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import wattribute
from tests.conftest import ROOT
from tests.meters.fakes import FakeNvml, Wave

RUN = [sys.executable, "-m", "wattribute", "run", "--image", "tiny", "--network", "none", "-o", "x.watt"]


@pytest.fixture
def start(podman, tmp_path):
    def start(script, *options, environment=None, **more):
        return subprocess.Popen(
            [*RUN, "--no-plot", *map(str, options), "--", "sh", "-c", script],
            cwd=tmp_path, env={**podman.environment, **(environment or {})}, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, **more,
        )  # fmt: skip

    return start


@pytest.fixture
def run(start):
    def run(script, *options, **more):
        process = start(script, *options, **more)
        process.out, process.err = process.communicate()
        return process

    return run


def test_streams_exit_code_results_and_score(podman, run, tmp_path):
    script = r"""
        echo out; echo err >&2; printf '10%%\r50%%\r100%%\n'
        mkdir -p /res/deep; echo '{"runs": [{"time": 2.5}]}' > /res/m.json; echo x > /res/deep/x.txt
        echo "$COLOUR"; cat /data/given; exit 7
    """
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "given").write_text("mounted\n")
    options = ["--results", "/res", "--score", "m.json:runs.0.time", "--env", "COLOUR=blue", "--volume", "./data:/data"]
    done = run(script, *options, "--plot", "--format", "json")
    assert done.returncode == 7
    assert done.out == "out\n100%\nblue\nmounted\n"
    said, summary = done.err.splitlines()
    assert said == "err"
    assert json.loads(summary)["score"] == 2.5
    assert json.loads(summary)["exit_code"] == 7
    recording = wattribute.read(tmp_path / "x.watt")
    assert recording.metadata["score"] == {"value": 2.5, "file": "m.json", "key": "runs.0.time"}
    assert sorted(recording.metadata["results"]) == ["results/deep/x.txt", "results/m.json"]
    assert (tmp_path / "x.watt" / "results" / "deep" / "x.txt").read_text() == "x\n"
    assert recording.metadata["container"]["engine"].startswith("Podman ")
    assert sorted((tmp_path / "x.watt" / "container.log").read_text().split()) == [
        "100%",
        "blue",
        "err",
        "mounted",
        "out",
    ]
    assert (tmp_path / "x.watt" / "metrics_plot.png").read_bytes().startswith(b"\x89PNG")  # of containers, by default
    assert podman.containers() == []


def test_output_comes_while_it_runs_and_is_kept_without_logs(start, run, tmp_path):
    (tmp_path / "data").mkdir()
    process = start("echo early; while [ ! -e /data/go ]; do sleep 0.1; done; echo late", "--volume", "./data:/data")
    assert process.stdout.readline() == "early\n"
    (tmp_path / "data" / "go").touch()
    assert process.communicate()[0] == "late\n"
    done = run("echo unseen", "--no-logs", "-o", "y.watt", "-q")
    assert (done.out, done.err) == ("", "")
    assert (tmp_path / "y.watt" / "container.log").read_text() == "unseen\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_container_and_results_are_written(podman, start, tmp_path, number):
    process = start("trap 'exit 3' INT TERM; echo ready; while true; do sleep 0.1; done", start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, number)
    _, err = process.communicate()
    assert process.returncode == 3, err
    assert podman.containers() == []
    assert wattribute.read(tmp_path / "x.watt").metadata["run"]["exit_code"] == 3


def test_a_second_signal_kills_what_would_not_end(podman, start):
    process = start("trap '' INT; echo ready; sleep 6000 & wait; sleep 6000", start_new_session=True)
    assert process.stdout.readline() == "ready\n"
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)
    process.communicate()
    assert process.returncode == 137
    assert podman.containers() == []


def test_a_container_can_be_kept(podman, run, tmp_path):
    assert run("true", "--keep", "-q").returncode == 0
    (name,) = podman.containers()
    labels = json.loads(podman("inspect", name))[0]["Config"]["Labels"]
    assert labels["wattribute.recording"] == str(tmp_path / "x.watt")
    podman("rm", name)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--image", "tinny"], 1, "unknown image 'tinny'; did you mean 'tiny'? (--pull asks a registry"),
        (["--volume", "/nowhere:/x"], 1, "--volume /nowhere:/x: /nowhere does not exist here"),
        (["--score", "m.json:x"], 1, "from its root, or its folder with --results"),
        (["--profile", "sample"], 1, "no Python inside containers"),
        (["--compare"], 1, "--compare is for commands"),
        (["--score", "/none.json:x"], 0, "/none.json could not be copied out of the container"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(podman, run, tmp_path, options, code, said):
    done = run("true", *options, "-q")
    assert done.returncode == code
    assert said in done.err
    assert "Traceback" not in done.err
    assert code == 0 or len(done.err.splitlines()) == 1
    assert (tmp_path / "x.watt").exists() == (code == 0)
    assert podman.containers() == []


def test_a_command_that_is_not_in_the_image(podman, tmp_path):
    done = subprocess.run(
        [*RUN, "-q", "--", "nope"], cwd=tmp_path, env=podman.environment, capture_output=True, text=True
    )
    assert done.returncode == 127
    assert "tiny: " in done.stderr
    assert podman.containers() == []


def test_no_daemon_is_one_clear_line(tmp_path):
    environment = {**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = subprocess.run([*RUN, "--", "true"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "wattribute: no container daemon answers (unix:///nowhere/docker.sock does not listen); start one: "
        "sudo systemctl start docker, or: systemctl --user start podman.socket"
    ]


def test_cpu_time_is_the_containers(run):
    script = "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done"
    busy = json.loads(run(script, "--scope", "process", "--format", "json").err)
    still = json.loads(run("sleep 0.5", "--scope", "process", "--format", "json", "-o", "y.watt").err)
    assert 0.1 < busy["cpu_s"] <= busy["duration_s"] * 1.1
    assert still["cpu_s"] < busy["cpu_s"] / 2  # making a container takes some, too
    assert busy["share_rule"].startswith("by share of busy CPU time")
    assert busy["max_rss_bytes"] > 0


def test_gpu_time_is_that_of_the_processes_in_the_container(podman, start, tmp_path):
    fake = FakeNvml(tmp_path, [Wave(200)])
    options = ["--scope", "process", "--format", "json"]
    script = "sleep 60 & echo ready; wait"
    process = start(script, *options, environment=podman.environment | fake.variables())
    assert process.stdout.readline() == "ready\n"
    (name,) = podman.containers()
    *_, child = podman("top", name, "hpid").split()  # not the container's first process, but one that it started
    fake.write(quirks=[f"process 0 {child} 60", "process 0 999999 20"])
    time.sleep(2.5)  # the sampler asks every second
    podman("kill", name)
    summary = json.loads(process.communicate()[1].splitlines()[-1])
    assert process.returncode == 137
    (gpu,) = [device for device in summary["devices"] if device["kind"] == "gpu"]
    assert gpu["share"] == pytest.approx(0.75)  # 60 of 60 + 20


def test_images_are_listed(podman):
    command = [sys.executable, "-m", "wattribute", "images"]
    told = subprocess.run(command, env=podman.environment, capture_output=True, text=True, check=True).stdout
    head, *rows = (line.split() for line in told.splitlines())
    assert head == ["image", "id", "size", "created"]
    assert "tiny" in [row[0] for row in rows]
    listed = subprocess.run([*command, "--format", "json"], env=podman.environment, capture_output=True, check=True)
    sizes = {image["name"]: image["size_bytes"] for image in json.loads(listed.stdout)}
    assert sizes["localhost/tiny:latest"] > 500_000


@pytest.mark.realtime
def test_five_seconds_under_a_gpu_of_known_power(podman, run, tmp_path):
    fake = FakeNvml(tmp_path, [Wave(250, 150, 0.9, 0.5)])
    done = run("sleep 5", "--format", "json", environment=podman.environment | fake.variables())
    assert done.returncode == 0, done.err
    summary = json.loads(done.err.splitlines()[-1])
    recording = wattribute.read(tmp_path / "x.watt")
    told, origin = recording.metadata["run"], recording.clock.offset_ticks
    truth = fake.energy_j(0, origin + told["start_ticks"], origin + told["end_ticks"])
    (gpu,) = [device for device in summary["devices"] if device["kind"] == "gpu"]
    assert gpu["energy_j"] == pytest.approx(truth, rel=0.01)
    assert 4.9 < summary["duration_s"] < 10  # on a busy machine a daemon is late


def test_our_benchmark_images_build_without_a_registry_and_run(podman, tmp_path):
    place = ROOT / "benchmarks" / "containers"
    base = subprocess.run([sys.executable, place / "rootfs.py"], capture_output=True, check=True).stdout
    podman("import", "-", "base:latest", data=base)
    built = subprocess.run(
        ["sh", place / "build.sh", "tiny", "base"], env={**podman.environment, "ENGINE": "podman"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    lengths = {
        "dummy": "SECONDS_LONG=0.2", "synthetic-regression": "STEPS=5", "digits-training": "EPOCHS=3",
        "dense-solve": "SIZE=300", "two-gpus": "SECONDS_LONG=0.2",
    }  # fmt: skip
    for image, length in lengths.items():
        command = [*RUN, "--image", image, "-o", f"{image}.watt", "--env", length, "--no-plot", "--no-logs", "-q"]
        command += ["--results", "/results", "--score", "metrics.json:time"]
        done = subprocess.run(command, cwd=tmp_path, env=podman.environment, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        metrics = json.loads((tmp_path / f"{image}.watt" / "metrics.json").read_text())
        assert metrics["benchmark"] == image
        assert metrics["score"] > 0
    results = {name: json.loads((tmp_path / f"{name}.watt/results/metrics.json").read_text()) for name in lengths}
    assert results["digits-training"]["accuracy"] > 0.5  # of ten kinds: it learns
    assert results["dense-solve"]["scaled_residual"] < 16  # as HPL asks
    found = results["two-gpus"]
    assert [worker["library"] for worker in found["workers"]] == ["numpy", "numpy"]  # no GPU was given
    assert sorted(podman.containers()) == []


def test_shared_memory_ipc_and_limits_reach_the_container(run):
    mounts = "while read -r _ at _ options _; do [ $at = /dev/shm ] && echo $options; done < /proc/mounts; ulimit -n"
    limits = ["--ulimit", "nofile=200:300", "--ulimit", "nproc=4096:4096"]  # nproc: Podman's own may be forbidden here
    done = run(mounts, "--shm-size", "8m", *limits, "--gpus", "none")
    assert done.returncode == 0, done.err
    options, files = done.out.split()
    assert "size=8192k" in options.split(",")
    assert files == "200"
    tried = {how: run("ls -l /proc/self/ns/ipc", "--ipc", how, "-o", f"{how}.watt") for how in ("host", "private")}
    assert [done.err for done in tried.values() if done.returncode] == []
    namespaces = {how: done.out.split()[-1] for how, done in tried.items()}
    assert namespaces["host"] == os.readlink("/proc/self/ns/ipc") != namespaces["private"]


@pytest.mark.parametrize("wrong", [("--shm-size", "much"), ("--ulimit", "nofile"), ("--gpus", "a b")])
def test_wrong_limits_are_one_line(run, wrong):
    done = run("true", *wrong)
    assert done.returncode == 1
    assert done.err.startswith(f"wattribute: {' '.join(wrong)}: write ")
    assert done.err.count("\n") == 1
