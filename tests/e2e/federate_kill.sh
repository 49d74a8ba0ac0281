# Federations whose processes are killed; to be sourced after federate.sh. Servers and clients are kept alive by
# whoever kills them: each is started again until it has ended well.

# keep_serving FOLDER RECIPE OPTION...: a server that is started again as often as it is killed, at a port that stays.
keep_serving() {
  local folder=$1 status=137
  while [ $status = 137 ]; do
    status=0
    serve "$@"
    echo "$server_pid" >"$folder.pid"
    wait "$server_pid" 2>/dev/null || status=$?
  done
  echo $status >"$folder.status"
}
keep_joining() {
  local folder=$1 number=$2 status=137
  while [ $status = 137 ]; do
    status=0
    join "$@"
    echo "$client_pid" >"$folder-$number.pid"
    wait "$client_pid" 2>/dev/null || status=$?
  done
  echo $status >"$folder-$number.status"
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# federate_killed FOLDER RECIPE CLIENTS KILLS SEED VICTIMS: a federation in which, at random moments, KILLS processes
# are killed: the server, clients, or both at once, as VICTIMS (server, clients, both) says. Sets killed.
federate_killed() {
  local folder=$1 recipe=$2 clients=$3 kills=$4 victims=$6 number pid
  RANDOM=$5
  port=$(free_port)
  keep_serving $folder $recipe --plaintext --quiet --linger 60 &
  local keepers=($!)
  started+=($!)
  for ((number = 0; number < clients; ++number)); do
    keep_joining $folder $number --plaintext --quiet &
    keepers+=($!)
    started+=($!)
  done
  killed=0
  while ((killed < kills)) && [ ! -e $folder.status ]; do
    sleep 0.$((RANDOM % 9))$((RANDOM % 10))
    local targets=()
    [ $victims = clients ] || targets+=($folder.pid)
    [ $victims = server ] || targets+=($folder-$((RANDOM % clients)).pid)
    for pid in "${targets[@]}"; do
      pid=$(cat $pid 2>/dev/null) || continue
      started+=($pid)
      kill -KILL $pid 2>/dev/null && killed=$((killed + 1))
    done
  done
  wait "${keepers[@]}"
  [ "$(cat $folder.status)" = 0 ] || fail "$folder: the server ended with $(cat $folder.status): $(tail -n 3 $folder.err)"
  for ((number = 0; number < clients; ++number)); do
    [ "$(cat $folder-$number.status)" = 0 ] ||
      fail "$folder: client $number ended with $(cat $folder-$number.status): $(tail -n 3 $folder-$number.err)"
    cmp $folder/model.safetensors $folder-$number/model.safetensors
  done
}

# same_as FOLDER SIMULATION: the same model, and every update counted once. How much a device trained on is not told where
# its update is masked.
same_as() {
  local name expected
  for name in model_sha256 total_upload_bytes train_samples; do
    expected=$(field $2/summary.json $name)
    [ $name != train_samples ] || ! grep -q '^secure_aggregation = true' $2/recipe.toml || expected=0
    [ "$(field $1/summary.json $name)" = "$expected" ] || fail "$1: another $name"
  done
  python3 - $1 <<'PYTHON' || fail "$1: an update was lost or counted twice"
import json, sqlite3, sys
database = sqlite3.connect(f"file:{sys.argv[1]}/federation.sqlite", uri=True)
chosen = {round: set(json.loads(clients)) for round, clients in database.execute("SELECT round, clients FROM rounds")}
for round, clients in chosen.items():
    accepted = [client for (client,) in database.execute("SELECT client FROM updates WHERE round = ?", (round,))]
    assert sorted(accepted) == sorted(clients), (round, clients, accepted)
PYTHON
}
