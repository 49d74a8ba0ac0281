#!/bin/bash
# Every method with 2, 4 and 7 ranks; a rank of it killed at twenty moments, resumed by other numbers of ranks: always
# the model of one process. METHODS: those whose ranks are killed.
#   cluster_kill_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/ranks.sh"

# killed_run FOLDER RANKS ARGUMENT...: goes on with the run and kills one of its ranks within three seconds. True: the
# rank was caught at work.
killed_run() {
  local folder=$1 ranks=$2 victims=()
  shift 2
  mpirun -n $ranks "$program" run "$@" --out $folder --resume --quiet >out 2>err &
  local pid=$!
  while [ ${#victims[@]} -lt $ranks ] && kill -0 $pid 2>/dev/null; do
    sleep 0.05
    mapfile -t victims < <(pgrep -P $pid -x bitfed || true)
  done
  local moment=$((RANDOM % 300))
  sleep $((moment / 100)).$(printf %02d $((moment % 100)))
  if [ ${#victims[@]} -eq $ranks ]; then kill -9 "${victims[RANDOM % ranks]}" 2>/dev/null || true; fi
  ! wait $pid
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

# Runs of some seconds.
long_recipe() {
  case $1 in
    fedtmos | fedtm-bank) echo "--set client.epochs=1500" ;;
    fedtm) echo "--set rounds=60 --set client.epochs=20" ;;
    fed-bin-mlp) echo "--set rounds=300 --set client.epochs=200" ;;
    *) echo "--set rounds=12 --set client.epochs=20" ;;
  esac
}

for method in ${METHODS:-fedtmos fedtm-bank fedtm fed-bin-mlp fedbnn fedavg fedbat fedmud}; do
  read -ra recipe <<<"$(method_recipe $method) $(long_recipe $method)"
  "$program" run "${recipe[@]}" --out $method-long --json --quiet >$method-long.json
  expected=$(field $method-long.json model_sha256)
  killed=0
  for try in $(seq 40); do
    folder=$method-killed-$try
    for _ in 1 2 3 4 5; do
      killed_run $folder $((2 + RANDOM % 5)) "${recipe[@]}" && killed=$((killed + 1))
      [ ! -e $folder/summary.json ] || break
    done
    mpirun -n $((2 + RANDOM % 5)) "$program" run "${recipe[@]}" --out $folder --resume --json --quiet >out.json
    [ "$(field out.json model_sha256)" = "$expected" ] || fail "$folder: another model"
    [ $killed -lt 20 ] || break
  done
  echo "$method: $killed ranks were killed at work in $try runs"
  [ $killed -ge 20 ] || fail "$method: only $killed ranks were caught at work"
done
nothing_half_written
