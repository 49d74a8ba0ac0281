#!/bin/bash
# Every C and C++ source is formatted as .clang-format has it. To mend one: clang-format-14 -i FILE
set -euo pipefail
source_dir=$2

command -v clang-format-14 >/dev/null || { echo "skipped: clang-format-14 is missing (package clang-format-14)"; exit 77; }
cd "$source_dir"

find bitfed cli python tests benchmarks include examples \( -name '*.h' -o -name '*.cc' -o -name '*.c' \) -print0 |
  xargs -0 -P "$(nproc)" -n 40 clang-format-14 --dry-run -Werror
