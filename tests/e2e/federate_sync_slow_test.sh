#!/bin/bash
# The server, then a client, killed at each of its syncs and commits in turn: whatever it had written by then, it goes on
# from there to the simulation's model. Then the same with two exchanges of a one-shot method, also as a simulation, and with
# masked updates.
#   federate_sync_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR ["RECIPE VICTIM FIRST LAST"...]
# Jobs in place of all, as "masked client 1 20", are for runs in parts.
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
source "$2/tests/e2e/federate_kill.sh"
[ -e "${BITFED_DIE_AT_SYNC_LIBRARY:-}" ] || { echo "skipped: no library to kill with"; exit 77; }
ldd "$program" | grep -q libasan && { echo "skipped: not beside a sanitizer"; exit 77; }

sed -i 's/^rounds = 6/rounds = 3/' people.toml
cp people.toml masked.toml
printf '[privacy]\nsecure_aggregation = true\n' >>masked.toml
for recipe in people two-exchanges masked; do "$program" run $recipe.toml --quiet --out simulated-$recipe >/dev/null; done

# die_at N COMMAND...: in a shell of its own; `died` is 137 once it has.
dying() {
  export BITFED_DIE_AT_SYNC=$1 LD_PRELOAD=$BITFED_DIE_AT_SYNC_LIBRARY
  shift
  exec "$@"
}

# federate VICTIM N: client 0 or the server dies at its N-th moment and is started again. Sets status to how it ended.
federate() {
  local victim=$1 moment=$2 folder=$recipe-$1-$2 number
  port=$(free_port)
  server_command=("$program" serve $recipe.toml --state $folder --listen 127.0.0.1:$port --plaintext --quiet --json --linger 30)
  client_command=("$program" join --server 127.0.0.1:$port --part 0 --id client-0 --state $folder-0 --plaintext --quiet --give-up 60)
  for number in 1 2 3; do join $folder $number --plaintext --quiet; done
  status=0
  if [ $victim = server ]; then
    join $folder 0 --plaintext --quiet
    (dying $moment "${server_command[@]}") >$folder.json 2>$folder.err || status=$?
    [ $status != 137 ] || "${server_command[@]}" >$folder.json 2>$folder.err || fail "$folder: $(cat $folder.err)"
    finish ${client_pids[0]} $folder-0
  else
    "${server_command[@]}" >$folder.json 2>$folder.err &
    server_pid=$!
    started+=($server_pid)
    (dying $moment "${client_command[@]}") >$folder-0.out 2>$folder-0.err || status=$?
    [ $status != 137 ] || "${client_command[@]}" >$folder-0.out 2>$folder-0.err || fail "$folder: $(cat $folder-0.err)"
    finish $server_pid $folder
  fi
  for number in 1 2 3; do finish ${client_pids[$number]} $folder-$number; done
  same_as $folder simulated-$recipe
  [ $status = 137 ] || [ $status = 0 ] || fail "$folder: status $status"
}

jobs=("${@:4}")
[ ${#jobs[@]} -gt 0 ] || jobs=("people server" "people client" "two-exchanges server" "two-exchanges client" "masked server" "masked client")
for job in "${jobs[@]}"; do
  read -r recipe victim moment last <<<"$job"
  moment=${moment:-1}
  while true; do
    federate $victim $moment
    [ $status = 137 ] || break
    [ "$moment" != "${last:-}" ] || break
    rm -rf $recipe-$victim-$moment $recipe-$victim-$moment-*
    moment=$((moment + 1))
    [ $moment -lt 400 ] || fail "$victim: never ends"
  done 2>/dev/null
  echo "$job: killed at each moment before $moment"
  [ $moment -gt 5 ] || fail "$victim: too few moments"
done
[ $# = 3 ] || exit 0

moment=1
while true; do
  folder=two-exchanges-run-$moment
  status=0
  (dying $moment "$program" run two-exchanges.toml --quiet --out $folder) >/dev/null 2>$folder.err || status=$?
  [ $status = 137 ] || break
  resume=(--resume)
  [ -e $folder/recipe.toml ] || resume=()
  "$program" run two-exchanges.toml --quiet --out $folder "${resume[@]}" >/dev/null 2>$folder.err || fail "$folder: $(cat $folder.err)"
  cmp $folder/model.safetensors simulated-two-exchanges/model.safetensors
  moment=$((moment + 1))
done 2>/dev/null
[ $status = 0 ] || fail "simulation: status $status"
echo "two-exchanges, simulation: killed at each of $((moment - 1)) moments"
[ $moment -gt 3 ] || fail "simulation: too few moments"
