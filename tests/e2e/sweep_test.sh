#!/bin/bash
# A sweep runs every combination once, resumes, reuses clients, and writes its table in every form.
#   sweep_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

sweep() {
  "$program" sweep one-shot.toml --grid method.name=fedtm-bank,fedtmos --grid model.sensitivity=3,10 --seeds 0,1 \
    --out sweep "$@"
}
sweep >out 2>err || fail "$(cat err)"
[ "$(grep -c '^run ' err)" = 8 ] || fail "not eight runs: $(cat err)"
[ "$(grep -c 'clients reused' err)" = 4 ] || fail "the clients of fedtmos are those of fedtm-bank: $(cat err)"
for file in table.html table.md table.csv table.tex; do [ -s sweep/$file ] || fail "no $file"; done
grep -q 'sample standard deviation of 2 seeds' out || fail "$(cat out)"
grep -q '\\begin{tabular}{llrrrrr}' sweep/table.tex || fail "$(cat sweep/table.tex)"
model=sweep/method.name-fedtmos+model.sensitivity-3/seed-1/model.safetensors
"$program" run one-shot.toml --quiet --out alone --seed 1 --set method.name=fedtmos --set model.sensitivity=3 >/dev/null
cmp $model alone/model.safetensors || fail "a run of a sweep is not the run itself"

cp -r sweep before
rm sweep/method.name-fedtmos+model.sensitivity-10/seed-0/summary.json sweep/table.*
sweep --jobs 2 --quiet >again 2>err || fail "$(cat err)"
cmp out again || fail "another table after resuming"
cmp before/table.csv sweep/table.csv

refuse() {
  local text=$1 status=0
  shift
  "$program" sweep "$@" >out 2>err || status=$?
  [ $status = 2 ] && grep -Eq -- "$text" err || fail "$*: status $status: $(cat err)"
}
refuse '--grid model.clauses: expected key=value' one-shot.toml --grid model.clauses --out bad
refuse "metrics: found 'acuracy'.*accuracy" one-shot.toml --grid model.sensitivity=3 --metrics acuracy --out bad
refuse 'model.clauses' one-shot.toml --grid model.clauses=7 --out bad
refuse '--grid model.sensitivity=3 model.clauses=7: .*model.clauses: found 7' one-shot.toml --grid model.sensitivity=3 \
  --grid model.clauses=20,7 --seeds 0,1 --out bad
refuse '--grid model.sensitivity: found it twice' one-shot.toml --grid model.sensitivity=3 --grid model.sensitivity=10 --out bad
refuse 'expected them in --seeds 3,4' one-shot.toml --grid seed=3,4 --out bad
refuse '--seeds: found 0 twice' one-shot.toml --grid model.sensitivity=3 --seeds 0,1,0 --out bad
refuse '--set seed=5: found a seed' one-shot.toml --grid model.sensitivity=3 --set seed=5 --out bad
refuse '--set model.sensitivity=5: found a key of --grid' one-shot.toml --grid model.sensitivity=3 \
  --set model.sensitivity=5 --out bad
[ ! -e bad ] || fail "runs although a setting of a later one is refused: $(ls bad)"
refuse 'another recipe' one-shot.toml --grid method.name=fedtm-bank,fedtmos --grid model.sensitivity=3,10 --seeds 0,1 \
  --set client.epochs=4 --out sweep
"$program" report sweep/method.name-fedtmos+model.sensitivity-3/seed-* --out report.html >out
grep -q 'mean ± sample deviation' out || fail "seeds are not grouped: $(cat out)"
