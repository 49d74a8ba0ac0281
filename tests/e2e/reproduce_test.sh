#!/bin/bash
# A paper's table: run, resumed after a kill, in part, as a quick trial; bad definitions and missing data.
#   reproduce_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

expect() {  # expect TEXT FILE
  grep -q -- "$1" "$2" || fail "no '$1' in: $(cat "$2")"
}
refuse() {  # refuse TEXT ARGUMENT...
  local text=$1 status=0
  shift
  "$program" reproduce "$@" >out 2>err || status=$?
  [ $status = 2 ] || fail "$*: status $status: $(cat err)"
  [ "$(wc -l <err)" = 1 ] || fail "$*: not one line: $(cat err)"
  grep -Eq -- "$text" err || fail "$*: expected '$text' in: $(cat err)"
  [ ! -s out ] || fail "$*: a result although it failed"
}
digests() {  # the models of all cells
  (cd "$1" && for cell in */; do echo "$cell $(field "$cell/summary.json" model_sha256)"; done)
}

mkdir -p recipes/papers
cp one-shot.toml recipes/
table=recipes/papers/tiny-table1.toml
cat >$table <<'TOML'
title = "A tiny table"
source = "A tiny paper"
row_header = ["data", "clients"]
seeds = [0, 20]
set = ["client.epochs=120"]
quick = ["client.epochs=1"]
clients_from = "fedtm-bank"
notes = ["A known difference."]
[[column]]
key = "fedtmos"
name = "FedTMOS"
method = "fedtmos"
metric = "accuracy"
[[column]]
key = "bank"
name = "fedtm-bank"
method = "fedtm-bank"
metric = "accuracy"
against = "fedtmos"
[[row]]
name = "mnist/4"
recipe = "one-shot.toml"
paper = { fedtmos = [50, 1.5] }
[[row]]
name = "mnist/2"
recipe = "one-shot.toml"
set = ["data.partition.clients=2"]
paper = { fedtmos = [100.5, 0.25] }
[[row]]
name = "svhn/4"
recipe = "one-shot.toml"
set = ["data.name=svhn"]
paper = { fedtmos = [60, 1] }
TOML
# The same federations by another name: nothing is to be trained again.
sed -e 's/A tiny table/Costs/; s/"accuracy"/"upload"/; s/\["data", "clients"\]/["data"]/; s|mnist/|mnist-|; s|svhn/|svhn-|' \
  $table >recipes/papers/tiny-table2.toml
run=("$program" reproduce --threads 1)

echo "-- listing"
"${run[@]}" >out
expect '^tiny:table1  A tiny table (3 rows, 2 seeds)$' out
[ "$(wc -l <out)" = 2 ] || fail "not one line each: $(cat out)"
"${run[@]}" --list | cmp - out
(cd / && "$program" reproduce --list --recipes "$work/recipes") | cmp - out

echo "-- the whole table"
"${run[@]}" tiny:table1 --out whole >out 2>err
expect "rows skipped: data set 'svhn' is not on this machine; .*fetch" err
expect 'run 1/8, mnist/4, seed 0, fedtm-bank' err
expect 'left for the table' err
expect '^mnist/2: FedTMOS .*(paper 100.50 ± 0.25)' err
expect '^mnist/4 *50.00 ± 1.50 .* ± .* +' out
expect '^mnist/2 .*▼' out
expect '^svhn/4 *60.00 ± 1.00 *– *– *– *–' out
expect '^- A known difference' out
for file in table.md table.csv table.html; do
  [ -s whole/tiny-table1/$file ] || fail "no $file"
  ! grep -q 'seed 0 alone' whole/tiny-table1/$file || fail "$file: a quick trial?"
