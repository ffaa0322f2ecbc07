#!/bin/sh
# Builds the images of the folders here: build.sh BASE [PYTHON_BASE]
# BASE has a shell; PYTHON_BASE (default: BASE) has Python and NumPy, and for GPUs PyTorch or CuPy. Nothing is fetched
# but what the engine needs to fetch for these two.
set -eu
if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: build.sh BASE [PYTHON_BASE]   (for instance docker.io/library/busybox docker.io/pytorch/pytorch)" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
if [ -z "${ENGINE:-}" ]; then
    ENGINE=docker
    if command -v podman >/dev/null 2>&1; then ENGINE=podman; fi
fi
build() { # image, its base
    "$ENGINE" build --quiet --build-arg "BASE=$2" --tag "$1" --file "$here/$1/Containerfile" "$here/$1"
}
build dummy "$1"
for image in synthetic-regression digits-training dense-solve two-gpus; do build "$image" "${2:-$1}"; done
