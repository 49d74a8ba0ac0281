#!/bin/bash
# The format of all sources and the names in the library, as .clang-format and .clang-tidy have them.
set -euo pipefail
program=$1
source_dir=$2

for tool in clang-format-14 clang-tidy-14; do
  command -v $tool >/dev/null || { echo "skipped: $tool is missing (package $tool)"; exit 77; }
done
build_dir=$(dirname "$program")
cd "$source_dir"

find bitfed cli tests benchmarks include examples -name '*.h' -o -name '*.cc' -o -name '*.c' | xargs clang-format-14 --dry-run -Werror

# The database is that of the compiler in use; clang need not know all of its warnings.
find bitfed cli -name '*.cc' -print0 |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-14 -p "$build_dir" --quiet --extra-arg=-Wno-unknown-warning-option
