#!/bin/sh
# Builds a Debian package from this checkout: target/debian/planimeter_*.deb
# Requires cargo-deb: cargo install cargo-deb
set -e
cd "$(dirname "$0")/.."
cargo deb --version >/dev/null 2>&1 || {
    echo "cargo-deb is missing: cargo install cargo-deb" >&2
    exit 4
}
cargo build --release -p planimeter
made=target/package
rm -rf "$made"
mkdir -p "$made/completions"
./target/release/planimeter man "$made/man"
for shell in bash zsh fish; do
    ./target/release/planimeter completions "$shell" >"$made/completions/$shell"
done
gzip -9n "$made"/man/*.1
# A later commit has a higher version, so that its package upgrades the previous one.
version="$(cargo metadata --no-deps --format-version 1 | sed 's/.*"name":"planimeter","version":"\([^"]*\)".*/\1/')"
if commit="$(git log -1 --format=%cd.%h --date=format:%Y%m%d%H%M 2>/dev/null)"; then
    version="$version+$commit"
fi
cat >"$made/changelog" <<END
planimeter ($version-1) unstable; urgency=medium

  * Built from ${commit:-sources without their history}.

 -- The planimeter developers <developers@planimeter.invalid>  $(date -R)
END
cargo deb --no-build --strip -p planimeter --deb-version "$version-1"
