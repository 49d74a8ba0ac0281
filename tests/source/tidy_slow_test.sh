#!/bin/bash
# Names and a few common mistakes in the library and the program, as .clang-tidy has them.
set -euo pipefail
program=$1
source_dir=$2

command -v clang-tidy-14 >/dev/null || { echo "skipped: clang-tidy-14 is missing (package clang-tidy-14)"; exit 77; }
build_dir=$(dirname "$program")
cd "$source_dir"

# The database was written for the compiler in use; clang need not know all of its warnings.
find bitfed cli -name '*.cc' -print0 |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-14 -p "$build_dir" --quiet --extra-arg=-Wno-unknown-warning-option
