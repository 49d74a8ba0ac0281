#!/bin/bash
# A short turn of every fuzz target, beginning with its corpus.
set -euo pipefail
source_dir=$2

command -v clang++-14 >/dev/null || { echo "skipped: clang++-14 is missing (package clang-14)"; exit 77; }
cd "$source_dir"
exec tests/fuzz/run.sh all 20000
