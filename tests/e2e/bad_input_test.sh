#!/bin/bash
# Whatever is wrong with data, recipe, model file, folder or disk: one line that says what, the exit status
# that goes with it, and nothing half written.
#   bad_input_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

# refuse STATUS TEXT ARGUMENT...: runs the program and checks status, the one line on standard error, its text.
refuse() {
  local expected=$1 text=$2 status=0
  shift 2
  "$program" "$@" >out 2>err || status=$?
  [ $status = "$expected" ] || fail "$*: status $status, expected $expected: $(cat err)"
  [ "$(wc -l <err)" = 1 ] || fail "$*: not one line: $(cat err)"
  grep -q '^bitfed: ' err || fail "$*: $(cat err)"
  grep -Eq -- "$text" err || fail "$*: expected '$text' in: $(cat err)"
  [ ! -s out ] || fail "$*: a result although it failed: $(cat out)"
  nothing_half_written
  echo "   $(cat err)"
}
# The same for a run, which must not leave a model or a summary.
refuse_run() {
  local expected=$1 text=$2
  shift 2
  rm -rf bad
  refuse "$expected" "$text" run --quiet --out bad "$@"
  [ ! -e bad/summary.json ] && [ ! -e bad/model.safetensors ] && [ ! -e bad/report.html ] || fail "$*: left a result"
}
# A copy of the data to spoil.
spoilt() {
  rm -rf spoilt
  cp -r data spoilt
}

echo "-- IDX"
images=spoilt/mnist/train-images-idx3-ubyte
spoilt
truncate -s -100 $images.gz
refuse_run 2 'train-images-idx3-ubyte.gz: ' one-shot.toml --data-dir spoilt
truncate -s 5 $images.gz
refuse_run 2 'train-images-idx3-ubyte.gz: ' one-shot.toml --data-dir spoilt
spoilt
gunzip $images.gz
truncate -s -64 $images
refuse_run 2 'says 400 items of 64 bytes, 25536 bytes follow' one-shot.toml --data-dir spoilt
spoilt
cp spoilt/mnist/t10k-labels-idx1-ubyte.gz spoilt/mnist/train-labels-idx1-ubyte.gz
refuse_run 2 '120 labels, but .* holds 400 images' one-shot.toml --data-dir spoilt
refuse 2 '120 labels' data info mnist --data-dir spoilt

echo "-- MAT"
mkdir -p svhn-data/svhn
python3 - <<'PYTHON'
import struct
head = b"MATLAB 5.0 MAT-file, made by hand".ljust(124) + struct.pack("<HH", 0x100, 0x4D49)
body = struct.pack("<II", 14, 4000) + bytes(2000)  # says 4,000 bytes, has half of them
for part in ("train", "test"):
    open(f"svhn-data/svhn/{part}_32x32.mat", "wb").write(head + body)
PYTHON
refuse_run 2 'train_32x32.mat: ' one-shot.toml --data-dir svhn-data --set data.name=svhn
truncate -s 50 svhn-data/svhn/train_32x32.mat
refuse_run 2 'train_32x32.mat: ' one-shot.toml --data-dir svhn-data --set data.name=svhn

echo "-- CSV"
sed '7s/,[^,]*,/,,/' table.csv >hole.csv
"$program" run table.toml --quiet --json --set data.file=hole.csv --out hole >hole.json
grep -q '1 row with an empty cell was left out' hole.json || fail "a run does not tell of the row that it left out"
grep -q '"dropped_rows":1' hole/events.jsonl || fail "the log does not tell of the row that was left out"
sed '2,$s/,[^,]*,/,NA,/' table.csv >holes.csv
refuse_run 2 "holes.csv: all 200 rows have empty cells, the first in line 2, column 'height'" table.toml \
  --set data.file=holes.csv
sed '2,$s/^p[0-9]*/p0/' table.csv >alone.csv
refuse_run 2 "found one person, 'p0', .* expected at least two" table.toml --set data.file=alone.csv
refuse_run 2 'data.split.*tim' table.toml --set data.split=tim
refuse_run 2 'data.test_fraction' table.toml --set data.test_fraction=1
refuse_run 2 'test_per_class' table.toml --set data.test_per_class=true
refuse_run 2 'data.split' one-shot.toml --set data.split=time
refuse_run 2 'data.test_fraction' one-shot.toml --set data.test_fraction=0.5
refuse_run 2 'data.points: found 10000000 points of 100000 devices' table.toml \
  --set 'data={name="synthetic-health",devices=100000,points=10000000}'
