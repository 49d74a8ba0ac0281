#!/bin/bash
# Secure aggregation changes no byte: the model is that of the same recipe without masks, in a simulation and over TLS
# with eight processes, for every method that averages. Methods that need single updates refuse.
#   masked_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

"$program" run network.toml --quiet --out x --set privacy.secure_aggregation=true >/dev/null 2>x.err || {
  grep -q OpenSSL x.err && { echo "skipped: built without OpenSSL"; exit 77; }
  fail "$(cat x.err)"
}
source "$2/tests/e2e/federate.sh"

# Eight clients each.
sed -i 's/clients = 4/clients = 8/; s/^rounds = .*/rounds = 2/; s/clients_per_round = 3/clients_per_round = 6/' network.toml
python3 - <<'PYTHON'
rows = open("table.csv").read().splitlines()
with open("eight.csv", "w") as file:
    print(rows[0], file=file)
    for i, row in enumerate(rows[1:]):
        print(f"p{i // 25}," + row.split(",", 1)[1], file=file)
PYTHON
sed -i 's/table.csv/eight.csv/; s/clients_per_round = 3/clients_per_round = 5/; s/^rounds = .*/rounds = 3/' people.toml
for method in fedavg fedbnn fedbat; do
  sed "s/^name = \"network\"/name = \"$method\"/; s/^name = \"fedbnn\"/name = \"$method\"/" network.toml >$method.toml
done
cp people.toml latent.toml
sed 's/^name = "fed-bin-mlp"/&\nupload = "bits"/' people.toml >bits.toml

# simulated NAME RECIPE KEY=VALUE...: its model.
simulated() {
  local name=$1 recipe=$2 settings=() setting
  shift 2
  for setting in "$@"; do settings+=(--set "$setting"); done
  "$program" run $recipe.toml --quiet --json --out $name "${settings[@]}" >$name.json || fail "$name"
  field $name.json model_sha256
}

for recipe in fedavg fedbnn fedbat latent bits; do
  plain=$(simulated plain-$recipe $recipe privacy.update_grid=16)
  masked=$(simulated masked-$recipe $recipe privacy.update_grid=16 privacy.secure_aggregation=true)
  [ "$plain" = "$masked" ] || fail "$recipe: masks changed the model"
  [ "$masked" != "$(simulated off-$recipe $recipe)" ] || fail "$recipe: the grid changed nothing"
  lossy=(privacy.update_grid=16 federation.clients_per_round=8 federation.dropout=0.1)
  plain=$(simulated lossy-$recipe $recipe "${lossy[@]}")
  masked=$(simulated lossy-masked-$recipe $recipe "${lossy[@]}" privacy.secure_aggregation=true)
  [ "$plain" = "$masked" ] || fail "$recipe: masks changed the model where clients drop out"
  grep -q client-lost lossy-masked-$recipe/events.jsonl || fail "$recipe: no client dropped out"
  echo "$recipe: simulated $masked"
done

echo "-- over TLS"
"$program" certs init >/dev/null 2>&1
"$program" certs server 127.0.0.1 localhost >/dev/null 2>&1
for number in 0 1 2 3 4 5 6 7; do "$program" certs client client-$number >/dev/null 2>&1; done
for recipe in fedavg fedbnn fedbat latent bits; do
  unset port
  serve $recipe $recipe.toml --certs certs --set privacy.update_grid=16 --set privacy.secure_aggregation=true
  wait_for_port $recipe
  for number in 0 1 2 3 4 5 6 7; do join $recipe $number --certs certs --masked; done
  for number in 0 1 2 3 4 5 6 7; do finish ${client_pids[$number]} $recipe-$number; done
  finish $server_pid $recipe
  [ "$(field $recipe.json model_sha256)" = "$(field plain-$recipe.json model_sha256)" ] ||
    fail "$recipe: not the model of the simulation without masks"
done

