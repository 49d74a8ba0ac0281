#!/bin/bash
# Every command of the program does what its description says.
#   program_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

expect() {  # expect TEXT FILE
  grep -q -- "$1" "$2" || fail "no '$1' in: $(cat "$2")"
}
json() {  # one JSON document and nothing else
  python3 -m json.tool "$1" >/dev/null || fail "not one JSON document: $(cat "$1")"
}
# No page may need anything from outside.
self_contained() {
  python3 - "$1" <<'PYTHON'
import re, sys
page = open(sys.argv[1], encoding="utf-8").read()
assert page.lstrip().lower().startswith("<!doctype html"), "no HTML page"
outside = re.findall(r"""(?:src|href|action|data)\s*=\s*["']?\s*(?:https?:)?//[^"'\s>]*""", page)
outside += re.findall(r"<script[^>]*\ssrc|<link[^>]*stylesheet|@import|url\(\s*[\"']?(?:https?:)?//", page)
assert not outside, outside
PYTHON
}

echo "-- help"
"$program" --help >out
for command in run report reproduce sweep data inspect predict export methods models datasets; do expect "$command" out; done
"$program" --version | grep -Eq '^[0-9]+\.[0-9]+' || fail "no version"
help() {  # help "COMMAND" OPTION...
  "$program" $1 --help >out || fail "$1 --help"
  shift
  for option; do expect "$option" out; done
}
help run RECIPE --set --out --threads --seed --resume --overwrite --json --quiet --data-dir --reuse
help report DIR --out --json
help reproduce PAPER:TABLE --rows --seeds --quick --out --data-dir --recipes --threads --list --quiet
help inspect MODEL --clauses --json
help predict MODEL --data --rows --out --threads --json --data-dir --label --person --ignore
help sweep RECIPE --grid --seeds --set --metrics --out --data-dir --jobs --threads --quiet
help export MODEL --format --out --name
help data list info fetch partition
help "data list" --data-dir
help "data info" --data-dir --set --pictures
help "data fetch" --data-dir
help "data partition" RECIPE --out --set --seed --data-dir
help methods
help models
help datasets

