#!/bin/bash
# The same model, byte for byte, with any number of threads and on every instruction set.
#   determinism_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

sets=(scalar)
[ "$(uname -m)" = x86_64 ] && sets+=(avx2 vnni avx512 amx)
[ "$(uname -m)" = aarch64 ] && sets+=(neon)

sed 's/name = "fedbnn"/name = "scaffold"/' network.toml >scaffold.toml
sed 's/clients = 4/clients = 16/; s/^name = "one-shot"/name = "many"/' one-shot.toml >many.toml  # holders of a class
for recipe in composite table; do
  sed 's/^seed = 5/seed = 5\nrounds = 2/; s/^name = "fedtm.*"/name = "fedtm"/' $recipe.toml >fedtm-$recipe.toml
done
for recipe in one-shot many fedtm fedtm-composite fedtm-table table people network scaffold; do
  expected=
  for isa in "${sets[@]}"; do
    for threads in 1 2; do
      status=0
      BITFED_ISA=$isa "$program" run $recipe.toml --threads $threads --out $recipe-$isa-$threads --json --quiet \
        >out.json 2>err || status=$?
      if [ $status = 2 ] && grep -q BITFED_ISA err && [ $isa != scalar ]; then
        echo "$isa: not on this CPU"
        continue
      fi
      [ $status = 0 ] || fail "$recipe $isa $threads: status $status: $(cat err)"
      [ ! -s err ] || fail "--quiet, but: $(cat err)"
      [ "$(field out.json isa)" = $isa ] || fail "ran on $(field out.json isa), not on $isa"
      [ "$(field out.json threads)" = $threads ] || fail "ran with $(field out.json threads) threads"
      found=$(field out.json model_sha256)
      expected=${expected:-$found}
      [ "$found" = "$expected" ] || fail "$recipe $isa $threads: $found, expected $expected"
      [ -n "$expected" ] && cmp $recipe-$isa-$threads/model.safetensors $recipe-scalar-1/model.safetensors
    done
  done
  echo "$recipe: $expected"
done

"$program" run one-shot.toml --seed 6 --out other-seed --json --quiet >out.json
[ "$(field out.json model_sha256)" != "$(field one-shot-scalar-1/summary.json model_sha256)" ] ||
  fail "another seed gives the same model"

# What the rounds after the first one do is in the digests: SCAFFOLD's corrections begin in the second.
"$program" run scaffold.toml --set method.name=fedavg --out fedavg --json --quiet >out.json
[ "$(field out.json model_sha256)" != "$(field scaffold-scalar-1/summary.json model_sha256)" ] ||
  fail "scaffold gives fedavg's model"

status=0
BITFED_ISA=sse9 "$program" run one-shot.toml --out unknown --quiet 2>err || status=$?
[ $status = 2 ] || fail "an unknown instruction set: status $status"
grep -q sse9 err