echo "-- noise of the devices, over TLS"
sed 's/^name = "fed-bin-mlp"/&\nscaling = "declared"\nlower = [-3, -5]\nupper = [6, 3]/; s/^rounds = .*/rounds = 1/
  s/^clients_per_round = .*/clients_per_round = 8/' people.toml >noise.toml
printf '\n[privacy]\nsecure_aggregation = true\nclip = 1\nnoise_multiplier = 2\nmin_survivors = 6\n' >>noise.toml
sed -i 's/^epochs = .*/epochs = 60000/' noise.toml  # a second or more
grep -q '^epochs = 60000' noise.toml || fail "noise.toml: no epochs"
seeded=$(simulated seeded noise)

# Devices erase the secrets of a sum when it is opened. Copies their state until the federation is over; a copy in which all
# have theirs becomes copy-RUN-NUMBER.
copy_secrets() {
  local run=$1 copies=0
  while kill -0 $server_pid 2>/dev/null && [ ! -s $run.json ]; do
    copies=$((copies + 1))
    mkdir -p copies-$run/$copies
    kill -STOP $server_pid 2>/dev/null || break
    cp -r $run-{0,1,2,3,4,5,6,7} copies-$run/$copies 2>/dev/null || true
    kill -CONT $server_pid 2>/dev/null || break
    sleep 0.05
  done
  python3 - $run $copies <<'PYTHON' || fail "$run: in none of $copies copies all devices have a secret"
import os, sqlite3, sys
run, copies = sys.argv[1], int(sys.argv[2])
def has_secret(folder):
    try:
        with sqlite3.connect(folder + "/client.sqlite") as database:
            return any(database.execute("SELECT secret FROM masked_sum").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return False
for copy in range(1, copies + 1):
    folders = [f"copies-{run}/{copy}/{run}-{number}" for number in range(8)]
    if all(map(has_secret, folders)):
        for number, folder in enumerate(folders):
            os.rename(folder, f"copy-{run}-{number}")
        sys.exit(0)
sys.exit(1)
PYTHON
  rm -r copies-$run
}
for run in noise noise-again; do
  unset port
  serve $run noise.toml --certs certs
  wait_for_port $run
  for number in 0 1 2 3 4 5 6 7; do join $run $number --certs certs --masked; done
  copy_secrets $run
  for number in 0 1 2 3 4 5 6 7; do finish ${client_pids[$number]} $run-$number; done
  finish $server_pid $run
  served=$(field $run.json model_sha256)
  [ "$served" != "$seeded" ] || fail "$run: noise by the seed"
  [ "$served" = "$("$BITFED_NOISE_OF_DEVICES" noise.toml replayed-$run copy-$run)" ] ||
    fail "$run: not the model of a simulation with the devices' noise"
done
[ "$served" != "$(field noise.json model_sha256)" ] || fail "the same noise twice"

echo "-- a client that insists on masks does not take part without"
unset port
serve open latent.toml --certs certs
wait_for_port open
join open 0 --certs certs --masked
status=0
wait $client_pid || status=$?
[ $status = 2 ] || fail "--masked: status $status"
grep -q "expected privacy.secure_aggregation = true" open-0.err || fail "--masked: $(cat open-0.err)"
kill -TERM $server_pid
wait $server_pid || true

echo "-- refused together"
refused() {
  local text=$1
  shift
  "$program" run "$@" --quiet --out refused --set privacy.secure_aggregation=true >/dev/null 2>refused.err && fail "$*: not refused"
  grep -q -- "$text" refused.err || fail "$*: $(cat refused.err)"
}
refused "needs each client's upload by itself" one-shot.toml
refused "needs each client's upload by itself" one-shot.toml --set method.name=fedtmos
refused "needs each client's upload by itself" fedtm.toml
for rule in median trimmed-mean geometric-median; do
  refused "the server sees the sum of the updates, not each" fedavg.toml --set federation.combine=$rule
done
refused "the server sees the sum of the updates, not each" fedavg.toml --set federation.norm_bound=1.0
refused "expected 'quantiles'" latent.toml --set method.scaling=extremes
nothing_half_written