sed '9s/,[^,]*,/,tall,/' table.csv >word.csv
refuse_run 2 "word.csv: line 9: .*height.*tall" table.toml --set data.file=word.csv
sed '5s/,[^,]*$//' table.csv >short.csv
refuse_run 2 'short.csv: line 5: ' table.toml --set data.file=short.csv
refuse_run 2 'no file none.csv' table.toml --set data.file=none.csv
refuse_run 2 "table.csv: .*sort" table.toml --set data.label=sort

echo "-- recipes"
sed 's/^clauses/clases/' one-shot.toml >unknown.toml
line=$(grep -n '^clases' unknown.toml | cut -d: -f1)
refuse_run 2 "unknown.toml: line $line: .*model.clases.*clauses" unknown.toml
sed 's/^clauses = .*/clauses = "many"/' one-shot.toml >type.toml
refuse_run 2 "type.toml: line $line: model.clauses" type.toml
echo 'name = ' >syntax.toml
refuse_run 2 'syntax.toml: line 1: ' syntax.toml
refuse_run 2 'missing.toml: ' missing.toml
refuse_run 2 'clients' one-shot.toml --set data.partition.clients=0
refuse_run 2 'clients' one-shot.toml --set data.partition.clients=401
refuse_run 2 'smallest client had 0 samples|expected' one-shot.toml \
  --set 'data.partition={kind="dirichlet",clients=40,alpha=0.001,minimum=1}'
refuse_run 2 'partition' one-shot.toml --set 'data.partition={kind="label-subset",clients=4,labels=11}'
refuse_run 2 "no method is called 'fedtmoss'.*fedtmos" one-shot.toml --set method.name=fedtmoss
refuse_run 2 "^bitfed: unknown.toml: line $line: model.clases: .*clauses" unknown.toml --set method.name=fedtmos
refuse_run 2 '^bitfed: --set method.clustres: unknown key .*clusters' one-shot.toml --set method.name=fedtmos \
  --set method.clustres=3
refuse_run 2 'data.pixel_std: missing, expected pixel_mean and pixel_std together' network.toml --set data.pixel_mean=[0.5]
refuse_run 2 'data.pixel_mean: found 2 values, expected one per channel, 1' network.toml \
  --set 'data.pixel_mean=[0.5,0.5]' --set data.pixel_std=[0.5]
refuse_run 2 'data.pixel_std: found 0, expected an array of numbers from 1e-06' network.toml \
  --set data.pixel_mean=[0.5] --set data.pixel_std=[0]
refuse_run 2 'data.pixel_mean: found nan' network.toml --set data.pixel_mean=[nan] --set data.pixel_std=[0.5]
refuse_run 2 'data.pixel_mean: unknown key' table.toml --set data.pixel_mean=[0.5] --set data.pixel_std=[0.5]
refuse_run 2 'found both' one-shot.toml --set data.name=svhn --set data.file=table.csv
refuse_run 2 'model.name' one-shot.toml --set model.name=resnet
refuse_run 2 'key=value' one-shot.toml --set clauses
refuse_run 2 'key=value' one-shot.toml --set =3
refuse_run 2 'model.clauses' one-shot.toml --set model.clauses=7
refuse_run 2 'model.patch' one-shot.toml --set model.patch=[9,9]
refuse_run 2 "mnits.*mnist" one-shot.toml --set data.name=mnits
if "$program" data list | grep -q '^cifar100 .*missing'; then
  refuse_run 2 "data set 'cifar100' not found: looked for .* in .*data, .*; " one-shot.toml --set data.name=cifar100
fi

echo "-- model files"
"$program" run one-shot.toml --quiet --json --out good >good.json
"$program" run table.toml --quiet --json --out tabular >tabular.json
cp good/model.safetensors cut.safetensors
truncate -s -10 cut.safetensors
head -c 4 good/model.safetensors >tiny.safetensors
python3 - <<'PYTHON'
import json, struct
whole = open("good/model.safetensors", "rb").read()
(size,) = struct.unpack("<Q", whole[:8])
header = json.loads(whole[8:8 + size])

def write(name, changed, tail):
    text = json.dumps(changed).encode()
    open(name, "wb").write(struct.pack("<Q", len(text)) + text + tail)

write("foreign.safetensors", {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8))
name = next(key for key in header if key != "__metadata__")
write("shape.safetensors", {**header, name: {**header[name], "shape": [1]}}, whole[8 + size:])
open("size.safetensors", "wb").write(struct.pack("<Q", 1 << 60) + whole[8:])
open("noise.safetensors", "wb").write(bytes(range(256)) * 4)
PYTHON
for file in cut tiny foreign shape size noise missing; do
  refuse 2 "$file.safetensors: " inspect $file.safetensors
  refuse 2 "$file.safetensors: " predict $file.safetensors --data mnist
