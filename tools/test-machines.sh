#!/bin/sh
# test-machines.sh [MACHINE …]: `make test` of a fresh clone on machines that differ, one after the other.
#
#   idle    as it is, with the time it takes     psys    perf offers an energy-psys that never moves
#   busy    eight busy loops beside it, 3 times  rapl    perf offers a package and DRAM
#   user    an unprivileged user                 gpus    an NVIDIA driver with two cards
#   lowest  the oldest versions allowed
#
# user, psys and rapl need root (another user, a mount namespace of our own). TESTS="tests/cli …" runs those files only.
# Logs are kept in the folder that is named at the end; the exit code is 1 if any of them failed.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/machines-XXXXXX")
chmod 755 "$place"
: "${WATTRIBUTE_SHARED:=$here/../shared}"
export WATTRIBUTE_SHARED
loops=""
trap 'for loop in $loops; do kill "$loop" 2>/dev/null || true; done' EXIT INT TERM

git clone -q "$here" "$place/wattribute"
cd "$place/wattribute"
[ -z "${PYTHON-}" ] || export PYTHON

if [ -n "${TESTS-}" ]; then
    make -s setup
    command=".venv/bin/python -m pytest -n 2 --dist loadfile $TESTS"
else
    command="make test"
fi

failed=""
try() { # try NAME COMMAND …: its output goes to a log
    name=$1
    shift
    echo "== $name"
    begin=$(date +%s)
    status=0
    "$@" >"$place/$name.log" 2>&1 || status=$?
    tail -n 3 "$place/$name.log"
    echo "== $name: exit code $status after $(($(date +%s) - begin)) s"
    [ "$status" -eq 0 ] || failed="$failed $name"
}

fake() { # fake KIND: make what this machine lacks, in $place/KIND
    PYTHONPATH=. .venv/bin/python - "$1" "$place/$1" <<'EOF'
import sys
from pathlib import Path

from tests.meters import fakes
from tests.meters.test_rapl import CPU_CLOCK, DUMMY, power_pmu

kind, folder = sys.argv[1], Path(sys.argv[2])
if kind == "gpus":
    folder.mkdir()
    gpus = fakes.FakeNvml(folder, [fakes.Wave(300), fakes.Wave(120)])
    gpus.library.rename(folder / gpus.library.name)
else:
    power_pmu(folder, {"energy-psys": DUMMY} if kind == "psys" else {"energy-pkg": CPU_CLOCK, "energy-ram": CPU_CLOCK})
EOF
}

with_pmu() { # the same command where perf has another list of devices
    unshare --mount sh -c 'mount --bind "$0/bus/event_source/devices" /sys/bus/event_source/devices && exec "$@"' "$@"
}

for machine in ${*:-idle busy user psys rapl gpus lowest}; do
    case $machine in
    idle) try idle $command ;;
    busy)
        for _ in 1 2 3 4 5 6 7 8; do
            sh -c 'while :; do :; done' &
            loops="$loops $!"
        done
        for number in 1 2 3; do try "busy-$number" $command; done
        for loop in $loops; do kill "$loop"; done
        loops=""
        ;;
    user)
        python=$(command -v /usr/bin/python3 || command -v python3) # root's own may be closed to others
        mkdir -p "$place/user/home"
        git clone -q "$here" "$place/user/wattribute"
        chown -R 65534:65534 "$place/user"
        try user setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$place/user/home" PYTHON="$python" \
            sh -c "cd '$place/user/wattribute' && make -s setup PYTHON='$python' && $command"
        ;;
    psys | rapl)
        make -s setup
        fake "$machine"
        try "$machine" with_pmu "$place/$machine" $command
        ;;
    gpus)
        make -s setup
        fake gpus
        try gpus env LD_LIBRARY_PATH="$place/gpus" FAKE_NVML="$place/gpus/fake_nvml.state" $command
        ;;
    lowest)
        if [ -n "${TESTS-}" ]; then
            sh tools/setup-venv.sh "${PYTHON:-python3}" .venv-lowest lowest
            try lowest .venv-lowest/bin/python -m pytest -n 2 --dist loadfile $TESTS
        else
            try lowest make test-lowest
        fi
        ;;
    *)
        echo "no such machine: $machine (idle busy user psys rapl gpus lowest)" >&2
        exit 2
        ;;
    esac
done
echo "logs: $place"
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
