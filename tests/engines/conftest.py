"""What tests of engines share: a trace with GPU streams and threads, and a Dask cluster of two worker processes."""

import pytest

from examples import make_trace


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """2 nodes, 4 ranks, 4 GPUs; a counter per GPU, one per package that two ranks share."""
    folder = tmp_path_factory.mktemp("engines") / "trace"
    make_trace.write(folder)
    return folder


@pytest.fixture(scope="session")
def dask_cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as made:
        yield made


@pytest.fixture(scope="session")
def dask(dask_cluster):
    """The engine as a user names it."""
    return f"dask:{dask_cluster.scheduler_address}"
