#!/bin/bash
# The device's program, as it ships: stripped under 1.5 MB beside shared libraries, resident under 30 MB while it waits.
#   client_size_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

cmake -S "$2" -B release -G Ninja -DCMAKE_BUILD_TYPE=Release -DBITFED_TESTS=OFF >configure.log 2>&1 || fail "$(tail configure.log)"
cmake --build release --target bitfed_client bitfed_program >build.log 2>&1 || fail "$(tail build.log)"
strip -o bitfed-client release/bitfed-client
bytes=$(stat -c %s bitfed-client)
echo "stripped: $bytes bytes"
if [ "$(uname -m)" = x86_64 ]; then
  [ "$bytes" -lt 1500000 ] || fail "bitfed-client has $bytes bytes, expected less than 1500000"
fi
readelf -dW bitfed-client | grep BIND_NOW >/dev/null || fail "bitfed-client: no full RELRO"
readelf -dW release/bitfed | grep BIND_NOW >/dev/null || fail "bitfed: no full RELRO"
readelf -lW bitfed-client | grep GNU_RELRO >/dev/null || fail "bitfed-client: no RELRO"
readelf -sW release/bitfed-client | grep __stack_chk_fail >/dev/null || fail "bitfed-client: no stack protector"
readelf -sW release/bitfed-client | grep '_chk@' >/dev/null || fail "bitfed-client: no checked copies (FORTIFY)"
readelf -hW bitfed-client | grep DYN >/dev/null || fail "bitfed-client: not position-independent"

"$program" certs init >/dev/null 2>&1
"$program" certs server 127.0.0.1 >/dev/null 2>&1
"$program" certs client client-0 >/dev/null 2>&1
serve idle people.toml --certs certs
wait_for_port idle
./bitfed-client --server 127.0.0.1:$port --part 0 --id client-0 --certs certs --state idle-0 >/dev/null 2>idle-0.err &
client=$!
started+=($client)
tries=0
until grep -q "client 0 'client-0'" idle.err; do
  tries=$((tries + 1))
  [ $tries -lt 300 ] || fail "the client does not come: $(cat idle-0.err)"
  sleep 0.1
done
sleep 2
resident=$(awk '/VmRSS/ {print $2}' /proc/$client/status)
echo "waiting: $resident KB resident"
[ "$resident" -lt 30000 ] || fail "a waiting client has $resident KB resident, expected less than 30000"
