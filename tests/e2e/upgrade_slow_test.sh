#!/bin/bash
# An upgrade in either order: devices of an earlier build with this server, and the reverse, each to the model of a
# simulation. BITFED_EARLIER names a folder with `bitfed` of an earlier build; without it the test is skipped.
#   upgrade_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
[ -n "${BITFED_EARLIER:-}" ] || { echo "skipped: BITFED_EARLIER is not set"; exit 77; }
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

new=$program
old=$BITFED_EARLIER/bitfed
"$new" certs init >/dev/null 2>&1
"$new" certs server 127.0.0.1 >/dev/null 2>&1
for number in 0 1 2 3; do "$new" certs client client-$number >/dev/null 2>&1; done

# federate NAME SERVER CLIENT: with three devices of CLIENT and one of SERVER's build.
federate() {
  local name=$1 server=$2 client=$3
  port=0
  program=$server
  serve $name people.toml --certs certs --linger 5
  wait_for_port $name
  join $name 0 --certs certs
  program=$client
  for number in 1 2 3; do join $name $number --certs certs; done
  for number in 0 1 2 3; do finish ${client_pids[$number]} $name-$number; done
  finish $server_pid $name
  "$server" run people.toml --quiet --out simulated-$name >/dev/null
  cmp $name/model.safetensors simulated-$name/model.safetensors || fail "$name: another model than the simulation's"
}
echo "-- an earlier device with this server"
federate new-server "$new" "$old"
echo "-- this device with an earlier server"
federate old-server "$old" "$new"

echo "-- a federation that an earlier server began"
sed 's/^rounds = 6/rounds = 60/' people.toml >long.toml
port=0
program=$old
serve upgraded long.toml --certs certs --linger 5
wait_for_port upgraded
for number in 0 1 2 3; do join upgraded $number --certs certs; done
until grep -q 'round 2:' upgraded.err; do sleep 0.05; done
kill $server_pid
wait $server_pid || true
program=$new
serve upgraded long.toml --certs certs --linger 5
for number in 0 1 2 3; do finish ${client_pids[$number]} upgraded-$number; done
finish $server_pid upgraded
"$new" run long.toml --quiet --out simulated-upgraded >/dev/null
cmp upgraded/model.safetensors simulated-upgraded/model.safetensors || fail "upgraded: another model than the simulation's"
