#!/bin/bash
# Server and clients on hosts of their own (network namespaces): 200 ms of delay and 5 % loss where the kernel can do that,
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
{ [ "$(id -u)" = 0 ] && command -v ip tc >/dev/null && ip netns add ${prefix}s 2>/dev/null && ip netns add ${prefix}c; } ||
  { echo "skipped: no network namespaces here"; exit 77; }
ip link add ${prefix}v netns ${prefix}s type veth peer name ${prefix}w netns ${prefix}c
ip -n ${prefix}s addr add 10.77.0.1/24 dev ${prefix}v
ip -n ${prefix}c addr add 10.77.0.2/24 dev ${prefix}w
ip -n ${prefix}s link set ${prefix}v up
ip -n ${prefix}c link set ${prefix}w up
for side in s:v c:w; do
  tc -n $prefix${side%:*} qdisc add dev $prefix${side#*:} root netem delay 100ms loss 5% 2>/dev/null ||
    echo "this kernel has no netem: neither delay nor loss"
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
ip -n ${prefix}c link set ${prefix}w down
before=$(grep -c '^round ' network.err)
sleep 30
during=$(grep -c '^round ' network.err)
ip -n ${prefix}c link set ${prefix}w up
[ $((during - before)) -le 1 ] || fail "rounds went on without clients"
for number in 0 1 2 3; do finish ${client_pids[$number]} network-$number; done
finish $server_pid network
[ "$(field network.json model_sha256)" = "$(field simulated/summary.json model_sha256)" ] || fail "another model"
echo "the same model after a partition of 30 s"
