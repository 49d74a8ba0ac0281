# What the scripts that federate share; to be sourced after tiny.sh. Servers and clients of a script are ended with it.
"$program" serve --help >/dev/null 2>&1 || { echo "skipped: built without BITFED_RPC"; exit 77; }

started=()
# A number may have gone to a process of somebody else's since.
end_all() {
  local pid
  for pid in "${started[@]}"; do
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -e "$program" -e "$0"; then
      kill -KILL "$pid" 2>/dev/null || true
    fi
  done 2>/dev/null
}
trap end_all EXIT

# serve FOLDER RECIPE OPTION...: a server in the background, its messages in FOLDER.err; sets server_pid.
serve() {
  local folder=$1 recipe=$2
  shift 2
  "$program" serve "$recipe" --state "$folder" --listen 127.0.0.1:${port:-0} --json "$@" >"$folder.json" 2>>"$folder.err" &
  server_pid=$!
  started+=("$server_pid")
}

# wait_for_port FOLDER: sets port to the one that the server took.
wait_for_port() {
  local tries=0
  until port=$(grep -o 'listening on port [0-9]*' "$1.err" 2>/dev/null | tail -1 | grep -o '[0-9]*$'); do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "$1: does not listen: $(cat "$1.err")"
    sleep 0.1
  done
}

# join FOLDER NUMBER OPTION...: client NUMBER of the federation in the background, its state in FOLDER-NUMBER; sets
# client_pid and client_pids[NUMBER].
declare -A client_pids
join() {
  local folder=$1 number=$2
  shift 2
  "$program" join --server 127.0.0.1:$port --part "$number" --id "client-$number" --state "$folder-$number" \
    --give-up 120 "$@" >"$folder-$number.out" 2>>"$folder-$number.err" &
  client_pid=$!
  client_pids[$number]=$client_pid
  started+=("$client_pid")
}

# finish PID WHAT: waits for a process that must end well.
finish() {
  local status=0
  wait "$1" || status=$?
  [ $status = 0 ] || fail "$2: status $status: $(tail -n 5 "$2.err")"
}
