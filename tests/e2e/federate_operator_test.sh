#!/bin/bash
# Over mutual TLS: an operator's certificate operates the server from elsewhere, a client's does not; a device whose
# certificate is about to expire gets a new one through the server, which does not have the authority's key.
#   federate_operator_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

certs() { "$program" certs "$@" >>certs.out 2>&1 || fail "certs $*: $(cat certs.out)"; }
certs init
certs server 127.0.0.1
certs operator olga
certs client client-0 --days 3
for number in 1 2 3; do certs client client-$number; done
mkdir server-certs
cp certs/{ca.pem,server.pem,server.key} server-certs
status=0
"$program" serve people.toml --state none --listen 127.0.0.1:0 --certs server-certs 2>err || status=$?
[ $status = 2 ] && grep -q 'revoked.pem: found no such file' err || fail "without a revocation list: $status: $(cat err)"
cp certs/revoked.pem server-certs
printf 'client-%d\n' 0 1 2 3 >allowed # operators are not on it
serve work people.toml --set federation.least_answers=2 --certs server-certs --allow allowed --linger 5 --http 127.0.0.1:0
wait_for_port work
http=$(grep -o 'page on port [0-9]*' work.err | grep -o '[0-9]*$')
admin() { "$program" admin --server 127.0.0.1:$port --certs certs --id olga "$@"; }

echo "-- an operator from elsewhere"
admin pause | grep -q paused || fail "pause"
admin status | grep -q '"paused": true' || fail "status: $(admin status)"
refused() {
  local text=$1 status=0
  shift
  "$@" >out 2>err || status=$?
  [ $status = 2 ] && grep -q -- "$text" err || fail "expected '$text', found status $status: $(cat err)"
}
refused "an operator's certificate" "$program" admin --server 127.0.0.1:$port --ca certs/ca.pem \
  --cert certs/clients/client-1.pem --key certs/clients/client-1.key resume
refused "expected one on the server" admin backup copy.sqlite
refused "not known here" admin drop nobody
status=0
"$program" join --server 127.0.0.1:$port --ca certs/ca.pem --cert certs/operators/olga.pem --key certs/operators/olga.key \
  --part 0 --state bad --give-up 5 >out 2>err || status=$?
[ $status = 1 ] && grep -q "does not take part" err || fail "an operator took part: $status: $(cat err)"

echo "-- a certificate that is about to expire"
join work 0 --certs certs
tries=0
until [ -e work/renewals/client-0.req ]; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "the device does not ask: $(cat work-0.err)"
  sleep 0.1
done
# Three days less what has passed since: on a fast machine that is not yet a second.
grep -Eq 'client-0.pem: expires in [23] days' work-0.err || fail "the device does not warn: $(cat work-0.err)"
grep -Eq "the certificate of 'client-0' expires in [23] days" work/events.jsonl || fail "the server does not warn"
cp certs/clients/client-0.pem old.pem
kill ${client_pids[0]}
wait ${client_pids[0]} || true
[ "$("$program" certs renew work/renewals)" = "1 renewed" ] || fail "certs renew"
join work 0 --certs certs
tries=0
# The device says so once the file is there.
until ! cmp -s old.pem certs/clients/client-0.pem && grep -q 'was renewed' work-0.err; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "the device does not take it, or says nothing of it: $(cat work-0.err)"
  sleep 0.1
done
python3 - $http <<'PYTHON'
import sys, urllib.request
page = urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/", timeout=10).read().decode()
assert "certificate expires in" in page and "<strong>2 days</strong>" in page, page
PYTHON

echo "-- paused over a restart, with a key under its new name"
kill $server_pid
wait $server_pid || true
serve work people.toml --set federation.min_answers=2 --certs server-certs --allow allowed --linger 5
tries=0
until admin status 2>/dev/null | grep -q '"paused": true'; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "not paused after a restart: $(tail -n 3 work.err)"
  sleep 0.1
done
for number in 1 2 3; do join work $number --certs certs; done
admin resume >/dev/null
for number in 0 1 2 3; do finish ${client_pids[$number]} work-$number; done
finish $server_pid work
grep -q '"operator":"olga","done":"resume"' work/audit.jsonl || fail "the audit log does not name the operator"
"$program" run people.toml --quiet --out simulated >/dev/null
cmp simulated/model.safetensors work/model.safetensors || fail "another model than the simulation's"
