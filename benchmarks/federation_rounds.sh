#!/bin/bash
# So many real clients, a process each, and their server on this machine, over TLS: federation_rounds.sh BUILD_DIR [CLIENTS]
# [ROUNDS] [KEY=VALUE...], as privacy.secure_aggregation=true. Each holds twenty points of generated data and trains the
# 1.4 KB perceptron of the health recipes (updates of 16 KB): what is measured is the federation, not the training. Prints
# seconds a round, memory, and the processor time of server and devices in one round.
set -euo pipefail
build=$(realpath "$1")
clients=${2:-100}
rounds=${3:-50}
settings=() devices=()
for setting in "${@:4}"; do settings+=(--set "$setting"); done
work=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
cat >rounds.toml <<TOML
name = "rounds"
rounds = $rounds
[data]
name = "synthetic-health"
devices = $clients
points = 20
partition = { kind = "column" }
[model]
name = "mlp"
hidden = [64, 32, 16]
[method]
name = "fed-bin-mlp"
TOML
"$build/bitfed" certs init >/dev/null 2>&1
"$build/bitfed" certs server 127.0.0.1 >/dev/null 2>&1
for number in $(seq 0 $((clients - 1))); do "$build/bitfed" certs client "client-$number" >/dev/null 2>&1; done
"$build/bitfed" serve rounds.toml --state served --listen 127.0.0.1:0 --certs certs --linger 60 "${settings[@]}" >out 2>err &
server=$!
until port=$(grep -o 'listening on port [0-9]*' err | grep -o '[0-9]*$'); do sleep 0.1; done
for number in $(seq 0 $((clients - 1))); do
  "$build/bitfed-client" --server 127.0.0.1:$port --part "$number" --id "client-$number" --certs certs --state "c$number" \
    >/dev/null 2>"c$number.err" &
  client=$!
  devices+=("$client")
done
# used PID...: processor time so far, in hundredths of a second.
used() { cat "${@/#//proc/}" 2>/dev/null | awk '{used += $14 + $15} END {print used + 0}' || true; }
rss() { awk '/VmRSS/ {print $2}' "/proc/$1/status" 2>/dev/null; }
: >memory
while kill -0 $server 2>/dev/null; do
  resident=$(rss $client || true)
  client_rss=${resident:-${client_rss:-0}}
  finished=$(grep -c '^round ' err || true)
  echo "$finished $(rss $server || true)" >>memory
  # Most of the work of joining is over after the second round; in the last one devices go away.
  if [ "$finished" -ge 2 ] && [ "$finished" -lt "$rounds" ] && [ "$finished" != "${noted:-}" ]; then
    noted=$finished
    echo "$(grep -c '^round ' err) $(used $server/stat) $(used "${devices[@]/%//stat}")" >>processor
  fi
  sleep 0.1
done
wait $server
python3 - "$clients" "$client_rss" <<'PYTHON'
import datetime, json, sys
clients, client_rss = map(int, sys.argv[1:])
events = [json.loads(line) for line in open("served/events.jsonl")]
time = lambda event: datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()
ends = [time(event) for event in events if event["event"] == "round-finished" and event["round"] > 0]
rounds = [b - a for a, b in zip(ends, ends[1:])]
memory = {}
for line in open("memory"):
    fields = line.split()
    if len(fields) == 2:
        memory[int(fields[0])] = int(fields[1])
early = min((round for round in memory if round >= 5), default=max(memory))
begin, end = (list(map(int, line.split())) for line in (lambda lines: (lines[0], lines[-1]))(open("processor").readlines()))
server, devices = (10 * (b - a) / max(end[0] - begin[0], 1) for a, b in zip(begin[1:], end[1:]))
print(f"{clients} clients over TLS: {sum(rounds) / len(rounds):.2f} s a round in the mean of {len(rounds)}, "
      f"{min(rounds):.2f} the fastest, {max(rounds):.2f} the slowest; server {memory[early] / 1000:.1f} MB after round {early}, "
      f"{memory[max(memory)] / 1000:.1f} MB after round {max(memory)}; a client {client_rss / 1000:.1f} MB; "
      f"processor time of a round: server {server:.0f} ms, a device {devices / clients:.1f} ms")
PYTHON
