#!/bin/bash
# A server and a device that are restored from an older copy go on, and say so: the devices of the server, the server of
# the device.
#   federate_restored_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

admin() { "$program" admin --state work "$@"; }
until_true() { # WHAT COMMAND...
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "$what: $(tail -n 5 work.err work-0.err)"
    sleep 0.1
  done
}
past_round() { [ "$(admin status | grep -m1 '"round":' | grep -o '[0-9]*')" -gt "$1" ]; }

sed 's/^rounds = 6/rounds = 3000/; s/clients_per_round = 3/clients_per_round = 4/' people.toml >work.toml
serve work work.toml --plaintext --linger 5
wait_for_port work
for number in 0 1 2 3; do join work $number --plaintext; done

echo "-- a device"
until_true "no rounds" past_round 3
kill ${client_pids[0]}
wait ${client_pids[0]} || true
cp -r work-0 older-0
join work 0 --plaintext
# Past the round that it is asked for at once: an update of it was accepted since the copy.
at=$(admin status | grep -m1 '"round":' | grep -o '[0-9]*')
until_true "rounds do not go on" past_round $((at + 2))
kill ${client_pids[0]}
wait ${client_pids[0]} || true
! grep -q 'restored' work/events.jsonl || fail "restored, before anything was: $(grep restored work/events.jsonl)"
rm -r work-0
mv older-0 work-0
join work 0 --plaintext
until_true "a restored device is not noticed" grep -q "client 'client-0' comes with the state after round" work/events.jsonl

echo "-- the server"
admin backup older.sqlite >/dev/null
at=$(admin status | grep -m1 '"round":' | grep -o '[0-9]*')
until_true "rounds do not go on" past_round $((at + 3))
kill $server_pid
wait $server_pid || true
rm -f work/federation.sqlite*
mv older.sqlite work/federation.sqlite
serve work work.toml --plaintext --linger 5
until_true "a restored server is not noticed" grep -q 'restored from an older copy' work-1.err
admin end >/dev/null
finish $server_pid work