echo "-- listings"
"$program" methods >out
for name in fedtm-bank fedtmos fedtmos-ensemble fedtm; do expect "^$name  *[a-z]" out; done
[ "$(wc -l <out)" = "$(grep -c '^[a-z-]*  ' out)" ] || fail "methods: not one line each"
for method in $(cut -d' ' -f1 out); do
  grep -Eq "^ *at_least [0-9.]+ $method " "$source_dir"/tests/e2e/*accuracy_slow_test.sh || fail "no least accuracy of $method"
done
"$program" models >out
for name in tm ctm ctm-composite; do expect "^$name  *[a-zA-Z]" out; done
"$program" datasets >out
for name in mnist fashion-mnist cifar10 svhn; do expect "^$name  *[a-zA-Z]" out; done

echo "-- data"
"$program" data list >out
expect "^mnist .*$BITFED_DATA" out
"$program" data list --data-dir elsewhere | grep -q "^mnist .*$BITFED_DATA"
"$program" data info mnist >out
expect "400 for training, 120 for testing" out
expect "8 x 8 pixels, 1 channel" out
expect "^pixels    pixel_mean = \[0.[0-9]*\], pixel_std = \[0.[0-9]*\]$" out
expect "^default   pixel_mean = \[0.1307\], pixel_std = \[0.3081\]$" out
"$program" data partition one-shot.toml --out partition.svg >out 2>err
expect "mnist" out
expect "partition.svg" err
[ "$(grep -Ec '^ +[0-3] +100 ' out)" = 4 ] || fail "four clients of a hundred: $(cat out)"
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' partition.svg

echo "-- run"
"$program" run one-shot.toml --out run-a >out 2>err
expect "accuracy" out
expect "$(field run-a/summary.json model_sha256)" out
[ -s err ] || fail "no progress"
for file in recipe.toml events.jsonl model.safetensors report.html summary.json; do
  [ -s run-a/$file ] || fail "no $file"
done
[ -d run-a/checkpoint ] || fail "no checkpoint"
self_contained run-a/report.html
"$program" run one-shot.toml --quiet --json >out 2>err
json out
[ ! -s err ] || fail "--quiet, but $(cat err)"
cmp <(python3 -m json.tool out) <(python3 -m json.tool runs/one-shot/summary.json)
for name in name method model dataset partition clients rounds seed version threads isa accuracy \
  validation_accuracy local_accuracy_mean f1_micro f1_macro balanced_accuracy upload_bytes_per_client upload_bytes_raw \
  download_bytes_per_client total_upload_bytes model_bytes flops binary_ops train_seconds train_samples train_samples_per_second \
  aggregation_seconds evaluation_seconds wall_seconds peak_rss_bytes model_sha256; do
  field out $name >/dev/null || fail "summary without $name"
done
"$program" run one-shot.toml --quiet --json --out set --set model.clauses=4 --set 'method.name=fedtmos' --seed 9 >out
[ "$(field out method) $(field out seed)" = "fedtmos 9" ] || fail "--set, --seed"
grep -q '^clauses = 4$' set/recipe.toml
"$program" run set/recipe.toml --quiet --json --out set-again >again
[ "$(field again model_sha256)" = "$(field out model_sha256)" ] || fail "a resolved recipe gives another model"
# Another method, model or data set than the recipe's: keys that mean nothing to it are dropped, and named.
sed 's/^name = "fedtm-bank"/name = "fedtmos"\nclusters = 5\ngini_threshold = 0.5/' one-shot.toml >fedtmos.toml
"$program" run fedtmos.toml --out switched --set method.name=fedtm-bank >out 2>err
for file in out err; do expect "ignored.*method.clusters, method.gini_threshold" $file; done
expect '"dropped_keys":\["method.clusters","method.gini_threshold"\]' switched/events.jsonl
"$program" run one-shot.toml --quiet --json --out one-shot >out
[ "$(field switched/summary.json model_sha256)" = "$(field out model_sha256)" ] || fail "another model than the recipe's"
cmp <(grep -v ^name switched/recipe.toml) <(grep -v ^name one-shot/recipe.toml) || fail "a resolved recipe keeps dropped keys"
sed 's/^evaluate/booleanize = { kind = "threshold", level = 75 }\nevaluate/' fedtmos.toml >booleanized.toml
"$program" run booleanized.toml --out switched-network --set method.name=fedavg --set model.name=cnn4 --set model.width=4 \
  --set rounds=1 --set data.name=fashion-mnist >out 2>err
expect "ignored.*data.booleanize, method.clusters, method.gini_threshold, model.clauses, model.patch, model.threshold" err
"$program" run people.toml --out switched-data --set data.name=synthetic-health --set data.devices=4 --set data.points=100 \
  --set federation.clients_per_round=2 >out 2>err
expect "ignored.*data.label, data.person" err
"$program" run one-shot.toml --out switched-model --set model.name=tm >out 2>err
expect "ignored.*model.patch" err
"$program" run network.toml --out switched-mlp --set method.name=fed-bin-mlp --set model.name=mlp --set data.file=table.csv \
  --set data.label=kind --set data.person=person --set rounds=1 2>err >out || fail "$(cat err)"
expect "ignored.*model.width" err
"$program" run network.toml --quiet --json --out scaled --set 'data.pixel_mean=[0.5]' --set 'data.pixel_std=[0.25]' >out
grep -a -q '\\"mean\\":\[0.5\]' scaled/model.safetensors || fail "the recipe's pixel_mean is not in the model"
grep -q '^pixel_std = \[0.25\]$' scaled/recipe.toml || fail "the recipe's pixel_std is not in the resolved one"
"$program" run one-shot.toml --quiet --json --out reused --reuse run-a --set method.name=fedtmos-ensemble >out
[ "$(field out reused_uploads)" = 4 ] || fail "--reuse"
[ "$(grep -o '↺' reused/report.html | wc -l)" = 4 ] || fail "the report does not mark reused uploads"
! grep -q '↺' run-a/report.html || fail "the report marks uploads that were not reused"
"$program" run table.toml --quiet --json --out table >out
[ "$(field out clients)" = 4 ] || fail "one client a person"
# Of a one-shot method all that a client sent: the quantiles and every exchange. Of others a round, and the quantiles.
for rounds in 1 2; do
  "$program" run table.toml --quiet --json --out table-$rounds --set rounds=$rounds >out
  sent=$(sed -n 's/.*"client-finished".*"upload_bytes":\([0-9]*\).*/\1/p' table-$rounds/events.jsonl | awk '{ sum += $1 } END { print sum }')
  [ "$(field out total_upload_bytes)" = "$sent" ] || fail "$sent bytes were sent"
  [ "$(field out upload_bytes_per_client)" = $((sent / 4)) ] || fail "$rounds rounds: $sent bytes of four clients"
  [ "$(field out exchanges)" = $((rounds + 1)) ] || fail "the quantiles are an exchange"
