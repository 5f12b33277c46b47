#!/bin/sh
# Makes a Debian package of this checkout: target/debian/planimeter_*.deb
# Needs cargo-deb: cargo install cargo-deb
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
cargo deb --no-build -p planimeter