done
expect '^| mnist | 2 | 100.50 ± 0.25 | ' whole/tiny-table1/table.md
expect "^svhn/4: not run, data set 'svhn' is not on this machine" whole/tiny-table1/table.md
[ "$(wc -l <whole/tiny-table1/table.csv)" = 7 ] || fail "table.csv: $(cat whole/tiny-table1/table.csv)"
[ "$(ls whole/cells | wc -l)" = 8 ] || fail "cells: $(ls whole/cells)"
for cell in whole/cells/*; do
  for file in recipe.toml summary.json model.safetensors report.html events.jsonl; do
    [ -s $cell/$file ] || fail "$cell: no $file"
  done
  case $cell in
    *-fedtm-bank-*) expect '"origin":"trained"' $cell/events.jsonl ;;
    *) ! grep -q '"origin":"trained"' $cell/events.jsonl || fail "$cell: trained again" ;;
  esac
done
# Means and population deviations, by hand.
python3 - <<'PYTHON'
import csv, glob, json, statistics
rows = {(r["row"], r["column"]): r for r in csv.DictReader(open("whole/tiny-table1/table.csv"))}
for clients, row in ((4, "mnist/4"), (2, "mnist/2")):
    for method, column in (("fedtmos", "FedTMOS"), ("fedtm-bank", "fedtm-bank")):
        summaries = [json.load(open(f)) for f in glob.glob(f"whole/cells/*-{clients}-clients-*-{method}-*/summary.json")]
        found = [100 * s["accuracy"] for s in summaries if s["method"] == method]
        assert len(found) == 2, found
        cell = rows[row, column]
        assert abs(float(cell["ours_mean"]) - statistics.mean(found)) < 1e-9, (cell, found)
        assert abs(float(cell["ours_deviation"]) - statistics.pstdev(found)) < 1e-9, (cell, found)
        assert abs(float(cell["difference"]) - (statistics.mean(found) - float(cell["paper_mean"]))) < 1e-9
PYTHON
digests whole/cells >whole.digests

echo "-- again, and another table of the same cells"
before=$(cat whole/cells/*/events.jsonl | wc -l)
"${run[@]}" tiny:table1 --out whole --quiet >again 2>/dev/null
cmp again out
"${run[@]}" tiny:table2 --out whole --quiet >out 2>/dev/null
expect '^Costs' out
[ "$(cat whole/cells/*/events.jsonl | wc -l)" = "$before" ] || fail "a finished cell went on"

echo "-- several runs at once"
"${run[@]}" tiny:table1 --jobs 3 --out together >out 2>err
digests together/cells | cmp - whole.digests
for number in 1 2 3 4 5 6 7 8; do expect "^run $number/8, .*seed" err; done
expect '^mnist/4: FedTMOS' err
expect '^mnist/2: FedTMOS' err
cmp together/tiny-table1/table.csv whole/tiny-table1/table.csv
# One of them fails: those under way are finished, and the command says why.
sed 's/data.partition.clients=2"/model.claws=2"/' $table >recipes/papers/claws-table1.toml
refuse "claws-table1.toml: row 'mnist/2': .*model.claws: unknown key" claws:table1 --rows mnist --seeds 0 --jobs 4 --quiet --out claws
[ "$(ls claws/cells/*/summary.json | wc -l)" = 2 ] || fail "runs under way were not finished: $(ls claws/cells)"
rm recipes/papers/claws-table1.toml

