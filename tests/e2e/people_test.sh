#!/bin/bash
# Fed-Bin-MLP on the tables that people have: what is odd is trained on, noted, or refused in one line.
#   people_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

# people FILE [CHANGE]: four people with forty rows each, two numbers that tell two classes apart, changed by
# a Python statement on `rows`, lists of person, height, weight, kind.
people() {
  python3 - "$@" <<'PYTHON'
import random, sys
draw = random.Random(7)
rows = []
for person in ("ann", "bob", "cem", "dia"):
    for i in range(40):
        kind = i % 2
        numbers = [f"{draw.gauss(middle * kind, 1):.4f}" for middle in (4, -4)]
        rows.append([person, *numbers, "dog" if kind else "cat"])
if len(sys.argv) > 2:
    exec(sys.argv[2])
with open(sys.argv[1], "w") as file:
    print("person,height,weight,kind", file=file)
    for row in rows:
        print(*row, sep=",", file=file)
PYTHON
}
cat >people.toml <<'TOML'
name = "people"
seed = 2
rounds = 4
[data]
file = "good.csv"
label = "kind"
person = "person"
test_fraction = 0.25
partition = { kind = "column" }
[model]
name = "mlp"
hidden = [8]
[method]
name = "fed-bin-mlp"
[client]
epochs = 3
batch = 8
learning_rate = 0.01
TOML

# accept NAME OPTION...: a run that ends well, its summary in NAME.json, all its numbers finite.
accept() {
  local name=$1
  shift
  "$program" run people.toml --quiet --json --out "$name" "$@" >"$name.json" 2>err || fail "$name: $(cat err)"
  [ ! -s err ] || fail "$name: $(cat err)"
  finite "$name" || fail "$name: numbers that are not finite"
}
finite() {
  python3 - "$1" <<'PYTHON'
import json, math, struct, sys
def refuse(text):
    raise ValueError(text)
json.load(open(f"{sys.argv[1]}/summary.json"), parse_constant=refuse)
data = open(f"{sys.argv[1]}/model.safetensors", "rb").read()
(size,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + size])
scaling = json.loads(header.pop("__metadata__")["bitfed.scaling"], parse_constant=refuse)
numbers = scaling["offset"] + scaling["factor"] + [scaling["limit"]]
for entry in header.values():
    begin, end = (8 + size + place for place in entry["data_offsets"])
    if entry["dtype"] == "F32":
        numbers += struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
assert all(math.isfinite(number) for number in numbers)
PYTHON
}
# holds NAME EXPRESSION: of a summary `s` and its people `p` by name.
holds() {
  python3 - "$@" <<'PYTHON' || fail "$1: not so: $2"
import json, sys
s = json.load(open(sys.argv[1] + ".json"))
p = {row["name"]: row for row in s["client_results"]}
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}
# refuse STATUS TEXT OPTION...: a run that ends with one line and leaves no result.
refuse() {
  local expected=$1 text=$2 status=0
  shift 2
  rm -rf bad
  "$program" run people.toml --quiet --out bad "$@" >out 2>err || status=$?
  [ $status = "$expected" ] || fail "$*: status $status, expected $expected: $(cat err)"
  [ "$(wc -l <err)" = 1 ] || fail "$*: not one line: $(cat err)"
  grep -Eq -- "^bitfed: .*$text" err || fail "$*: expected '$text' in: $(cat err)"
  [ ! -s out ] && [ ! -e bad/summary.json ] && [ ! -e bad/model.safetensors ] || fail "$*: left a result"
  nothing_half_written
  echo "   $(cat err)"
}

echo "-- as it should be"
people good.csv
accept good
holds good 's["accuracy"] > 0.9 and s["local_accuracy_mean"] > 0.9 and s["notes"] == []'
holds good '[p[name]["test_samples"] for name in ("ann", "bob", "cem", "dia")] == [10, 10, 10, 10]'

echo "-- columns"
refuse 2 "good.csv: .*kinds.*kind" --set data.label=kinds
refuse 2 "good.csv: .*persons.*person" --set data.person=persons
sed 's/^person,/who,/' good.csv >who.csv
refuse 2 "who.csv: .*person" --set data.file=who.csv

echo "-- people"
people alone.csv 'rows = [row for row in rows if row[0] == "ann"]'
refuse 2 "found one person, 'ann', .*expected at least two" --set data.file=alone.csv
people one-class.csv 'rows = [row for row in rows if row[0] != "bob" or row[3] == "cat"]'
accept one-class --set data.file=one-class.csv
holds one-class 's["accuracy"] > 0.8 and p["bob"]["samples"] == 15 and p["bob"]["test_samples"] == 5'
holds one-class 'p["bob"]["local_accuracy"] is not None and s["client_class_counts"][1] == [15, 0]'
people one-row.csv 'rows = [row for i, row in enumerate(rows) if row[0] != "bob" or i == 40]'
accept one-row --set data.file=one-row.csv
holds one-row 's["accuracy"] > 0.8 and p["bob"]["samples"] == 1 and p["bob"]["test_samples"] == 0'
holds one-row 'p["bob"]["local_accuracy"] is None and p["bob"]["global_accuracy"] is None'
for batch in 1 65536; do
  accept one-row-$batch --set data.file=one-row.csv --set client.batch=$batch
