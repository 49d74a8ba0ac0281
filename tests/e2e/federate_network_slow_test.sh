#!/bin/bash
# Server and clients on hosts of their own (network namespaces), between them 200 ms each way, 5 % of all packets lost,
# and a partition of 30 s in mid-round. Needs root.
#   federate_network_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

prefix=bf$$
cleanup() {
  end_all
  ip netns del ${prefix}s 2>/dev/null || true
  ip netns del ${prefix}c 2>/dev/null || true
}
trap cleanup EXIT
{ [ "$(id -u)" = 0 ] && [ -e /dev/net/tun ] && command -v ip >/dev/null && ip netns add ${prefix}s 2>/dev/null &&
  ip netns add ${prefix}c; } || { echo "skipped: no network namespaces here"; exit 77; }
python3 "$2/tests/e2e/lossy_link.py" ${prefix}s 10.77.0.1/24 ${prefix}c 10.77.0.2/24 0.2 0.05 >link.out 2>link.err &
started+=($!)
tries=0
until grep -q ready link.out; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || fail "no link: $(cat link.err)"
  sleep 0.1
done

"$program" certs init >/dev/null 2>&1
"$program" certs server 10.77.0.1 >/dev/null 2>&1
sed -i 's/^rounds = 6/rounds = 12/; s/^epochs = 3/epochs = 20000/' people.toml
"$program" run people.toml --quiet --out simulated >/dev/null
ip netns exec ${prefix}s "$program" serve people.toml --state network --listen 10.77.0.1:7443 --certs certs --json \
  >network.json 2>network.err &
server_pid=$!
started+=($server_pid)
for number in 0 1 2 3; do
  "$program" certs client client-$number >/dev/null 2>&1
  ip netns exec ${prefix}c "$program" join --server 10.77.0.1:7443 --part $number --id client-$number --certs certs \
    --state network-$number >network-$number.out 2>network-$number.err &
  client_pids[$number]=$!
  started+=($!)
done
tries=0
until grep -q '^round 2:' network.err; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || fail "no round: $(cat network.err)"
  sleep 0.1
done
ip -n ${prefix}c link set wire down
before=$(grep -c '^round ' network.err)
sleep 30
during=$(grep -c '^round ' network.err)
ip -n ${prefix}c link set wire up
[ $((during - before)) -le 1 ] || fail "rounds went on without clients"
for number in 0 1 2 3; do finish ${client_pids[$number]} network-$number; done
finish $server_pid network
[ "$(field network.json model_sha256)" = "$(field simulated/summary.json model_sha256)" ] || fail "another model"
lost=$(tail -n 1 link.out | sed "s/.*, \([0-9]*\) lost/\1/")
[ "$lost" -gt 0 ] || fail "no packet was lost: $(tail -n 1 link.out)"
echo "the same model after a partition of 30 s; $(tail -n 1 link.out)"
