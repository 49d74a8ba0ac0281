#!/bin/bash
# Who is let in: no certificate, a foreign, expired or revoked one, another's part, another federation's state, silence,
# noise. Each is refused and logged, and the federation goes on to the simulation's model.
#   trust_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

certs() { "$program" certs "$@" >>certs.out 2>&1 || fail "certs $*: $(cat certs.out)"; }
certs init
certs server 127.0.0.1
for number in 0 1 2 3; do certs client client-$number; done
certs client thief
certs client gone
certs revoke gone
certs init --dir foreign
certs client client-0 --dir foreign
# One that ended long ago, signed by the right authority.
if command -v openssl >/dev/null; then
  printf '[ca]\ndefault_ca = d\n[d]\ndatabase = index.txt\nserial = serial\nnew_certs_dir = .\ndefault_md = sha256\npolicy = p\n[p]\ncommonName = supplied\n' >ca.cnf
  touch index.txt
  echo 77 >serial
  openssl ecparam -name prime256v1 -genkey -noout -out expired.key
  openssl req -new -key expired.key -subj /CN=client-0 -out expired.csr
  openssl ca -batch -config ca.cnf -cert certs/ca.pem -keyfile certs/ca.key -in expired.csr -out expired.pem -notext \
    -startdate 200101000000Z -enddate 210101000000Z >openssl.out 2>&1 || fail "openssl: $(cat openssl.out)"
fi

"$program" run people.toml --quiet --out simulated >/dev/null
ulimit -Sn 1024 # the server raises it for itself
serve trust people.toml --certs certs --linger 5
ulimit -Sn "$(ulimit -Hn)"
wait_for_port trust

# refused WHAT TEXT OPTION...: a client that ends without a result, with TEXT.
refused() {
  local what=$1 text=$2 status=0
  shift 2
  "$program" join --server 127.0.0.1:$port --state "bad-$what" --give-up 2 "$@" >out 2>err || status=$?
  [ $status != 0 ] && [ ! -s out ] || fail "$what: was let in"
  grep -q -- "$text" err || fail "$what: expected '$text' in: $(cat err)"
  echo "   $what: $(tail -n 1 err)"
}
echo "-- refused"
refused revoked "'gone' was revoked" --certs certs --id gone --part 0
refused foreign "" --ca certs/ca.pem --cert foreign/clients/client-0.pem --key foreign/clients/client-0.key --part 0
refused server-unknown "" --ca foreign/ca.pem --cert certs/clients/client-0.pem --key certs/clients/client-0.key --part 0
refused plaintext "" --plaintext --id client-0 --part 0
refused mixed "not the key of" --ca certs/ca.pem --cert certs/clients/client-0.pem --key certs/clients/client-1.key --part 0
if [ -e expired.pem ]; then
  refused expired "expired on 2021-01-01" --ca certs/ca.pem --cert expired.pem --key expired.key --part 0
  # And by a client that does not look at its own: the server hangs up, as it does not on a good one.
  for name in expired certs/clients/client-0; do
    sleep 1 | openssl s_client -connect 127.0.0.1:$port -CAfile certs/ca.pem -cert $name.pem -key $name.key -alpn h2 \
      >out 2>&1 || true
    hung_up=$(grep -c 'unexpected eof' out || true)
    [ $hung_up = $([ $name = expired ] && echo 1 || echo 0) ] || fail "$name: $(cat out)"
  done
fi
refused as-server "" --ca certs/ca.pem --cert certs/server.pem --key certs/server.key --part 0
refused too-far "expected 0 to 3" --certs certs --id thief --part 4

echo "-- silence and noise"
resident() { awk '/VmRSS/ {print $2}' /proc/$server_pid/status; }
before=$(resident)
python3 - $port <<'PYTHON'
import os, random, socket, ssl, sys
port = int(sys.argv[1])
draw = random.Random(3)
held = []
for i in range(1000):  # connections that say nothing stay open while the federation runs
    held.append(socket.create_connection(("127.0.0.1", port)))
for i in range(50):
    with socket.create_connection(("127.0.0.1", port)) as noisy:
        noisy.sendall(draw.randbytes(draw.randrange(1, 3000)))
context = ssl.create_default_context(cafile="certs/ca.pem")
context.load_cert_chain("certs/clients/client-0.pem", "certs/clients/client-0.key")
context.set_alpn_protocols(["h2"])
for i in range(20):  # good certificates, bad frames
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1") as noisy:
        noisy.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + draw.randbytes(draw.randrange(1, 3000)))
if os.fork() == 0:
    os.close(1)
    os.close(2)
    import time
    time.sleep(20)
PYTHON
grown=$(($(resident) - before))
[ $grown -lt 100000 ] || fail "1,000 silent connections took $grown KB"
echo "   1,000 silent connections took $grown KB of the server's memory"

echo "-- the federation itself"
join trust 0 --certs certs
sleep 0.5
# A second one of the same name takes the place of the first, which ends.
for number in 1 2 3; do join trust $number --certs certs; done
for number in 0 1 2 3; do finish ${client_pids[$number]} trust-$number; done
# The others never were clients, so nobody is waited for.
finish $server_pid trust
[ "$(field trust/summary.json model_sha256)" = "$(field simulated/summary.json model_sha256)" ] || fail "another model"
grep -q '"kind":"refused"' trust/events.jsonl || fail "not logged"
# Not through a pipe: one that grep -q closes early would count as a failure.
grep '"kind":"handshake"' trust/events.jsonl >handshakes
grep -q 'certificate verify failed' handshakes || fail "foreign certificates are not logged"

echo "-- one federation's state is not for another"
unset port
serve other people.toml --certs certs --linger 5
wait_for_port other
rm trust-2/model.safetensors
status=0
"$program" join --server 127.0.0.1:$port --state trust-2 --certs certs --id client-2 --part 2 >out 2>err || status=$?
[ $status = 1 ] && grep -q "the client's state belongs to" err || fail "foreign state: $status: $(cat err)"

echo "-- a new certificate while it runs"
if command -v openssl >/dev/null; then
  serial() { openssl x509 -noout -serial -in "$1"; }
  served() {
    openssl s_client -connect 127.0.0.1:$port -CAfile certs/ca.pem -cert certs/clients/client-0.pem \
      -key certs/clients/client-0.key -alpn h2 </dev/null 2>/dev/null >served.pem || true
    serial served.pem
  }
  [ "$(served)" = "$(serial certs/server.pem)" ] || fail "serves another certificate"
  certs server 127.0.0.1
  tries=0
  until [ "$(served)" = "$(serial certs/server.pem)" ]; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "the new certificate is not taken up"
    sleep 0.2
  done
fi

echo "-- revoked while it is connected"
join other 3 --certs certs
sleep 1
grep -q "client 3 'client-3'" other.err || fail "client 3 is not there: $(cat other.err)"
certs revoke client-3
status=0
wait $client_pid || status=$?
[ $status = 1 ] && grep -q 'certificate was revoked' other-3.err || fail "stays: $status: $(cat other-3.err)"
kill -HUP $server_pid
sleep 0.2
kill -TERM $server_pid
status=0
wait $server_pid || status=$?
[ $status = 0 ] && grep -q 'the same command goes on' other.err || fail "stop: $status: $(cat other.err)"
