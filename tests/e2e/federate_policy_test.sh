#!/bin/bash
# Ten clients, of which three stop answering: two are stopped, one is killed. Rounds end at their deadline, the run ends,
# and who comes back takes part again. Meanwhile /metrics, /healthz and the page are there. Then one of four clients is
# lost between the two exchanges of a one-shot method.
#   federate_policy_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

python3 - <<'PYTHON'
rows = open("table.csv").read().splitlines()
with open("ten.csv", "w") as file:
    print(rows[0], file=file)
    for i, row in enumerate(rows[1:]):
        print(f"p{i // 20}," + row.split(",", 1)[1], file=file)
PYTHON
sed 's/table.csv/ten.csv/; s/^rounds = 6/rounds = 4/; s/clients_per_round = 3/clients_per_round = 10\nminimum_clients = 7\ndeadline_seconds = 1\nleast_answers = 5/' \
  people.toml >policy.toml
serve policy policy.toml --plaintext --linger 3 --http 127.0.0.1:0
wait_for_port policy
http=$(grep -o 'page on port [0-9]*' policy.err | grep -o '[0-9]*$')
get() {
  python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' \
    "http://127.0.0.1:$http$1"
}
[ "$(get /healthz)" = ok ] || fail "healthz"
get /metrics >metrics
grep -q '^bitfed_clients_known ' metrics || fail "metrics: $(cat metrics)"
get / >page.html
grep -q '<h1>people</h1>' page.html || fail "page: $(head -c 500 page.html)"
get /status.json | python3 -c 'import json, sys; assert json.load(sys.stdin)["clients"] == 10'

# Three that are there and never answer: two are stopped, one is killed, as soon as they could be given work.
for number in 7 8 9; do
  join policy $number --plaintext
  tries=0
  until get /status.json | grep -A1 "client-$number" | grep -q ready; do
    tries=$((tries + 1))
    [ $tries -lt 300 ] || fail "client $number does not come"
  done
  if [ $number = 9 ]; then kill -KILL $client_pid; else kill -STOP $client_pid; fi
done
for number in 0 1 2 3 4 5 6; do join policy $number --plaintext; done
for number in 0 1 2 3 4 5 6; do finish ${client_pids[$number]} policy-$number; done
finish $server_pid policy
for number in 7 8; do kill -CONT ${client_pids[$number]} 2>/dev/null || true; done
[ "$(grep -c '"event":"client-lost"' policy/events.jsonl)" -ge 2 ] || fail "nobody was missed"
python3 - <<'PYTHON' || fail "rounds: $(cat policy.err)"
import json
events = [json.loads(line) for line in open("policy/events.jsonl")]
finished = [event for event in events if event["event"] == "round-finished" and event["round"] > 0]
assert len(finished) == 4, finished
assert all(event["uploads"] >= 5 for event in finished), finished
PYTHON

echo "-- lost between two exchanges"
unset port
serve lost two-exchanges.toml --plaintext --linger 3
wait_for_port lost
await() { # FILE TEXT
  local tries=0
  until grep -q "$2" "$1" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 2400 ] || fail "lost: no '$2': $(cat lost.err)"
    sleep 0.05
  done
}
# The first exchange cannot end before client 0 goes on, nor the second with client 3.
join lost 0 --plaintext
for tries in $(seq 600); do  # stopped before it is ready it would keep the first exchange from beginning
  "$program" admin --state lost status 2>/dev/null | grep -q '"ready"' && break
  [ $tries -lt 600 ] || fail "lost: client 0 does not come: $(cat lost.err)"
  sleep 0.1
done
kill -STOP ${client_pids[0]}
for number in 1 2 3; do join lost $number --plaintext; done
await lost/events.jsonl '"event":"client-finished","round":1,"client":3,'
kill -STOP ${client_pids[3]}
kill -CONT ${client_pids[0]}
await lost/events.jsonl '"event":"round-started","round":2,'
"$program" admin --state lost policy deadline_seconds=1 min_answers=3 >admin.out || fail "policy: $(cat admin.out)"
for number in 0 1 2; do finish ${client_pids[$number]} lost-$number; done
finish $server_pid lost
kill -CONT ${client_pids[3]} 2>/dev/null || true
python3 - <<'PYTHON' || fail "rounds: $(cat lost.err)"
import json
events = [json.loads(line) for line in open("lost/events.jsonl")]
finished = {event["round"]: event for event in events if event["event"] == "round-finished"}
assert finished[1]["uploads"] == 4 and finished[2]["uploads"] == 3, finished
PYTHON
cmp lost/model.safetensors lost-0/model.safetensors
