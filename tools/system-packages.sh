#!/bin/sh
# Installs the Debian packages that some tests need; starts nothing. Where it cannot, it says so and the tests skip.
set -eu
PACKAGES="otf2-tools chromium graphviz tmux openmpi-bin podman runc busybox-static"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "no apt-get here: tests that need $PACKAGES will skip"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "not root: run 'sudo sh tools/system-packages.sh' for the tests that need $PACKAGES"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends $PACKAGES crun- >/dev/null
