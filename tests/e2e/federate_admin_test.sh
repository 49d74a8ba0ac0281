#!/bin/bash
# An operator at work on a running server: a round that waits for a client which never answers is let go on, the policy is
# changed, a part freed, the state backed up and the server ended and started again; the audit log holds all of it. The
# server outlives the loss of its file descriptors.
#   federate_admin_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

admin() { "$program" admin --state work "$@"; }
# until_true WHAT COMMAND...: waits for it.
until_true() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "$what: $(tail -n 5 work.err)"
    sleep 0.1
  done
}
get() {
  python3 - "http://127.0.0.1:$http$1" <<'PYTHON'
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
PYTHON
}

sed 's/^rounds = 6/rounds = 40/; s/clients_per_round = 3/clients_per_round = 4/' people.toml >work.toml
# Few descriptors: silence takes them all, and the server goes on.
(
  ulimit -n 256
  exec "$program" serve work.toml --state work --listen 127.0.0.1:0 --plaintext --json --linger 5 --http 127.0.0.1:0 \
    >work.json 2>work.err
) &
server_pid=$!
started+=($server_pid)
wait_for_port work
http=$(grep -o 'page on port [0-9]*' work.err | grep -o '[0-9]*$')
[ "$(stat -c %a work/admin.sock)" = 600 ] || fail "others can operate the server"
[ "$(stat -c %a work/federation.sqlite)" = 600 ] || fail "others can read the state"

echo "-- out of descriptors"
python3 - $port <<'PYTHON'
import socket, sys, time
held = []
for i in range(600):
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
time.sleep(1)
PYTHON
[ "$(get /healthz)" = ok ] || fail "no health after descriptors ran out"

echo "-- a client that never answers"
admin pause >/dev/null
get /readyz | grep paused >/dev/null || fail "ready while it is paused: $(get /readyz)"
for number in 0 1 2 3; do join work $number --plaintext; done
until_true "clients do not come" eval 'admin status | grep -c "\"ready\"" | grep -q 4'
kill -STOP ${client_pids[3]}
admin resume >/dev/null
until_true "the first round does not wait" eval 'admin status | grep -q "\"waiting_for\": 1,"'
admin drop client-3 >/dev/null
kill -KILL ${client_pids[3]}
until_true "rounds do not go on" eval '[ $(admin status | grep -m1 "\"round\":" | grep -o "[0-9]*") -gt 2 ]'
admin policy deadline_seconds=30 quorum=0.9 >policy.out
grep -q 'quorum=0.9 deadline_seconds=30' policy.out || fail "policy: $(cat policy.out)"

echo "-- its part for another name"
admin free 3 >/dev/null
status=0
admin free 3 2>err || status=$?
[ $status = 2 ] && grep -q 'no client holds it' err || fail "freed twice: $status: $(cat err)"

echo "-- a backup while it runs, an end between rounds, a new start"
admin backup copy.sqlite >/dev/null
[ "$(stat -c %a copy.sqlite)" = 600 ] || fail "others can read the backup"
python3 - <<'PYTHON'
import sqlite3
copy = sqlite3.connect("copy.sqlite")
assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
assert copy.execute("SELECT COUNT(*) FROM checkpoint").fetchone() == (1,)
assert copy.execute("SELECT quorum FROM policy").fetchone() == (0.9,)
PYTHON
if admin end >/dev/null 2>&1; then
  status=0
  wait $server_pid || status=$?
  [ $status = 0 ] || fail "end: status $status: $(tail -n 3 work.err)"
fi
serve work work.toml --plaintext --linger 5
for number in 0 1 2; do finish ${client_pids[$number]} work-$number; done
finish $server_pid work

echo "-- the audit log"
admin audit >audit.out
grep -q 'lines, the last one' audit.out || fail "audit: $(cat audit.out)"
for act in pause resume 'drop client-3' 'policy deadline_seconds=30 quorum=0.9' 'free 3'; do
  grep -q "\"done\":\"$act\"" work/audit.jsonl || fail "'$act' is not in the audit log"
done
grep -q '"failed":"free 3"' work/audit.jsonl || fail "a failure is not in the audit log"
sed -i '2d' work/audit.jsonl
status=0
admin audit 2>err || status=$?
[ $status = 2 ] && grep -q 'line 2: does not follow' err || fail "a removed line does not show: $status: $(cat err)"
