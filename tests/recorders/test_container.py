"""What a container is given, what is understood of the daemon, and its files."""

import io
import sys
import tarfile
import time
from pathlib import Path

import pytest

from wattribute.errors import NotFoundError, OptionError, UnsupportedError
from wattribute.recorders import container, daemon
from wattribute.recorders.container import Container, arguments
from wattribute.recorders.copying import unpack
from wattribute.recorders.daemon import Daemon

pytest.importorskip("docker", reason="the docker extra is not installed")

DOCKER = Daemon(None, "unix:///d.sock", "Docker", (27, 0, 1))
PODMAN = Daemon(None, "unix:///p.sock", "Podman", (5, 4, 0))


@pytest.fixture
def nvidia(tmp_path):
    (tmp_path / "nvidiactl").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"volumes": ["data"]}, "write HERE:THERE"),
        ({"volumes": [":/x"]}, "write HERE:THERE"),
        ({"volumes": ["./nowhere:/x"]}, "does not exist here"),
        ({"environment": ["=x"]}, "write NAME=VALUE"),
        ({"gpus": "; rm"}, "write all, none, or numbers"),
        ({"gpus": "0,"}, "write all, none, or numbers"),
    ],
)
def test_mistakes_are_told(given, said):
    with pytest.raises(OptionError, match=said):
        arguments(Container("x", **given), DOCKER)


def test_volumes_and_variables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OURS", "a=b")
    monkeypatch.delenv("NOBODYS", raising=False)
    (tmp_path / "d").mkdir()
    spec = Container("x", volumes=["./d:/d:ro", "named:/n"], environment=["K=V=W", "OURS", "NOBODYS"], network="none")
    assert arguments(spec, DOCKER) == {
        "volumes": [f"{tmp_path}/d:/d:ro", "named:/n"],
        "environment": ["K=V=W", "OURS=a=b"],
        "network_mode": "none",
    }


def test_gpus_of_docker_are_nvidias_requests(nvidia):
    (every,) = arguments(Container("x", gpus="all"), DOCKER, nvidia)["device_requests"]
    assert (every["Count"], every["Capabilities"]) == (-1, [["gpu"]])
    (two,) = arguments(Container("x", gpus="0,1"), DOCKER, nvidia)["device_requests"]
    assert (two["DeviceIDs"], two["Capabilities"]) == (["0", "1"], [["gpu"]])


def test_gpus_of_podman_are_cdi_devices(nvidia):
    (two,) = arguments(Container("x", gpus="0,1"), PODMAN, nvidia)["device_requests"]
    assert (two["Driver"], two["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=0", "nvidia.com/gpu=1"])
    (every,) = arguments(Container("x", gpus="all"), PODMAN, nvidia)["device_requests"]
    assert every["DeviceIDs"] == ["nvidia.com/gpu=all"]
    with pytest.raises(UnsupportedError, match=r"Podman 4\.9\.3 gives containers no GPUs"):  # it would ignore them
        arguments(Container("x", gpus="all"), Daemon(None, "", "Podman", (4, 9, 3)), nvidia)


def test_gpus_of_amd_are_device_files(tmp_path):
    (tmp_path / "kfd").touch()
    made = arguments(Container("x", gpus="1", environment=["K=V"]), PODMAN, tmp_path)
    assert made["devices"] == [f"{tmp_path}/kfd:/dev/kfd:rwm", f"{tmp_path}/dri:/dev/dri:rwm"]
    assert made["environment"] == ["K=V", "ROCR_VISIBLE_DEVICES=1"]


def test_memory_ipc_and_limits():
    made = arguments(Container("x", shm_size="8g", ipc="host", ulimits=["memlock=-1", "nofile=1024:4096"]), DOCKER)
    assert (made["shm_size"], made["ipc_mode"]) == ("8g", "host")
    assert [(one["Name"], one["Soft"], one["Hard"]) for one in made["ulimits"]] == [
        ("memlock", -1, -1),
        ("nofile", 1024, 4096),
    ]
    for wrong in ({"shm_size": "much"}, {"ulimits": ["memlock"]}):
        with pytest.raises(OptionError, match="write"):
            arguments(Container("x", **wrong), DOCKER)


def test_all_gpus_by_default_where_the_engine_can_give_them(nvidia, tmp_path_factory):
    given, said = container.default_gpus(Container("x"), DOCKER, nvidia)
    assert given["device_requests"][0]["Count"] == -1
    assert "gets all GPUs" in said
    old = Daemon(None, "", "Podman", (4, 9, 3))
    given, said = container.default_gpus(Container("x"), old, nvidia)
    assert given == {}
    assert "gets no GPUs: Podman 4.9.3" in said
    assert container.default_gpus(Container("x", gpus="none"), DOCKER, nvidia) == ({}, "")
    assert container.default_gpus(Container("x"), DOCKER, tmp_path_factory.mktemp("none")) == ({}, "")


