#!/bin/bash
# So many devices at one server, and a FedTMOS round with all of them: federation_load.sh BUILD_DIR [CLIENTS] [tls]
# Prints how long it took and the server's memory before and after; the devices are federation_load, without training, a
# process for every thousand.
set -euo pipefail
build=$(realpath "$1")
clients=${2:-5000}
tls=${3:-}
ulimit -n $((3 * clients + 1000)) 2>/dev/null || ulimit -n "$(ulimit -Hn)"
work=$(mktemp -d)
trap 'kill $server "${loads[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
loads=()
cd "$work"
cat >load.toml <<TOML
name = "load"
[data]
name = "mnist"
partition = { kind = "iid", clients = 2 }
[model]
clauses = 20
[method]
name = "fedtmos"
[client]
epochs = 1
TOML
"$build/bitfed" run load.toml --quiet --out made >/dev/null
sed "s/^\[method\]/[federation]\nclients = $clients\n[method]/" load.toml >served.toml
trust=(--plaintext)
certs=()
if [ -n "$tls" ]; then
  "$build/bitfed" certs init >/dev/null 2>&1
  "$build/bitfed" certs server 127.0.0.1 >/dev/null 2>&1
  trust=(--certs certs)
  certs=(certs)
fi
"$build/bitfed" serve served.toml --state served --listen 127.0.0.1:0 "${trust[@]}" --linger 60 >out 2>err &
server=$!
until port=$(grep -o 'listening on port [0-9]*' err | grep -o '[0-9]*$'); do sleep 0.1; done
rss() { awk '/VmRSS/ {print $2}' /proc/$server/status; }
before=$(rss)
for ((first = 0; first < clients; first += 1000)); do
  end=$((first + 1000 < clients ? first + 1000 : clients))
  "$build/benchmarks/federation_load" 127.0.0.1:$port $first $end \
    made/checkpoint/round-00001/client-00000.safetensors "${certs[@]}" >load-$first.out 2>load-$first.err &
  loads+=($!)
done
highest=$before
begun=
while kill -0 "${loads[@]}" 2>/dev/null; do
  now=$(rss 2>/dev/null || true)
  [ "${now:-0}" -le "$highest" ] || highest=$now
  [ -n "$begun" ] || ! grep -qs connecting load-*.out || begun=$(date +%s.%N)
  sleep 0.2
done
for load in "${loads[@]}"; do wait $load || tail -n 3 load-*.err; done
wait $server
grep -h accepted load-*.out
python3 - "$before" "$highest" "$clients" "$begun" <<'PYTHON'
import datetime, json, sys
before, highest, clients = map(int, sys.argv[1:4])
begun = float(sys.argv[4])
events = [json.loads(line) for line in open("served/events.jsonl")]
time = lambda event: datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
at = {event["event"]: time(event) for event in events}
print(f"{clients} devices: {at['round-started'] - begun:.1f} s to come, "
      f"{at['round-finished'] - at['round-started']:.1f} s for the round; "
      f"server {before / 1000:.0f} MB before, {highest / 1000:.0f} MB at most, "
      f"{(highest - before) / clients:.0f} KB a device")
PYTHON