done
people rows-of-one.csv 'rows = [row for i, row in enumerate(rows) if i % 40 == 0]'
refuse 2 "rows-of-one: found no test row" --set data.file=rows-of-one.csv

echo "-- numbers"
people constant.csv 'for row in rows: row[2] = 5'
for scaling in extremes quantiles; do
  for precision in binary full; do
    accept constant-$scaling-$precision --set data.file=constant.csv --set method.scaling=$scaling \
      --set model.precision=$precision
    holds constant-$scaling-$precision 's["accuracy"] > 0.8'
  done
done
people all-constant.csv 'for row in rows: row[1] = row[2] = 5'
accept all-constant --set data.file=all-constant.csv
holds all-constant '0.4 < s["accuracy"] < 0.6'
people outlier.csv 'rows[45][1] = 3e38; rows[47][2] = -3e38'
accept outlier --set data.file=outlier.csv --set method.scaling=quantiles
holds outlier 's["accuracy"] > 0.9 and s["local_accuracy_mean"] > 0.9'
accept outlier-extremes --set data.file=outlier.csv --set method.scaling=extremes
people far.csv 'for row in rows: row[1] = float(row[1]) * 1e30'
for scaling in quantiles extremes; do
  accept far-$scaling --set data.file=far.csv --set method.scaling=$scaling
  holds far-$scaling 's["accuracy"] > 0.8'
done

echo "-- rows and labels"
people holes.csv 'rows[3][1] = ""; rows[50][3] = "NA"; rows[90][0] = ""'
accept holes --set data.file=holes.csv
holds holes '"3 rows with empty cells were left out" in s["notes"]'
holds holes '[p[name]["samples"] for name in ("ann", "bob", "cem", "dia")] == [29, 29, 29, 30]'
people late.csv 'rows[39][3] = "cow"'
accept late --set data.file=late.csv
holds late '"class '"'cow'"' is only in the test rows: no client can learn it" in s["notes"]'
holds late 's["confusion_matrix"][s["class_names"].index("cow")][s["class_names"].index("cow")] == 0'

echo "-- a learning rate that is too high"
for precision in binary full; do
  for upload in latent bits; do
    [ $precision-$upload = full-bits ] && continue
    folder=fast-$precision-$upload
    status=0
    "$program" run people.toml --quiet --json --out $folder --set client.learning_rate=10 --set rounds=20 \
      --set model.precision=$precision --set method.upload=$upload >out 2>err || status=$?
    case $status in
      0) finite $folder || fail "$folder: numbers that are not finite" ;;
      1)
        [ "$(wc -l <err)" = 1 ] && grep -q 'lower client.learning_rate' err || fail "$folder: $(cat err)"
        [ ! -e $folder/model.safetensors ] || fail "$folder: a model although it diverged"
        ;;
      *) fail "$folder: status $status: $(cat err)" ;;
    esac
  done
done
refuse 1 'diverged.*method.mix = "equation3" makes them grow' --set rounds=400 \
  --set method.mix=equation3 --set method.lambda=1 --set model.precision=full
refuse 2 'client.learning_rate' --set client.learning_rate=11
refuse 2 'client.learning_rate' --set client.learning_rate=0

echo "-- what does not go together"
refuse 2 "method.upload: found 'bits', expected 'latent'" --set method.upload=bits --set model.precision=full
refuse 2 "model.name: 'mnist' holds images" --set 'data={name="mnist",partition={kind="iid",clients=4}}'

echo "-- who takes part"
accept few --set federation.clients_per_round=1 --set rounds=2
python3 - <<'PYTHON' || fail "people who never took part"
import json
events = map(json.loads, open("few/events.jsonl"))
trained = [event for event in events if event["event"] == "client-finished" and event["round"] > 0]
took_part = {event["client"] for event in trained}
rows = json.load(open("few.json"))["client_results"]
assert 1 <= len(took_part) <= 2
assert all((row["local_accuracy"] is not None) == (row["client"] in took_part) for row in rows), rows
assert all(row["global_accuracy"] is not None for row in rows)
PYTHON
"$program" report few >out 2>err || fail "report: $(cat err)"
refuse 1 'no client answered in any of [0-9]* rounds' --set federation.dropout=1
accept lossy --set federation.dropout=0.2 --set rounds=8

echo "-- what clients kept is gone"
resume() {
  status=0
  "$program" run people.toml --quiet --json --out good --resume >again.json 2>err || status=$?
}
# As after a crash between the last checkpoint and the summary.
rm good/summary.json good/model.safetensors
resume
[ $status = 0 ] || fail "resume: $(cat err)"
python3 - <<'PYTHON' || fail "resume: another result"
import json
first, again = json.load(open("good.json")), json.load(open("again.json"))
assert all(first[name] == again[name] for name in ("model_sha256", "client_results", "local_accuracy_mean"))
PYTHON
rm good/summary.json good/model.safetensors good/checkpoint/clients/*.safetensors
resume
[ $status = 2 ] && [ "$(wc -l <err)" = 1 ] || fail "resume without states: status $status: $(cat err)"
grep -q 'clients/round-00004.safetensors: missing, and the checkpoint of round 4' err || fail "$(cat err)"
[ ! -s again.json ] && [ ! -e good/summary.json ] && [ ! -e good/model.safetensors ] ||
  fail "resume: left a result"
echo "   $(cat err)"
nothing_half_written
