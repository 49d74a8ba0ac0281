#!/bin/bash
# Installs the build and lets a foreign project find, link and run it.
set -euo pipefail
program=$1
source_dir=$2
work=$3

build_dir=$(dirname "$program")
while [[ ! -f $build_dir/CMakeCache.txt ]]; do build_dir=$(dirname "$build_dir"); done
flags=$(sed -n 's/^CMAKE_CXX_FLAGS:[A-Z]*=//p' "$build_dir/CMakeCache.txt")

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build_dir" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }

# The library's own flags: a sanitizer must be linked on both sides.
cmake -S "$source_dir/tests/package/foreign" -B "$work/build" -G Ninja \
  -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS="$flags"
cmake --build "$work/build"
"$work/build/foreign" "$work/run"
"$work/prefix/bin/bitfed" --version
# From a folder without recipes the installed ones are found.
(cd "$work" && prefix/bin/bitfed reproduce --list | grep -q '^fedtmos:table1  ')

# Installed headers stand on their own: none includes what was not installed.
if grep -rhoE '#include "bitfed/[^"]+"' "$work/prefix/include" | sort -u | cut -d'"' -f2 |
  while read -r header; do [[ -f $work/prefix/include/$header ]] || echo "not installed: $header"; done | grep .; then
  exit 1
fi
