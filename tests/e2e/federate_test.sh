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

# The same recipes with eight clients; a small CNN4, on images that are as large as it needs.
python3 - <<'PYTHON'
import gzip, os, random, struct
draw = random.Random(2)
os.makedirs("large/mnist")
for part, count in (("train", 160), ("t10k", 40)):
    labels = [draw.randrange(4) for _ in range(count)]
    pixels = bytes(200 if (y // 8, x // 8) == divmod(label, 2) else draw.randrange(60)
                   for label in labels for y in range(16) for x in range(16))
    for kind, content in (("images-idx3", struct.pack(">IIII", 0x803, count, 16, 16) + pixels),
                          ("labels-idx1", struct.pack(">II", 0x801, count) + bytes(labels))):
        with gzip.open(f"large/mnist/{part}-{kind}-ubyte.gz", "wb") as file:
            file.write(content)
PYTHON
sed -i 's/clients = 4/clients = 8/' one-shot.toml
sed 's/name = "fedtm-bank"/name = "fedtmos"/; s/^name = "one-shot"/name = "fedtmos"/' one-shot.toml >fedtmos.toml
cat >fedbnn.toml <<'TOML'
name = "fedbnn"
seed = 3
rounds = 2
[data]
name = "mnist"
partition = { kind = "iid", clients = 8 }
[model]
name = "cnn4"
width = 16
[method]
name = "fedbnn"
[client]
epochs = 1
batch = 16
TOML
python3 - <<'PYTHON'
rows = open("table.csv").read().splitlines()
with open("eight.csv", "w") as file:
    print(rows[0], file=file)
    for i, row in enumerate(rows[1:]):
        print(f"p{i // 25}," + row.split(",", 1)[1], file=file)
PYTHON
sed 's/table.csv/eight.csv/; s/clients_per_round = 3/clients_per_round = 5/' people.toml >fed-bin-mlp.toml

for recipe in fedtmos fedbnn fed-bin-mlp; do
  export BITFED_DATA=$PWD/data
  [ $recipe = fedbnn ] && export BITFED_DATA=$PWD/large
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
export BITFED_DATA=$PWD/data

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
