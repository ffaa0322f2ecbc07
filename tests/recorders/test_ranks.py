"""Who samples: from the environments that launchers really set."""

import os
import subprocess
import sys
import time

import pytest

from wattribute.journal.ranks import Rank, rank_of
from wattribute.recorders import ranks

OPENMPI = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
SLURM = {"SLURM_PROCID": "5", "SLURM_NTASKS": "16", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "4242"}
MPICH = {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "2"}


@pytest.mark.parametrize(
    ("environment", "rank", "sampler"),
    [
        (OPENMPI, Rank(3, 8, 1), False),
        (OPENMPI | {"OMPI_COMM_WORLD_LOCAL_RANK": "0"}, Rank(3, 8, 0), True),
        (SLURM, Rank(5, 16, 0, "4242"), True),
        (SLURM | OPENMPI, Rank(3, 8, 1, "4242"), False),  # mpirun inside an allocation: mpirun's word counts
        (MPICH, Rank(2, 4, 2), False),
        ({}, None, True),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_LOCALID": "0"}, None, True),  # a batch script
        ({"OMPI_COMM_WORLD_RANK": "zero"}, None, True),
    ],
)
def test_ranks(environment, rank, sampler):
    assert rank_of(environment) == rank
    assert ranks.samples(rank) is sampler


def test_without_a_local_rank_the_first_to_come_samples(tmp_path):
    rank = Rank(1, 4, job="job/1")
    assert ranks.samples(rank, str(tmp_path))
    code = f"from wattribute.recorders.ranks import *; print(samples(Rank(2, 4, job='job/1'), {str(tmp_path)!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
    assert ranks.samples(Rank(0, 4, job="another"), str(tmp_path))


def test_a_lock_of_an_earlier_job_counts_for_nothing(tmp_path):
    code = f"from wattribute.recorders import ranks; print(ranks.samples(ranks.Rank(2, 4, job='j'), {str(tmp_path)!r}))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"
    assert ranks.samples(Rank(0, 4, job="j"), str(tmp_path))  # its owner is gone
    lock = next(tmp_path.glob("*.sampler"))
    assert lock.read_text() == str(os.getpid())


def test_the_sampler_waits_until_the_others_have_left(tmp_path):
    code = (
        "import sys, time; from wattribute.recorders.ranks import Rank, attendance\n"
        f"with attendance(Rank(1, 2, 1, 'j'), False, {str(tmp_path)!r}):\n"
        "    print('here', flush=True); time.sleep(0.4)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"here\n"
        begin = time.monotonic()
        with ranks.attendance(Rank(0, 2, 0, "j"), True, str(tmp_path)) as others_done:
            others_done()
        assert 0.2 < time.monotonic() - begin < 5
    with ranks.attendance(Rank(0, 2, 0, "j"), True, str(tmp_path)) as others_done:
        others_done()  # nobody is left


def test_alone_there_is_nobody_to_wait_for(tmp_path):
    for rank in (None, Rank(0, 1, 0), Rank(0, 2, 0, "j")):
        with ranks.attendance(rank, True, str(tmp_path / "none")) as others_done:
            assert others_done is None


def test_a_folder_that_cannot_be_written_means_sample(tmp_path):
    assert ranks.samples(Rank(0, 4, job="j"), str(tmp_path / "none"))


def test_locks_lie_in_a_folder_that_no_other_user_can_enter(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rank = Rank(0, 2, 0, "j")
    with ranks.attendance(rank, True):
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert len(list(folder.iterdir())) == 1
    assert not list(tmp_path.iterdir())
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)  # of another, or open to others
    with ranks.attendance(rank, True) as others_done:
        assert others_done is None
    assert not list(folder.iterdir())
    assert ranks.samples(Rank(0, 4, job="j"))
