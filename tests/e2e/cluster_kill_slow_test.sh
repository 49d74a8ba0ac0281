#!/bin/bash
# Every method with 2, 4 and 7 ranks; a rank killed at twenty moments, each time resumed by another number of ranks:
# always the model of one process.
#   cluster_kill_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/ranks.sh"

killed=0
# killed_run FOLDER RANKS MOMENT ARGUMENT...: kills one of the ranks after MOMENT hundredths of a second.
killed_run() {
  local folder=$1 ranks=$2 moment=$3
  shift 3
  mpirun -n $ranks "$program" run "$@" --out $folder --resume --quiet >out 2>err &
  local pid=$! victims
  sleep $((moment / 100)).$(printf %02d $((moment % 100)))
  mapfile -t victims < <(pgrep -P $pid -x bitfed || true)
  if [ ${#victims[@]} -gt 0 ]; then
    kill -9 "${victims[RANDOM % ${#victims[@]}]}" 2>/dev/null && killed=$((killed + 1))
  fi
  wait $pid || true
}

RANDOM=7
for method in $all_methods; do
  read -ra recipe <<<"$(method_recipe $method)"
  recipe+=(--set client.epochs=20)
  "$program" run "${recipe[@]}" --out $method --json --quiet >$method.json
  expected=$(field $method.json model_sha256)
  for ranks in 2 4 7; do
    mpirun -n $ranks "$program" run "${recipe[@]}" --out $method-$ranks --json --quiet >out.json
    [ "$(field out.json model_sha256)" = "$expected" ] || fail "$method, $ranks ranks: another model"
  done
  echo "$method: $expected"
done

sed 's/^rounds = 6/rounds = 300/; s/^epochs = .*/epochs = 200/' people.toml >long.toml
sed 's/^rounds = 4/rounds = 60/' fedtm.toml >steps.toml
sed 's/^rounds = 2/rounds = 12/' network.toml >network-long.toml
for recipe in long steps network-long; do
  "$program" run $recipe.toml --out $recipe --json --quiet >$recipe.json
  for try in 1 2 3 4 5 6 7; do
    folder=$recipe-$try
    killed_run $folder $((2 + RANDOM % 5)) $((60 + RANDOM % 250)) $recipe.toml
    killed_run $folder $((2 + RANDOM % 5)) $((60 + RANDOM % 250)) $recipe.toml
    mpirun -n $((2 + RANDOM % 5)) "$program" run $recipe.toml --out $folder --resume --json --quiet >out.json
    [ "$(field out.json model_sha256)" = "$(field $recipe.json model_sha256)" ] || fail "$folder: another model"
  done
done
echo "$killed ranks were killed at work"
[ $killed -ge 20 ] || fail "only $killed ranks were caught at work"
nothing_half_written
