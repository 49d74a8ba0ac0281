#!/bin/bash
# A federation of processes over TLS ends with the bytes that the simulation gives, for each kind of method.
#   federate_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

certs() { "$program" certs "$@" >>certs.out 2>&1 || fail "certs $*: $(cat certs.out)"; }
certs init
certs server 127.0.0.1 localhost
for number in 0 1 2 3 4 5 6 7; do certs client client-$number; done
[ "$(stat -c %a certs/ca.key certs/clients/client-0.key | sort -u)" = 600 ] || fail "keys that others can read"

# The same recipes with eight clients.
sed -i 's/clients = 4/clients = 8/' one-shot.toml two-exchanges.toml fedtm.toml
sed 's/name = "fedtm-bank"/name = "fedtmos"/; s/^name = "one-shot"/name = "fedtmos"/' one-shot.toml >fedtmos.toml
sed 's/clients = 4/clients = 8/; s/^name = "network"/name = "fedbnn"/' network.toml >fedbnn.toml
python3 - <<'PYTHON'
rows = open("table.csv").read().splitlines()
with open("eight.csv", "w") as file:
    print(rows[0], file=file)
    for i, row in enumerate(rows[1:]):
        print(f"p{i // 25}," + row.split(",", 1)[1], file=file)
PYTHON
sed 's/table.csv/eight.csv/; s/clients_per_round = 3/clients_per_round = 5/' people.toml >fed-bin-mlp.toml

sed 's/name = "fedbnn"/name = "scaffold"/' fedbnn.toml >scaffold.toml

for recipe in fedtmos two-exchanges fedtm fedbnn scaffold fed-bin-mlp; do
  "$program" run $recipe.toml --quiet --json --out simulated-$recipe >simulated-$recipe.json
  unset port
  serve $recipe $recipe.toml --certs certs
  wait_for_port $recipe
  for number in 0 1 2 3 4 5 6 7; do join $recipe $number --certs certs; done
  for number in 0 1 2 3 4 5 6 7; do finish ${client_pids[$number]} $recipe-$number; done
  finish $server_pid $recipe
  expected=$(field simulated-$recipe.json model_sha256)
  [ "$(field $recipe.json model_sha256)" = "$expected" ] || fail "$recipe: not the simulation's model"
  for name in total_upload_bytes train_samples upload_bytes_per_client download_bytes_per_client accuracy; do
    [ "$(field $recipe.json $name)" = "$(field simulated-$recipe.json $name)" ] || fail "$recipe: another $name"
  done
  cmp $recipe/model.safetensors simulated-$recipe/model.safetensors
  for number in 0 7; do cmp $recipe/model.safetensors $recipe-$number/model.safetensors; done
  [ -s $recipe/report.html ] || fail "$recipe: no report"
  echo "$recipe: $expected"
done
nothing_half_written

echo "-- a finished federation, served again, gives its result to who comes late"
unset port
: >fedtmos.err
serve fedtmos fedtmos.toml --certs certs --linger 30
wait_for_port fedtmos
rm -r fedtmos-3*
join fedtmos 3 --certs certs
finish $client_pid fedtmos-3
cmp fedtmos/model.safetensors fedtmos-3/model.safetensors
kill -TERM $server_pid
finish $server_pid fedtmos

echo "-- another recipe is refused with the difference"
status=0
"$program" serve fedtmos.toml --state fedtmos --listen 127.0.0.1:0 --certs certs --set client.epochs=4 2>err || status=$?
[ $status = 2 ] && grep -q "'epochs = 3' there, 'epochs = 4' here" err || fail "changed recipe: $status: $(cat err)"

echo "-- plaintext is for loopback alone"
status=0
"$program" serve fedtmos.toml --state plain --listen 0.0.0.0:0 --plaintext 2>err || status=$?
[ $status = 2 ] && grep -q 'expected 127.0.0.1' err || fail "plaintext to all: $status: $(cat err)"
