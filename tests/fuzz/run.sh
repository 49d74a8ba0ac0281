#!/bin/sh
# Builds the fuzz preset and runs one target, or all, for a number of executions each.
#   tests/fuzz/run.sh TARGET|all [RUNS]
# New inputs go to build/fuzz/corpus; a finding is left in build/fuzz as crash-*, and the status is 1.
set -eu
target=${1:?usage: run.sh TARGET|all [RUNS]}
runs=${2:-100000}
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/fuzz
[ "$target" = all ] && target="gzip toml idx mat csv tar npy npz image leaf safetensors clauses model tsetlin_messages mlp_messages network_messages rank_messages secure_messages session renewal"

cd "$source"
cmake --preset fuzz >/dev/null
for name in $target; do
  [ -f "tests/fuzz/${name}_fuzz.cc" ] || { echo "run.sh: no target '$name'" >&2; exit 2; }
  if [ "$name" = secure_messages ] && grep -q 'BITFED_SECURE:BOOL=OFF' "$build/CMakeCache.txt"; then
    echo "== secure_messages: skipped, built without BITFED_SECURE"
    continue
  fi
  if { [ "$name" = session ] || [ "$name" = renewal ]; } && grep -q 'BITFED_RPC:BOOL=OFF' "$build/CMakeCache.txt"; then
    echo "== $name: skipped, built without BITFED_RPC"
    continue
  fi
  cmake --build --preset fuzz --target "${name}_fuzz" >/dev/null
  mkdir -p "$build/corpus/$name"
  echo "== $name: $runs runs"
  "$build/tests/fuzz/${name}_fuzz" -runs="$runs" -max_len=8192 -rss_limit_mb=4096 -malloc_limit_mb=64 -timeout=25 \
    -artifact_prefix="$build/" -print_final_stats=1 "$build/corpus/$name" "tests/fuzz/corpus/$name" \
    >"$build/$name.log" 2>&1 || { tail -40 "$build/$name.log"; echo "== $name: FAILED"; exit 1; }
  grep -E "number_of_executed_units|new_units_added" "$build/$name.log"
done
