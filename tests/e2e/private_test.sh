#!/bin/bash
# Differential privacy: in a simulation by the seed, in a served federation by the system's generator; epsilon wherever
# it is shown; the run ends before it passes its bound; kill -9 neither draws noise again nor loses spent epsilon.
#   private_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

sed -i 's/^name = "fed-bin-mlp"/name = "fed-bin-mlp"\nscaling = "declared"\nlower = [-3, -5]\nupper = [6, 3]/' people.toml
private=(--set privacy.clip=1 --set privacy.noise_multiplier=2)
"$program" run people.toml --quiet --json --out a "${private[@]}" >a.json
"$program" run people.toml --quiet --json --out b --threads 1 "${private[@]}" >b.json
"$program" run people.toml --quiet --json --out c --seed 6 "${private[@]}" >c.json
[ "$(field a.json model_sha256)" = "$(field b.json model_sha256)" ] || fail "same seed, another model"
[ "$(field a.json model_sha256)" != "$(field c.json model_sha256)" ] || fail "another seed, same model"
[ "$(field a.json private_rounds)" = 6 ] || fail "private_rounds: $(field a.json private_rounds)"
# What the summary spent is what the accountant says for 3 of 4 clients.
spent=$("$program" privacy epsilon --noise-multiplier 2 --sampling 0.75 --rounds 6)
python3 -c 'import sys; assert abs(float(sys.argv[1]) - float(sys.argv[2])) < 1e-5' "$spent" "$(field a.json epsilon)" ||
  fail "epsilon $(field a.json epsilon), expected $spent"
python3 - a/events.jsonl "$spent" <<'PYTHON' || fail "events: epsilon"
import json, sys
rounds = [json.loads(line) for line in open(sys.argv[1])]
spent = [event["epsilon"] for event in rounds if event["event"] == "round-finished"]
assert len(spent) == 6 and spent == sorted(spent) and abs(spent[-1] - float(sys.argv[2])) < 1e-5, spent
PYTHON
grep -q 'protects nobody' a/summary.json || fail "the simulation does not say that it protects nobody"
grep -q "models of the clients' own are not part of it" a/summary.json || fail "the summary does not say what epsilon leaves out"
grep -q 'Privacy spent' a/report.html || fail "no curve in the report"

# A target: the noise is found, and the same recipe as resolved means the same.
"$program" run people.toml --quiet --json --out d --set privacy.clip=1 --set privacy.epsilon=3 >d.json
python3 -c 'import sys; assert 2.9 < float(sys.argv[1]) <= 3' "$(field d.json epsilon)" || fail "epsilon $(field d.json epsilon)"
"$program" run d/recipe.toml --quiet --json --out e >e.json
[ "$(field d.json model_sha256)" = "$(field e.json model_sha256)" ] || fail "as resolved: another model"

# A bound.
"$program" run people.toml --json --out f "${private[@]}" --set privacy.max_epsilon=3.5 >f.json 2>f.err
rounds=$(field f.json private_rounds)
[ "$rounds" -ge 1 ] && [ "$rounds" -lt 6 ] || fail "bound: $rounds rounds"
grep -q "round $((rounds + 1)) is not run: it would spend epsilon" f.err || fail "bound: $(cat f.err)"
[ "$(field f.json model_round)" = "$rounds" ] || fail "bound: the model of round $(field f.json model_round)"

# A plan, and an audit.
"$program" privacy plan d/recipe.toml --out plan.svg >plan.txt 2>/dev/null
grep -q 'stops at epsilon 3 after round 6' plan.txt || fail "plan: $(cat plan.txt)"
grep -q '<svg' plan.svg || fail "plan: no picture"
"$program" privacy audit d --repeats 2 --quiet --json >audit.json
python3 - <<'PYTHON' || fail "audit: $(cat audit.json)"
import json
audit = json.load(open("audit.json"))
assert audit["guesses"] == 8 and 0 <= audit["right"] <= 8 and 0.9 < audit["advantage_bound"] < 1
assert audit["advantage_low"] <= audit["advantage"] <= audit["advantage_high"]
PYTHON
# Each repetition of an audit has noise and clients of its own; without the number all is as it was.
[ "$(grep -h '^draw' d/audit/run-1/recipe.toml d/audit/run-2/recipe.toml)" = $'draw = 1\ndraw = 2' ] || fail "audit: draws"
for draw in 0 1 2; do
  "$program" run people.toml --quiet --json --out draw-$draw "${private[@]}" --set privacy.draw=$draw \
    --set federation.without=[0] >draw-$draw.json
done
"$program" run people.toml --quiet --json --out no-draw "${private[@]}" --set federation.without=[0] >no-draw.json
[ "$(field draw-0.json model_sha256)" = "$(field no-draw.json model_sha256)" ] || fail "draw 0: another model"
[ "$(for draw in 0 1 2; do field draw-$draw.json model_sha256; done | sort -u | wc -l)" = 3 ] || fail "draws: the same noise"

