#!/bin/bash
# 200 members, of which 20 attack the server in all ways of hostile_members.cc at once: federation_attack.sh BUILD_DIR
# [SECONDS]. First as many rounds without the attack as fit into SECONDS (300); then the same number of rounds under it.
# Prints the rounds' times, the server's memory, the log's size, what /healthz said, and whether the models are the same.
set -euo pipefail
build=$(realpath "$1")
seconds=${2:-300}
ulimit -n "$(ulimit -Hn)"
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
cat >base.toml <<TOML
name = "attack"
rounds = 1
[data]
name = "mnist"
partition = { kind = "iid", clients = 200 }
[model]
name = "custom"
layers = ["dense classes bias"]
[method]
name = "fedavg"
[client]
epochs = 1
TOML
"$build/bitfed" run base.toml --quiet --out made >/dev/null
update=$(ls made/checkpoint/round-00001/client-*.safetensors | head -1)
"$build/bitfed" certs init >/dev/null 2>&1
"$build/bitfed" certs server 127.0.0.1 >/dev/null 2>&1

# federate NAME ROUNDS ATTACKERS: one federation of 180 honest devices.
federate() {
  local name=$1 rounds=$2 attackers=$3
  sed "s/^rounds = 1/rounds = $rounds/" base.toml >$name.toml
  printf '[federation]\nclients_per_round = 200\nminimum_clients = 180\nquorum = 0.9\ndeadline_seconds = 60\nmin_answers = 160\n' >>$name.toml
  "$build/bitfed" serve $name.toml --state $name --listen 127.0.0.1:0 --certs certs --http 127.0.0.1:0 --linger 5 >$name.out 2>$name.err &
  local server=$!
  pids+=($server)
  until grep -q 'page on port' $name.err; do sleep 0.1; done
  local port=$(grep -o 'listening on port [0-9]*' $name.err | grep -o '[0-9]*$')
  local http=$(grep -o 'page on port [0-9]*' $name.err | grep -o '[0-9]*$')
  "$build/benchmarks/federation_load" 127.0.0.1:$port 0 180 "$update" certs >$name.load 2>&1 &
  local load=$!
  pids+=($load)
  if [ $attackers -gt 0 ]; then
    "$build/benchmarks/hostile_members" 127.0.0.1:$port certs 180 $attackers $((2 * seconds)) >$name.attack 2>&1 &
    pids+=($!)
  fi
  local hostile=$!
  : >$name.health
  while kill -0 $load 2>/dev/null; do
    echo "$(awk '/VmRSS/ {print $2}' /proc/$server/status 2>/dev/null) $(python3 -c "
import time, urllib.request
begin = time.time()
try: said = urllib.request.urlopen('http://127.0.0.1:$http/healthz', timeout=10).read().decode().strip()
except Exception as error: said = 'failed'
print(said, round(time.time() - begin, 3))")" >>$name.health
    sleep 1
  done
  wait $server || echo "$name: the server ended with status $?"
  if [ $attackers -gt 0 ]; then kill $hostile 2>/dev/null || true; fi
}

federate probe 20 0
rounds=$(python3 - probe $seconds <<'PYTHON'
import datetime, json, sys
events = [json.loads(line) for line in open(sys.argv[1] + "/events.jsonl")]
time = lambda event: datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
times = [time(event) for event in events if event["event"] == "round-finished"]
print(max(20, int(float(sys.argv[2]) / ((times[-1] - times[0]) / (len(times) - 1)))))
PYTHON
)
federate quiet $rounds 0
federate attacked $rounds 20
python3 - <<'PYTHON'
import collections, datetime, hashlib, json, os, statistics
def time(event): return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
for name in ("quiet", "attacked"):
    events = [json.loads(line) for line in open(f"{name}/events.jsonl")]
    begun = {event["round"]: time(event) for event in events if event["event"] == "round-started"}
    took = [time(event) - begun[event["round"]] for event in events if event["event"] == "round-finished"]
    health = [line.split() for line in open(f"{name}.health")]
    memory = [int(line[0]) for line in health if line[0].isdigit()]
    said = collections.Counter(line[-2] for line in health)
    faults = collections.Counter(event["kind"] for event in events if event["event"] == "client-fault")
    print(f"{name}: {len(took)} rounds, {statistics.median(took):.2f} s median, {max(took):.2f} s longest; "
          f"memory {max(memory) / 1000:.0f} MB at most; log {os.path.getsize(f'{name}/events.jsonl') / 1e6:.1f} MB; "
          f"/healthz {dict(said)}, slowest {max(float(line[-1]) for line in health):.2f} s; faults logged {dict(faults)}")
    print("  model", hashlib.sha256(open(f"{name}/model.safetensors", "rb").read()).hexdigest())
PYTHON
cat attacked.attack 2>/dev/null || true