done
"$program" run table.toml --quiet --json --out table-fedtm --set method.name=fedtm --set rounds=3 >out
python3 - out <<'PYTHON'
import json, sys
out = json.load(open(sys.argv[1]))
whole = 4 * (out["preparation_upload_bytes_per_client"] + 3 * out["upload_bytes_per_client"])
assert 0 <= out["total_upload_bytes"] - whole < 16 and "exchanges" not in out, out
PYTHON
"$program" run fedtm.toml --quiet --json --out rounds >out
[ "$(grep -c round-finished rounds/events.jsonl)" = 4 ] || fail "four rounds"
# On a terminal, rounds that are shorter than the time between two drawings of the bar.
script -qec "'$program' run people.toml --set rounds=4000 --out short-rounds" /dev/null >out
expect 'round [0-9]*/4000 .*/3 clients' out

echo "-- report"
"$program" report run-a >out
[ -s run-a/report.html ]
"$program" report run-a reused rounds --out compared.html >out 2>err
for name in fedtm-bank fedtmos-ensemble; do expect "$name" compared.html; done
self_contained compared.html
"$program" report run-a reused --json --out compared.html >out
json out
python3 - <<'PYTHON'
import json
assert len(json.load(open("out"))["runs"]) == 2
PYTHON

echo "-- inspect"
"$program" inspect run-a/model.safetensors >out
expect "$(field run-a/summary.json model_sha256)" out
expect "one-bit operations" out
"$program" inspect run-a/model.safetensors --json >out
json out
for name in model_sha256 model_bytes binary_ops flops; do
  [ "$(field out $name)" = "$(field run-a/summary.json $name)" ] || fail "inspect: another $name"
done
"$program" inspect run-a/model.safetensors --clauses 0 >none
"$program" inspect run-a/model.safetensors --clauses 5 >five
[ "$(wc -l <five)" -gt "$(wc -l <none)" ] || fail "--clauses"

echo "-- predict"
"$program" run one-shot.toml --quiet --json --out whole --set data.evaluate=all >out
"$program" predict whole/model.safetensors --data mnist --out predicted.csv --json >json.out
json json.out
[ "$(field json.out accuracy)" = "$(field out accuracy)" ] || fail "predict: another accuracy"
[ "$(field json.out samples)" = 120 ] || fail "predict: samples"
[ "$(head -1 predicted.csv)" = sample,predicted,true ] || fail "predicted.csv: header"
[ "$(wc -l <predicted.csv)" = 121 ] || fail "predicted.csv: rows"
right=$(awk -F, 'NR > 1 && $2 == $3' predicted.csv | wc -l)
python3 -c "assert abs($right / 120 - $(field out accuracy)) < 1e-9" || fail "predicted.csv: $right right"
"$program" predict whole/model.safetensors --data mnist >out
expect "^$right of 120 right" out
"$program" predict table/model.safetensors --data table.csv --label kind --person person --out table-out.csv >out
expect "of 60 right" out
"$program" predict table/model.safetensors --data table.csv --rows all >out
expect "of 200 right" out
grep -Eq '^[0-9]+,(cat|dog),(cat|dog)$' table-out.csv

