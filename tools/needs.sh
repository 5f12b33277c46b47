#!/bin/sh
# Installs what planimeter measures against and tests with, where it may; names it where it may not.
# Program and Debian package, pairwise.
missing=""
need() {
    PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need ovs-vswitchd openvswitch-switch
need ovs-ofctl openvswitch-common
need ip iproute2
need tshark tshark
need cc build-essential
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null || {
        echo "these could not be installed, what needs them is left out:$missing" >&2
    }
else
    echo "missing, and what needs them is left out:$missing" >&2
    echo "to have them: sudo apt-get install$missing" >&2
fi
exit 0
