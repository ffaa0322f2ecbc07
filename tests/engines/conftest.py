"""What tests of engines share: a trace with GPU streams and threads, a Dask cluster of two worker
processes, and an Arkouda server if there is one."""

import gc
import importlib.util
import os
from pathlib import Path

import pytest

from examples import make_trace


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    """2 nodes, 4 ranks, 4 GPUs; a counter per GPU, one per package that two ranks share."""
    folder = tmp_path_factory.mktemp("engines") / "trace"
    make_trace.write(folder)
    return folder


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine takes its time to connect, and to start workers."""
    from wattribute.engines import cluster

    monkeypatch.setattr(cluster, "CONNECT_S", 30)  # Dask also waits so long for a worker that was killed
    monkeypatch.setattr(cluster, "WORKERS_S", 600)


@pytest.fixture(scope="package")
def dask_cluster():
    """Not for the session: processes of a cluster that rests use a third of a core."""
    distributed = pytest.importorskip("distributed")
    import dask

    # else a killed worker that takes longer to start again, on a busy machine, is given up for good
    patience = dask.config.set({"distributed.deploy.lost-worker-timeout": "600s"})
    with (
        patience,
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as made,
    ):
        yield made
    gc.collect()  # here, where its warnings are not another test's


@pytest.fixture(scope="package")
def dask(dask_cluster):
    """The engine as a user names it."""
    return f"dask:{dask_cluster.scheduler_address}"


@pytest.fixture
def arrays(monkeypatch):
    """The Arkouda engine with NumPy's arrays in place of a server's: the same lines, without the server."""
    from wattribute.engines import arkouda, verbs

    monkeypatch.setattr(arkouda, "_current", arkouda.Server(verbs.NumPy(), "here"))
    return "arkouda"


@pytest.fixture(scope="session")
def arkouda():
    """The engine on a real server."""
    where = os.environ.get("WATTRIBUTE_ARKOUDA")
    if not where:
        pytest.skip("WATTRIBUTE_ARKOUDA=host:port names no running server")
    if importlib.util.find_spec("arkouda") is None:
        pytest.skip("the Arkouda client of the server's release is not importable")
    return f"arkouda:{where}"


def pytest_collection_modifyitems(items):
    """Dask leaves sockets and loops to the garbage collector when processes come and go; that is not ours to mend."""
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))
