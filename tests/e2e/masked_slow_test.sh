#!/bin/bash
# Secure aggregation with clients that die: three of ten at each of their syncs in turn, for ever, which is in every
# phase; the model is that of the survivors without masks. With four of ten too few are left: nothing is opened, and the
# round is begun again with the others.
#   masked_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
source "$2/tests/e2e/federate_kill.sh"
[ -e "${BITFED_DIE_AT_SYNC_LIBRARY:-}" ] || { echo "skipped: no library to kill with"; exit 77; }
ldd "$program" | grep -q libasan && { echo "skipped: not beside a sanitizer"; exit 77; }

sed -i 's/clients = 4/clients = 10/; s/^rounds = .*/rounds = 1/; s/^name = "fedbnn"/name = "fedavg"/; s/^epochs = .*/epochs = 1/' network.toml
sed -i 's/^clients_per_round = .*/deadline_seconds = 8/; /^select/d' network.toml
cat >>network.toml <<'TOML'
[privacy]
update_grid = 16
phase_seconds = 8
TOML
sed 's/^phase_seconds/secure_aggregation = true\n&/' network.toml >masked.toml
sed -i '/^phase_seconds/d' network.toml

# federate FOLDER RECIPE CLIENTS DYING MOMENT: that many clients, and that many more that die at their sync MOMENT.
federate() {
  local folder=$1 recipe=$2 clients=$3 dying=$4 moment=$5 number
  port=$(free_port)
  "$program" serve $recipe.toml --state $folder --listen 127.0.0.1:$port --plaintext --quiet --json --linger 5 \
    --set federation.minimum_clients=$((clients + dying)) >$folder.json 2>$folder.err &
  server_pid=$!
  started+=($server_pid)
  for ((number = 0; number < clients + dying; ++number)); do
    if [ $number -ge $clients ]; then
      (
        export BITFED_DIE_AT_SYNC=$moment LD_PRELOAD=$BITFED_DIE_AT_SYNC_LIBRARY
        exec "$program" join --server 127.0.0.1:$port --part $number --id client-$number --state $folder-$number \
          --plaintext --quiet --give-up 60
      ) >/dev/null 2>&1 &
      client_pids[$number]=$!
      started+=($!)
    else
      join $folder $number --plaintext --quiet
    fi
  done
  finish $server_pid $folder
  sha=$(field $folder.json model_sha256)
}

federate six network 6 0 0
six=$sha
federate seven network 7 0 0
seven=$sha
federate ten network 10 0 0
ten=$sha

# How many syncs a client makes before it is ready: those of joining. A client that dies before is not waited for.
federate all masked 10 0 0
[ "$sha" = "$ten" ] || fail "all: masks changed the model"
first=3
seen=
for ((moment = first; moment < first + 8; ++moment)); do
  federate three-$moment masked 7 3 $moment
  case $sha in
    "$seven") seen="$seen 7" ;;
    "$ten") seen="$seen 10" ;;
    *) fail "three-$moment: neither the sum of seven nor of ten" ;;
  esac
  rm -rf three-$moment*
done
echo "three of ten killed at syncs $first to $((first + 7)): sums of$seen"
[[ $seen == *7* && $seen == *10* ]] || fail "not every phase was met"

federate four masked 6 4 $((first + 3))
[ "$sha" = "$six" ] || fail "four: not the sum of the six that are left"
grep -q "too few" four/events.jsonl || fail "four: the round was not begun again"
echo "four of ten killed: begun again with six"