done
for file in cut foreign noise; do
  cp -r good broken
  cp $file.safetensors broken/model.safetensors
  rm broken/report.html
  refuse 2 "broken/model.safetensors: " report broken
  [ ! -e broken/report.html ] || fail "a report of a broken run"
  rm -r broken
done
cp -r good broken
head -c 100 good/summary.json >broken/summary.json
refuse 2 'broken/summary.json: ' report broken
refuse 2 'nowhere' report nowhere
refuse 2 'mnits' predict good/model.safetensors --data mnits
refuse 2 'needs --label' predict good/model.safetensors --data table.csv
refuse 2 'table|samples of' predict good/model.safetensors --data table.csv --label kind --person person

echo "-- folders"
echo file >in_the_way
refuse 1 'in_the_way/run' run --quiet one-shot.toml --out in_the_way/run
refuse 1 '/dev/null/x' run --quiet one-shot.toml --out /dev/null/x
refuse 1 '/dev/null/x' report good --out /dev/null/x.html
refuse 1 '/dev/null/x' predict good/model.safetensors --data mnist --out /dev/null/x.csv
refuse 1 '/dev/null/x' data partition one-shot.toml --out /dev/null/x.svg
refuse 2 'good: holds a run already' run --quiet one-shot.toml --out good
refuse 2 'another recipe: .epochs = 3. there, .epochs = 4. here' \
  run --quiet one-shot.toml --out good --resume --set client.epochs=4
refuse 2 'other settings: .epochs = 3. there, .epochs = 4. here' \
  run --quiet one-shot.toml --out fresh --reuse good --set client.epochs=4
refuse 2 'holds no upload of client 0' run --quiet one-shot.toml --out fresh2 --reuse nowhere
cmp good.json <("$program" run one-shot.toml --quiet --json --out good --resume)

echo "-- two runs in one folder"
"$program" run one-shot.toml --quiet --out busy --threads 1 --set client.epochs=2000 >first.out 2>first.err &
first=$!
trap 'kill -9 $first 2>/dev/null || true' EXIT
tries=0
until grep -qs round-started busy/events.jsonl; do  # its other files are written
  tries=$((tries + 1))
  [ $tries -lt 500 ] || fail "the first run does not begin"
  sleep 0.02
done
for option in --resume --overwrite; do
  refuse 2 'busy: another bitfed is at work' run --quiet one-shot.toml --out busy $option --set client.epochs=2000
done
kill -9 $first
wait $first 2>/dev/null || true
trap - EXIT

echo "-- devices"
refuse_run 2 "^bitfed: --device: found 'gpu', expected auto, cpu, cuda or cuda:N" one-shot.toml --device gpu
refuse_run 2 "found 'cuda:x', expected" one-shot.toml --device cuda:x
refuse_run 2 '^bitfed: --device cuda(:99)?: .*(built without CUDA|an NVIDIA GPU|found [0-9]+ GPUs)' one-shot.toml \
  --device cuda:99
refuse 2 'built without CUDA|an NVIDIA GPU|found [0-9]+ GPUs' sweep one-shot.toml --grid method.name=fedtmos --device cuda:99
"$program" run one-shot.toml --quiet --out auto --device auto >/dev/null 2>err || fail "auto: $(cat err)"
[ ! -s err ] || [ "$(wc -l <err)" = 1 ] || fail "auto: more than a line: $(cat err)"

echo "-- a full disk"
# A limit on the size of files stands in for a full disk where none can be mounted: writing fails alike.
if mkdir -p disk && mount -t tmpfs -o size=48k tmpfs disk 2>/dev/null; then
  trap 'umount disk' EXIT
  refuse 1 'disk/.*: ' run --quiet one-shot.toml --out disk/run --set model.clauses=400
  [ ! -e disk/run/summary.json ] || fail "a summary on a full disk"
  umount disk
  trap - EXIT
else
  (
    ulimit -f 8
    trap '' XFSZ
    refuse 1 'limited/.*: ' run --quiet one-shot.toml --out limited --set model.clauses=400
  )
  [ ! -e limited/summary.json ] || fail "a summary on a full disk"
fi
if [ -e /dev/full ]; then
  for command in "methods" "data list" "inspect good/model.safetensors"; do
    status=0
    "$program" $command >/dev/full 2>err || status=$?
    [ $status = 1 ] || fail "$command: status $status although nothing could be written"
    [ "$(wc -l <err)" = 1 ] || fail "$command: $(cat err)"
  done
fi

echo "-- a system without room for so many threads"
(
  # Each thread asks for a stack of 1 GB. The first group of threads takes all there are.
  ulimit -s 1000000
  ulimit -v 4000000
  refuse 1 'no thread can be started: .*--threads' run --quiet one-shot.toml --out few-threads --threads 16
)