refused() {
  local text=$1 status=0
  shift
  "$program" run "$@" --quiet --out refused >out.txt 2>err.txt || status=$?
  [ $status = 2 ] || fail "run $*: status $status: $(cat err.txt)"
  [ "$(wc -l <err.txt)" = 1 ] || fail "run $*: $(cat err.txt)"
  grep -q -- "$text" err.txt || fail "run $*: $(cat err.txt)"
}
refused 'privacy.max_epsilon: round 1 is not run' people.toml "${private[@]}" --set privacy.max_epsilon=0.01
rm -rf refused
refused 'expected a method that averages' one-shot.toml "${private[@]}"
refused 'asks clients for ranges' people.toml "${private[@]}" --set method.scaling=quantiles --set 'method.lower=[]' \
  --set 'method.upper=[]'
refused 'found without privacy.clip' people.toml --set privacy.epsilon=1
refused "expected 'equal'" people.toml "${private[@]}" --set privacy.weights=samples
refused 'one for each of the 2 columns' people.toml --set 'method.lower=[1]'

# Clients add the noise: the same model with masks and without, also where clients drop out; sampling is not counted.
shared=(--set federation.clients_per_round=4 --set privacy.min_survivors=3 --set federation.dropout=0.1 "${private[@]}")
"$program" run people.toml --quiet --json --out g "${shared[@]}" --set privacy.noise=clients >g.json
if "$program" run people.toml --quiet --json --out h "${shared[@]}" --set privacy.secure_aggregation=true >h.json 2>h.err; then
  masks=true
  [ "$(field g.json model_sha256)" = "$(field h.json model_sha256)" ] || fail "clients' noise: masks changed the model"
  grep -q client-lost h/events.jsonl || fail "clients' noise: nobody dropped out"
else
  grep -q OpenSSL h.err || fail "clients' noise with masks: $(cat h.err)"
  masks=false
fi
rounds=$(field g.json private_rounds)
spent=$("$program" privacy epsilon --noise-multiplier 2 --rounds $rounds)
python3 -c 'import sys; assert abs(float(sys.argv[1]) - float(sys.argv[2])) < 1e-5' "$spent" "$(field g.json epsilon)" ||
  fail "clients' noise: epsilon $(field g.json epsilon), expected $spent"
refused 'expected .clients.: the server would see the sum without noise' people.toml "${private[@]}" \
  --set privacy.secure_aggregation=true --set privacy.noise=server
refused 'privacy.min_survivors: found 4, expected at most the 3 clients of a round' people.toml "${private[@]}" \
  --set privacy.noise=clients --set privacy.min_survivors=4
status=0
"$program" privacy audit g --repeats 2 --quiet >out.txt 2>err.txt || status=$?
[ $status = 2 ] && grep -q 'found noise that clients add' err.txt || fail "audit of clients' noise: $(cat err.txt)"
status=0
"$program" serve people.toml --plaintext --listen 127.0.0.1:0 --state refused "${private[@]}" --set privacy.noise=clients \
  >out.txt 2>err.txt || status=$?
[ $status = 2 ] && grep -q "found 'clients' without secure_aggregation" err.txt || fail "served in the clear: $(cat err.txt)"

# Over a network, with kills: no round is seen with two different sums, and all that was seen is counted.
source "$source_dir/tests/e2e/federate.sh"
source "$source_dir/tests/e2e/federate_kill.sh"
sed -i 's/^rounds = 6/rounds = 60/' people.toml
printf '\n[privacy]\nclip = 1\nnoise_multiplier = 4\n' >>people.toml
federate_killed served people.toml 4 6 2 both
check_rounds() { python3 - $1 $2 <<'PYTHON' || fail "$1: a sum was drawn again, or not counted"; }
import json, sys
seen = {}
for line in open(sys.argv[1] + "/events.jsonl"):
    event = json.loads(line)
    if event["event"] == "round-finished":
        seen.setdefault(event["round"], set()).add((event.get("accuracy"), event["epsilon"], event["upload_bytes"]))
summary = json.load(open(sys.argv[1] + "/summary.json"))
assert all(len(values) == 1 for values in seen.values()), seen
assert summary["private_rounds"] == int(sys.argv[2]), summary["private_rounds"]
PYTHON
check_rounds served 60
grep -q 'protects nobody' served/summary.json && fail "served: says that it protects nobody"
federate_killed again people.toml 4 0 2 both
[ "$(field again/summary.json model_sha256)" != "$(field served/summary.json model_sha256)" ] ||
  fail "served: noise by the seed"
[ $masks = false ] && exit 0

# The same with noise of the devices, which is not the seed's either.
sed 's/^rounds = 60/rounds = 15/; s/^clients_per_round = 3/clients_per_round = 4/' people.toml >masked.toml
printf 'secure_aggregation = true\nmin_survivors = 3\n' >>masked.toml
"$program" run masked.toml --quiet --json --out simulated >simulated.json
for run in masked masked-again; do
  federate_killed $run masked.toml 4 4 3 both
  check_rounds $run 15
  [ "$(field $run/summary.json model_sha256)" != "$(field simulated.json model_sha256)" ] || fail "$run: noise by the seed"
done
[ "$(field masked/summary.json model_sha256)" != "$(field masked-again/summary.json model_sha256)" ] ||
  fail "masked: the same noise twice"
echo "killed $killed"