# ------------------------------------------------------------------------------------------------------- the daemon


def test_where_daemons_are_looked_for(tmp_path):
    for name in ("var/run/docker.sock", "run/podman/podman.sock", "run/user/7/podman/podman.sock"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    environment = {"XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/x"}
    expected = ["var/run/docker.sock", "run/user/7/podman/podman.sock", "run/podman/podman.sock"]
    assert daemon.addresses(environment, tmp_path) == [f"unix://{tmp_path}/{name}" for name in expected]
    named = environment | {"CONTAINER_HOST": "unix:///c", "DOCKER_HOST": "unix:///d"}
    assert daemon.addresses(named, tmp_path) == ["unix:///d"]


def test_no_daemon_and_a_daemon_elsewhere(tmp_path):
    with pytest.raises(NotFoundError, match=r"no container daemon here .*start one: sudo systemctl start docker"):
        daemon.connect({}, tmp_path)
    with pytest.raises(UnsupportedError, match="on another machine"):
        daemon.connect({"DOCKER_HOST": "ssh://me@far"}, tmp_path)
    with pytest.raises(UnsupportedError, match="on another machine"):
        daemon.connect({"DOCKER_HOST": "tcp://10.0.0.1:2375"}, tmp_path)


def test_without_the_sdk_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "docker", None)
    with pytest.raises(ImportError, match=r"pip install 'wattribute\[docker\]'"):
        daemon.connect({})


def test_names_as_people_type_them():
    assert daemon.shorter("localhost/dummy:latest") == "dummy"
    assert daemon.shorter("docker.io/library/python:3.12") == "python:3.12"


# --------------------------------------------------------------------------------------------------------- its times


def test_a_daemons_time_on_our_clock():
    now_ns, epoch_s = time.monotonic_ns(), time.time()
    text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(epoch_s - 10)) + f".{int(epoch_s % 1 * 1e9):09d}Z"
    found = container._moment(text, 0, now_ns)
    assert found == pytest.approx(now_ns - 10e9, abs=5e6)
    assert container._moment(text, now_ns - 1, now_ns) == now_ns - 1  # never before what we know
    assert container._moment("0001-01-01T00:00:00Z", 5, 9, otherwise_ns=9) == 9
    assert container._moment(None, 5, 9) == 5
    east = "2024-09-04T16:27:25.5+02:00"
    assert container._moment(east, -(10**20), 10**20) == pytest.approx(
        container._moment("2024-09-04T14:27:25.5Z", -(10**20), 10**20), abs=1e6
    )


# --------------------------------------------------------------------------------------------------------- its files


def packed(**members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            if content is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(content, Path):
                info.type, info.linkname = tarfile.SYMTYPE, str(content)
            else:
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if isinstance(content, bytes) else None)
    data = made.getvalue()
    return [data[i : i + 700] for i in range(0, len(data), 700)]


def test_files_are_unpacked_without_the_folder_around_them(tmp_path):
    trouble = []
    written = unpack(packed(res=None, res__a=b"1", res__deep__b=b"2" * 5000), tmp_path / "t", trouble)
    assert written == [tmp_path / "t/a", tmp_path / "t/deep/b"]
    assert (tmp_path / "t/deep/b").read_bytes() == b"2" * 5000
    assert unpack(packed(one=b"x"), tmp_path / "u", trouble) == [tmp_path / "u/one"]
    assert trouble == []


def test_what_would_lead_out_is_left_out(tmp_path):
    trouble = []
    hostile = {"res__..__..__evil": b"1", "__etc__evil": b"2", "res__link": Path("/etc"), "res__ok": b"3"}
    assert unpack(packed(**hostile), tmp_path / "t", trouble) == [tmp_path / "t/etc/evil", tmp_path / "t/ok"]
    assert not (tmp_path.parent / "evil").exists()
    assert trouble == [f"{tmp_path / 't'}: 2 links or special files of the container were left out"]


def test_a_broken_archive_keeps_what_came(tmp_path):
    trouble = []
    whole = b"".join(packed(res__a=b"1" * 2000, res__b=b"2" * 9000))
    assert unpack([whole[:5000]], tmp_path / "t", trouble)[0] == tmp_path / "t/a"
    assert "broken archive" in trouble[0]