echo "-- people with models of their own"
python3 - <<'PYTHON'
import random
draw = random.Random(3)
rows = ["person,height,weight,kind"]
for person, count, tall in (("ann", 40, 3), ("bob", 30, -3), ("7", 1, 0)):
    for i in range(count):
        rows.append(f"{person},{draw.gauss(i % 2 * tall, 1):.4f},{draw.gauss(0, 1):.4f},{'dog' if i % 2 else 'cat'}")
open("people.csv", "w").write("\n".join(rows) + "\n")
open("people.toml", "w").write('''name = "people"
rounds = 3
[data]
file = "people.csv"
label = "kind"
person = "person"
partition = { kind = "column" }
[model]
name = "mlp"
hidden = [8]
[method]
name = "fed-bin-mlp"
[client]
epochs = 2
batch = 8
''')
PYTHON
"$program" run people.toml --out people >out 2>err
expect "own models  *[0-9.]* % mean of 2 clients" out
expect "airtime.* up, .* down at 300 bit/s; .* down at 37.5 kbit/s" out
expect "round 3/3: .* accuracy [0-9.]* %, own models [0-9.]* %" err
python3 - <<'PYTHON' || fail "people/summary.json"
import json
summary = json.load(open("people/summary.json"))
people = {person["name"]: person for person in summary["client_results"]}
assert sorted(people) == ["7", "ann", "bob"]
assert people["7"]["test_samples"] == 0 and people["7"]["local_accuracy"] is None
own = [people[name]["local_accuracy"] for name in ("ann", "bob")]
assert abs(sum(own) / 2 - summary["local_accuracy_mean"]) < 1e-9
assert [radio["bits_per_second"] for radio in summary["airtime"]] == [300, 37500]
PYTHON
"$program" report people >out
self_contained people/report.html
for text in "Who gains from a model of their own" "no test rows" "person 7" "Over a slow radio" "Chosen devices"; do
  expect "$text" people/report.html
done
"$program" report people table --out people-compared.html >out
expect "own models" people-compared.html
"$program" inspect people/model.safetensors >out
expect "^  layers.0  *2 x 8  *1  *2 B  *64 B  *0  *32  *[0-9]* %$" out
expect "^  layers.1  *8 x 2  *1  *2 B  *16 B  *16  *4  *[0-9]* %$" out
"$program" inspect people/model.safetensors --json >out
json out
python3 - <<'PYTHON' || fail "inspect --json: the layers do not add up"
import json
model = json.load(open("out"))
layers = model["layers"]
assert [layer["shape"] for layer in layers] == [[2, 8], [8, 2]]
assert sum(layer["weight_bytes"] + layer["norm_bytes"] for layer in layers) == model["model_bytes"]
for name in ("binary_ops", "flops"):
    assert sum(layer[name] for layer in layers) == model[name]
PYTHON
"$program" predict people/model.safetensors --data people.csv --label kind --person person --rows all >out
expect "of 71 right" out

echo "-- export"
for model in run-a table people; do
  "$program" export $model/model.safetensors --format c --out exported-$model >out
  expect "^flash  *[0-9,]* bytes" out
  expect "^RAM  *[0-9,]* bytes" out
  "$program" export $model/model.safetensors --format onnx --out exported-$model >out
  expect "model.onnx  *[0-9,]* bytes" out
  for file in model.h model.c main.c model.onnx; do [ -s exported-$model/$file ] || fail "export: no $file"; done
done
if command -v cc >/dev/null; then
  (cd exported-run-a && cc -std=c99 model.c main.c -o trial && ./trial </dev/null >zeros)
  [ "$(wc -l <exported-run-a/zeros)" = 1 ] || fail "export: no answer to a sample of zeros"
  (cd exported-run-a && head -c 65 /dev/zero | ./trial >/dev/null 2>err) && fail "export: half a sample is taken"
fi
status=0
"$program" export run-a/model.safetensors --format c --out x --name 'a b' 2>err >out || status=$?
[ $status = 2 ] || fail "export --name: status $status"
expect "identifier" err

echo "-- usage"
status=0
"$program" 2>err >out || status=$?
[ $status = 2 ] || fail "no command: status $status"
status=0
"$program" runn one-shot.toml 2>err >out || status=$?
[ $status = 2 ] || fail "an unknown command: status $status"
nothing_half_written
