"""One colour per kind of work, told apart and readable."""

import pytest

from wattribute.model import Frames
from wattribute.views import kinds


@pytest.mark.parametrize(
    ("paradigm", "role", "name", "kind"),
    [
        ("compiler", "function", "main", "user"),
        ("user", "code", "my region", "user"),
        ("unknown", "unknown", "anything", "user"),
        ("hip", "kernel", "heavy_kernel", "kernel"),
        ("cuda", "kernel", "ncclDevKernel_AllReduce", "mpi"),
        ("hip", "copy", "hipMemcpy put", "copy"),
        ("hip", "function", "hipMemcpyAsync", "copy"),
        ("hip", "function", "hipMalloc", "memory"),
        ("hip", "function", "hipDeviceSynchronize", "wait"),
        ("cuda", "function", "cuLaunchKernel", "other"),
        ("mpi", "point2point", "MPI_Send", "mpi"),
        ("mpi", "barrier", "MPI_Barrier", "wait"),
        ("mpi", "function", "MPI_Waitall", "wait"),
        ("openmp", "implicit barrier", "!$omp implicit barrier", "wait"),
        ("openmp", "loop", "!$omp for", "user"),
        ("io", "file_io", "write", "io"),
        ("python", "function", "free_energy", "user"),
        ("python", "function", "reader", "user"),
        ("compiler", "function", "freeze", "user"),
    ],
)
def test_the_kind_of_a_frame(paradigm, role, name, kind):
    assert kinds.kind(paradigm, role, name) == kind


@pytest.mark.parametrize(
    ("paradigm", "role", "name", "on", "kind"),
    [
        ("cuda", "function", "advec_cell_kernel_75_gpu", "gpu", "kernel"),
        ("cuda", "function", "advec_cell_kernel_75_gpu", "kernels", "kernel"),
        ("openacc", "function", "cuLaunchKernel", "cpu", "other"),
        ("user", "function", "jacobi_kernel", "gpu", "kernel"),
        ("cuda", "copy", "cudaMemcpy put", "gpu", "copy"),
        ("cuda", "function", "ncclDevKernel_AllReduce", "gpu", "mpi"),
        ("compiler", "function", "main", "host", "user"),
    ],
)
def test_what_runs_on_a_stream_is_a_kernel_unless_it_is_known_better(paradigm, role, name, on, kind):
    assert kinds.kind(paradigm, role, name, on) == kind


def test_kinds_of_a_table_go_row_by_row():
    frames = Frames.of([("main", "compiler", "function"), ("k", "hip", "kernel")])
    assert kinds.kinds(frames) == ["user", "kernel"]
    assert kinds.kinds(frames, "gpu") == ["kernel", "kernel"]


def test_the_first_frame_of_a_name_says_its_kind():
    frames = Frames.of([("f", "mpi", "function"), ("f", "compiler", "function"), ("g", "io", "file_io")])
    assert kinds.kinds_by_name(frames) == {"f": "mpi", "g": "io"}


def test_shades_are_stable_and_near_their_colour():
    assert kinds.shade("kernel", "dgemm") == kinds.shade("kernel", "dgemm")
    assert len({kinds.shade("user", f"f{i}") for i in range(50)}) > 3


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_text_on_every_shade_has_enough_contrast():
    for kind in kinds.KINDS:
        for i in range(30):
            ground = kinds.shade(kind, str(i))
            a, b = sorted((_luminance(ground), _luminance(kinds.ink(ground))))
            assert (b + 0.05) / (a + 0.05) >= 4.5
