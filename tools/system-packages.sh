#!/bin/sh
# Installs the Debian packages that some tests need; starts nothing. Where it cannot, it says so and the tests skip.
set -eu
PACKAGES="otf2-tools chromium graphviz tmux openmpi-bin podman runc busybox-static"
PACKAGES="$PACKAGES openssl victoria-metrics influxdb prometheus zsh fish"
if ! command -v apt-get >/dev/null 2>&1; then
    echo "no apt-get here: tests that need $PACKAGES will skip"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "not root: run 'sudo sh tools/system-packages.sh' for the tests that need $PACKAGES"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# Tests start servers themselves, on free ports: those that come in with this install shall neither run now nor at boot.
new=""
for service in victoria-metrics influxdb prometheus; do
    dpkg -s "$service" >/dev/null 2>&1 || new="$new $service"
done
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends $PACKAGES crun- >/dev/null
if [ -n "$new" ] && command -v systemctl >/dev/null 2>&1; then
    systemctl disable --quiet $new >/dev/null 2>&1 || true
fi
