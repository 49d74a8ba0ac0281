#!/bin/bash
# bitfed forget: the model is the one of a federation in which the client never took part, byte for byte.
#   forget_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

run=("$program" run --quiet --threads 2 --json)
for recipe in one-shot fedtm people network; do
  "${run[@]}" $recipe.toml --out $recipe >$recipe.json
  "${run[@]}" $recipe.toml --out $recipe-never --set federation.without=[1] >never.json
  "$program" forget $recipe --client 1 --quiet --json >forgotten.json 2>forgotten.err ||
    fail "$recipe: $(cat forgotten.err)"
  [ "$(wc -l <forgotten.err)" = 1 ] || fail "$recipe: $(cat forgotten.err)"
  cmp $recipe-without-1/model.safetensors $recipe-never/model.safetensors
  [ "$(field forgotten.json model_sha256)" = "$(field never.json model_sha256)" ] || fail "$recipe: another model"
  [ "$(field forgotten.json model_sha256)" != "$(field $recipe.json model_sha256)" ] || fail "$recipe: same model"
  grep -q '"client":1,' $recipe-never/events.jsonl && fail "$recipe: client 1 took part"
  echo "$recipe: $(cat forgotten.err)"
done

# One shot: nobody trains.
"$program" forget one-shot --client 0 --out again --quiet >again.txt 2>&1
grep -q 'fused again' again.txt || fail "it trained"
grep -q '"origin":"trained"' again/events.jsonl && fail "one-shot: a client trained"
# Twice: the first stays forgotten.
"$program" forget again --client 1 --out twice --quiet --json >twice.json 2>/dev/null
"${run[@]}" one-shot.toml --out never --set 'federation.without=[0,1]' >never.json
[ "$(field twice.json model_sha256)" = "$(field never.json model_sha256)" ] || fail "twice: another model"

# A person by name.
name=$(python3 -c 'import json; print(json.load(open("people.json"))["client_results"][1]["name"])')
"$program" forget people --client "$name" --out by-name --quiet --json >by-name.json 2>by-name.err
cmp by-name/model.safetensors people-never/model.safetensors
grep -q "^client 1 ('$name'): " by-name.err || fail "does not say who client 1 is: $(cat by-name.err)"

refused() {
  local text=$1 status=0
  shift
  "$program" forget "$@" --quiet >out.txt 2>err.txt || status=$?
  [ $status = 2 ] || fail "forget $*: status $status: $(cat err.txt)"
  [ "$(wc -l <err.txt)" = 1 ] || fail "forget $*: $(cat err.txt)"
  grep -q -- "$text" err.txt || fail "forget $*: $(cat err.txt)"
}
refused 'expected a number below' one-shot --client 99
refused 'expected a number below' one-shot --client nobody
refused 'recipe.toml' nowhere --client 1
refused 'holds a run already' one-shot --client 1
nothing_half_written