echo "-- killed, stopped and resumed"
stop_after() {  # stop_after SIGNAL COUNT: starts, waits for so many trained clients, sends the signal; sets status
  local tries=0 pid
  "${run[@]}" tiny:table1 --out killed >out 2>err &
  pid=$!
  until [ "$(cat killed/cells/*/events.jsonl 2>/dev/null | grep -c '"trained"' || true)" -ge $2 ]; do
    kill -0 $pid 2>/dev/null || break
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "nothing happens"
    sleep 0.02
  done
  kill -$1 $pid 2>/dev/null || true
  status=0
  wait $pid 2>/dev/null || status=$?
}
catch() {  # as stop_after, and once more from the beginning where all was over before the signal came
  local try
  for try in 1 2 3 4 5 6 7 8; do
    stop_after "$@"
    [ $status = 0 ] || return 0
    rm -rf killed
  done
}
catch KILL 2
[ $status = 137 ] || fail "not caught at work"
catch INT 5
[ $status = 1 ] || fail "Ctrl-C: status $status: $(cat err)"
expect 'stopped; what is finished is kept: the same command goes on' err
[ -s killed/tiny-table1/table.html ] || fail "no table of what is finished"
"${run[@]}" tiny:table1 --jobs 2 --out killed >out 2>err
# Each client's upload is kept once it is there: only those in training were lost.
trained=$(cat killed/cells/*/events.jsonl | grep -c '"origin":"trained"')
[ "$trained" -le 14 ] || fail "$trained clients trained, 12 needed"
cmp out again
digests killed/cells | cmp - whole.digests

echo "-- some rows"
"${run[@]}" tiny:table1 --rows 'mnist/2' --seeds 20 --out part >out 2>err
expect '^mnist/2 .*(1 of 2 seeds)' out
! grep -q '^mnist/4' out || fail "a row that was not asked for"
[ "$(ls part/cells | wc -l)" = 2 ] || fail "cells: $(ls part/cells)"
expect '| mnist | 4 | 50.00 ± 1.50 | – |' part/tiny-table1/table.md
"${run[@]}" tiny:table1 --rows mnist --out part --quiet >out 2>/dev/null
expect '^| mnist | 2 | .* ± ' part/tiny-table1/table.md
! grep -q '(1 of 2 seeds)' part/tiny-table1/table.md || fail "seeds are missing"

echo "-- other settings: cells and a table of their own, which say so"
cp -r whole set
other=("${run[@]}" tiny:table1 --rows mnist/4 --seeds 0 --set client.epochs=3 --set model.threshold=9 --out set)
"${other[@]}" >out 2>err
expect ' 2 of 2 runs to do' err
[ "$(ls set/cells | wc -l)" = $(($(ls whole/cells | wc -l) + 2)) ] || fail "cells: $(ls set/cells)"
diff -r whole/tiny-table1 set/tiny-table1 || fail "the table with its own settings has changed"
for file in table.md table.html; do
  expect 'All rows were run with --set client.epochs=3 --set model.threshold=9' set/tiny-table1-????????/$file
done
! grep -q 'were run with' set/tiny-table1/table.md || fail "the table with its own settings names others"
"${other[@]}" >out 2>err
expect ' 0 of 2 runs to do' err
refuse "epochs: found the string 'many'" tiny:table1 --set client.epochs=many --out set

echo "-- a quick trial"
"${run[@]}" tiny:table1 --rows mnist --quick --out whole >out 2>err
expect "^QUICK TRIAL, not the paper's table: seed 0 alone, client.epochs=1" out
for file in table.md table.csv table.html; do
  expect 'seed 0 alone, client.epochs=1' whole/quick/tiny-table1/$file
  ! grep -q 'seed 0 alone' whole/tiny-table1/$file || fail "$file: the full table is marked"
done
[ "$(ls whole/quick/cells | wc -l)" = 4 ] || fail "cells: $(ls whole/quick/cells)"
grep -q 'epochs = 1$' whole/quick/cells/*/recipe.toml
digests whole/cells | cmp - whole.digests

echo "-- the papers' tables over folders, where they are"
python3 - <<'PYTHON'
import json, os, random, struct, zlib
draw = random.Random(1)


def png(side):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + draw.randbytes(3 * side) for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


top, classes = "folders/tiny-imagenet-200", ["n01", "n02", "n03"]
os.makedirs(f"{top}/val/images")
open(f"{top}/wnids.txt", "w").write("\n".join(classes) + "\n")
with open(f"{top}/val/val_annotations.txt", "w") as annotations:
    for k, name in enumerate(classes):
        os.makedirs(f"{top}/train/{name}/images")
        for i in range(16):
            open(f"{top}/train/{name}/images/{name}_{i}.JPEG", "wb").write(png(16))
            open(f"{top}/val/images/val_{16 * k + i}.JPEG", "wb").write(png(16))
            print(f"val_{16 * k + i}.JPEG", name, 0, 0, 9, 9, sep="\t", file=annotations)
for part in ("train", "test"):
    os.makedirs(f"folders/femnist/{part}")
    users = {f"f{u}": {"x": [[draw.random() for _ in range(784)] for _ in range(24)], "y": [0, 1, 2] * 8} for u in range(2)}
    json.dump({"users": list(users), "num_samples": [24, 24], "user_data": users}, open(f"folders/femnist/{part}/all.json", "w"))
PYTHON
paper=("$program" reproduce --threads 1 --recipes "$work/papers" --out papers-out)
mkdir -p papers/papers
cp "$source_dir"/recipes/fed*-{tiny-imagenet,femnist}.toml papers/
for number in 3 4 6; do  # the papers' rows, with networks and federations that take no time
  file=papers/papers/fedbnn-table$number.toml
  python3 - "$source_dir/recipes/papers/fedbnn-table$number.toml" >$file <<'PYTHON'
import re, sys
head, *rows = re.split(r"(?=\[\[row\]\])", open(sys.argv[1]).read())
small = 'set = ["rounds=1", "client.epochs=1", "model.name=cnn4", "model.width=16", "federation.clients_per_round=2"]\n'
print(head.replace("[[column]]", small + "[[column]]", 1))
for row in rows:
    if 'name = "Tiny' in row or 'name = "FEM' in row:
        print(re.sub(r'"model.width=\d+"', '"client.batch=32"', row.replace("clients=100", "clients=2")).strip() + "\n")
PYTHON
  sed -i 's/clients = 100/clients = 2/' papers/fed*.toml
done
refuse "no row can be run: 'femnist' is not on this machine; fed.*-femnist.toml says what it is; 'tiny-imagenet-200' is not" \
  fedbnn:table3 --recipes papers --out none
for number in 3 4 6; do
  "${paper[@]}" fedbnn:table$number --data-dir folders --quiet >out 2>err || fail "table $number: $(cat err)"
  grep -q '[0-9]' papers-out/fedbnn-table$number/table.md && ! grep -q 'not on this machine' papers-out/fedbnn-table$number/table.md ||
    fail "table $number: $(cat papers-out/fedbnn-table$number/table.md)"
done
mv folders/femnist folders/elsewhere
"${paper[@]}" fedbnn:table4 --data-dir folders --out without >out 2>err || fail "without FEMNIST: $(cat err)"
expect "rows skipped: 'femnist' is not on this machine; fedbnn-femnist.toml says what it is" err
expect "^FEMNIST/IID/with, .*: not run, 'femnist' is not on this machine" without/fedbnn-table4/table.md
expect '^| Tiny ImageNet | IID | with | 45.68 | [0-9]' without/fedbnn-table4/table.md

echo "-- what is wrong"
refuse "no row can be run: data set 'svhn' is not on this machine; .*fetch" tiny:table1 --rows svhn --out none
refuse "no table is called 'tiny:table9' .did you mean .*looked for tiny-table9.toml in recipes/papers, .*share/bitfed/recipes/papers" tiny:table9
refuse "no table is called .*in elsewhere/papers" tiny:table1 --recipes elsewhere
refuse "no tables: looked for .* in elsewhere/papers" --recipes elsewhere
refuse "rows mnist/3: selects no row of tiny:table1" tiny:table1 --rows mnist/3
refuse "seeds 7: not a seed of tiny:table1, expected some of 0, 20" tiny:table1 --seeds 7
spoil() {  # spoil SED TEXT: the table with one thing changed is refused
  sed "$1" $table >recipes/papers/bad-table1.toml
  refuse "$2" bad:table1 --rows mnist/2 --quiet --out none
}
spoil 's/metric = "accuracy"/metric = "speed"/' 'bad-table1.toml: line 13: column.0.metric: found .speed., expected one of: accuracy'
spoil 's/notes/remarks/' 'bad-table1.toml: line 8: remarks: unknown key'
spoil 's/\[50, 1.5\]/["50"]/' "line 23: row.0.paper.fedtmos: found the string '50', expected an array of numbers"
spoil 's/one-shot.toml/none.toml/' "bad-table1.toml: row 'mnist/4': recipes/none.toml: "
spoil 's/data.partition.clients=2/model.claws=2/' "bad-table1.toml: row 'mnist/2': .*model.claws: unknown key"
echo 'title = ' >recipes/papers/bad-table1.toml
refuse 'bad-table1.toml: line 1: ' bad:table1
nothing_half_written
