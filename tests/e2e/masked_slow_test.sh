#!/bin/bash
# Secure aggregation with clients that die: three of ten at each of their syncs and commits in turn, for ever, which is
# in every phase; the model is that of the survivors without masks. With four of ten too few are left: nothing is opened, and the
# round is begun again with the others.
#   masked_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
source "$2/tests/e2e/federate_kill.sh"
[ -e "${BITFED_DIE_AT_SYNC_LIBRARY:-}" ] || { echo "skipped: no library to kill with"; exit 77; }
ldd "$program" | grep -q libasan && { echo "skipped: not beside a sanitizer"; exit 77; }

sed -i 's/clients = 4/clients = 10/; s/^rounds = .*/rounds = 1/; s/^name = "fedbnn"/name = "fedavg"/; s/^epochs = .*/epochs = 1/' network.toml
sed -i 's/^clients_per_round = .*/deadline_seconds = 8/' network.toml
cat >>network.toml <<'TOML'
[privacy]
update_grid = 16
phase_seconds = 8
TOML
sed 's/^phase_seconds/secure_aggregation = true\n&/' network.toml >masked.toml
sed -i '/^phase_seconds/d' network.toml

# joining FOLDER NUMBER MOMENT: a client in the background that dies at that moment; sets client_pid.
joining() {
  (
    export BITFED_DIE_AT_SYNC=$3 LD_PRELOAD=$BITFED_DIE_AT_SYNC_LIBRARY
    exec "$program" join --server 127.0.0.1:$port --part $2 --id client-$2 --state $1-$2 --plaintext --give-up 60
  ) >/dev/null 2>$1-$2.err &
  client_pid=$!
  started+=($client_pid)
}

# federate FOLDER RECIPE CLIENTS DYING MOMENT: that many clients, and that many more that die at that moment.
federate() {
  local folder=$1 recipe=$2 clients=$3 dying=$4 moment=$5 number
  port=$(free_port)
  "$program" serve $recipe.toml --state $folder --listen 127.0.0.1:$port --plaintext --quiet --json --linger 5 \
    --set federation.minimum_clients=$((clients + dying)) >$folder.json 2>$folder.err &
  server_pid=$!
  started+=($server_pid)
  for ((number = 0; number < clients + dying; ++number)); do
    if [ $number -ge $clients ]; then
      joining $folder $number $moment
    else
      join $folder $number --plaintext --quiet
    fi
  done
  if [ $dying -gt 3 ]; then
    # Too few are left of those that the round was begun with; the next one does not wait for the dead.
    until [ "$(grep -c client-disconnected $folder/events.jsonl 2>/dev/null || true)" -ge $dying ] 2>/dev/null; do sleep 0.2; done
    for ((number = clients; number < clients + dying; ++number)); do
      "$program" admin --state $folder drop client-$number >/dev/null
    done
  fi
  finish $server_pid $folder
  sha=$(field $folder.json model_sha256)
}

federate six network 6 0 0
six=$sha
federate seven network 7 0 0
seven=$sha
federate ten network 10 0 0
ten=$sha

federate all masked 10 0 0
[ "$sha" = "$ten" ] || fail "all: masks changed the model"

# The first moment after joining: one that a client which waits for work has not come to.
port=$(free_port)
"$program" serve masked.toml --state alone --listen 127.0.0.1:$port --plaintext --quiet --linger 5 >/dev/null 2>&1 &
started+=($!)
first=1
while true; do
  rm -rf alone-0
  joining alone 0 $first
  for ((tries = 0; tries < 50; ++tries)); do
    kill -0 $client_pid 2>/dev/null || break
    grep -q "client 0 of" alone-0.err 2>/dev/null && break
    sleep 0.1
  done
  sleep 0.5
  kill -0 $client_pid 2>/dev/null && break
  first=$((first + 1))
  [ $first -lt 80 ] || fail "a client never joins"
done
seen=
# List of keys (2), update (2 and its sync), survivors and with them the verdict (2 and its sync).
moments=8
for ((moment = first; moment < first + moments; ++moment)); do
  federate three-$moment masked 7 3 $moment
  case $sha in
    "$seven") seen="$seen 7" ;;
    "$ten") seen="$seen 10" ;;
    *) fail "three-$moment: neither the sum of seven nor of ten" ;;
  esac
  rm -rf three-$moment*
done
echo "three of ten killed at moments $first to $((first + moments - 1)): sums of$seen"
[[ $seen == *7* && $seen == *10* ]] || fail "not every phase was met"

federate four masked 6 4 $((first + 3))
[ "$sha" = "$six" ] || fail "four: not the sum of the six that are left"
grep -q "too few" four/events.jsonl || fail "four: the round was not begun again"
echo "four of ten killed: begun again with six"
