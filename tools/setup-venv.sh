#!/bin/sh
# setup-venv.sh PYTHON VENV [lowest]: a virtual environment with wattribute, all extras and the tools the tests need;
# with "lowest" in the oldest versions that pyproject.toml allows.
# Debian without python3-venv has no ensurepip: then the environment borrows pip from its wheel.
set -eu
python=$1 venv=$2
if [ ! -x "$venv/bin/python" ]; then
    echo "setting up $venv (a minute or two)"
    if ! "$python" -m venv "$venv" 2>/dev/null; then
        rm -rf "$venv"
        "$python" -m venv --without-pip "$venv"
    fi
fi
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    wheel=$(ls /usr/share/python-wheels/pip-*.whl 2>/dev/null | tail -n 1)
    if [ -z "$wheel" ]; then
        mkdir -p "$venv/wheels"
        "$python" -m pip download -q --no-deps -d "$venv/wheels" pip
        wheel=$(ls "$venv"/wheels/pip-*.whl)
    fi
    "$venv/bin/python" "$wheel/pip" install -q --no-index "$wheel" 2>/dev/null ||
        PYTHONPATH="$wheel" "$venv/bin/python" -m pip install -q pip
fi
pip="$venv/bin/python -m pip --disable-pip-version-check"
uv="$venv/bin/python -m uv pip install -q --python $venv/bin/python"
if [ "${3-}" = lowest ]; then
    $pip install -qq uv
    exec $uv --resolution lowest-direct -e '.[all,dev]'
fi
# uv takes a third of pip's time, but does not know an index that pip was configured with
if ! $pip config list | grep -q '\.index-url=' && $pip install -qq uv && $uv -e '.[all,dev]'; then
    exit 0
fi
exec $pip install -qq -e '.[all,dev]'
