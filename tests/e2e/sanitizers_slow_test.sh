#!/bin/bash
# The fast test programs under the address, undefined-behaviour and thread sanitizers. They are built into the
# presets' own folders, so that a second run is quick.
set -euo pipefail
source_dir=$2
work=$3

rm -rf "$work"
mkdir -p "$work"
cd "$source_dir"
export TMPDIR=$work

for preset in asan tsan; do
  echo "== $preset"
  { cmake --preset $preset && cmake --build --preset $preset; } >"$work/$preset.log" 2>&1 ||
    { tail -n 60 "$work/$preset.log"; exit 1; }
  for program in build/$preset/tests/*_test; do
    [[ $program == *_slow_test ]] && continue
    echo "$program"
    TSAN_OPTIONS=halt_on_error=1 "$program" --gtest_brief=1
  done
done
