#!/bin/bash
# Predictions cannot mislead: columns are found by name, and the rows that are scored are the run's and are named.
#   predict_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

# predicted FILE ARGUMENT...: the accuracy and the rows.
predicted() {
  local model=$1
  shift
  "$program" predict "$model" --json "$@" >predicted.json
  echo "$(field predicted.json accuracy) $(field predicted.json rows) $(field predicted.json samples)"
}
expect() {
  local expected=$1 found
  shift
  found=$(predicted "$@")
  [ "$found" = "$expected" ] || fail "$*: found '$found', expected '$expected'"
}
refuse() {
  local text=$1 status=0
  shift
  "$program" predict "$@" >out 2>err || status=$?
  [ $status = 2 ] && grep -Eq -- "$text" err || fail "$*: status $status: $(cat err)"
  echo "   $(cat err)"
}

echo "-- a table"
"$program" run people.toml --quiet --json --out people >people.json
model=people/model.safetensors
accuracy=$(field people.json accuracy)
expect "$accuracy test 60" $model
expect "$accuracy test 60" $model --data table.csv
expect "$accuracy test 60" $model --data table.csv --label kind --person person
cp table.csv copy.csv
expect "$accuracy test 60" $model --data copy.csv
# The columns in another order, and one more.
awk -F, -v OFS=, '{print $4, NR, $3, $2, $1}' table.csv >turned.csv
sed -i '1s/.*/kind,note,weight,height,person/' turned.csv
expect "$accuracy test 60" $model --data turned.csv
"$program" predict $model --data turned.csv | grep -q '^scored: the test rows of the run in turned.csv, 60 of 200' ||
  fail "which rows were scored?"
[ "$(predicted $model --rows all | cut -d' ' -f 2-)" = "all 200" ] || fail "--rows all"
[ "$(predicted $model --rows train | cut -d' ' -f 2-)" = "train 140" ] || fail "--rows train"
head -50 table.csv >part.csv
[ "$(predicted $model --data part.csv | cut -d' ' -f 2-)" = "all 49" ] || fail "another file"
grep -q 'is not what the model was trained on' predicted.json || fail "another file is not named as such"
refuse '--rows test: part.csv is not what the model was trained on' $model --data part.csv --rows test
refuse '--rows validation: .* has none' $model --rows validation
refuse '--ignore weight: found an input of the model' $model --data part.csv --ignore person,weight
sed '1s/height/hight/' table.csv >typo.csv
refuse "has no column 'height'" $model --data typo.csv
"$program" inspect $model | grep -q '^  columns       height, weight' || fail "inspect shows no columns"
"$program" inspect $model --json | grep -q '"height"' || fail "inspect --json shows no columns"
"$program" export $model --format c --out c >/dev/null
grep -q '"height",' c/model.c && grep -q 'model_columns\[MODEL_INPUTS\]' c/model.h || fail "C without columns"
"$program" export $model --format onnx --out onnx >/dev/null
grep -q 'height' onnx/model.onnx || fail "ONNX without columns"
"$program" run table.toml --quiet --out table --set method.name=fedtm-bank --set model.clauses=20 >/dev/null
"$program" inspect table/model.safetensors | grep -Eq '(height|weight) (>|<=) ' || fail "clauses without names"
grep -Eq '(height|weight) (&gt;|&lt;=) ' table/report.html || fail "a report without names"

awk -F, '{print $0 (NR > 1 ? ",n" : ",note")}' table.csv >noted.csv
"$program" run table.toml --quiet --out spaced --set data.file=noted.csv --set 'data.ignore= height , note' >/dev/null
"$program" predict spaced/model.safetensors --data noted.csv --ignore 'height, note' >/dev/null ||
  fail "spaces in a list of columns"

echo "-- arrays and folders"
python3 - <<'PYTHON'
import csv, random, struct, zipfile, zlib, os
draw = random.Random(4)


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def names(texts):
    return npy("|S8", f"({len(texts)},)", b"".join(text.encode().ljust(8, b"\0") for text in texts))


def write(name, columns, rows, kinds):
    values = struct.pack(f"<{len(rows) * len(columns)}f", *(row[c] for row in rows for c in columns))
    with zipfile.ZipFile(name, "w") as archive:
        archive.writestr("x.npy", npy("<f4", f"({len(rows)}, {len(columns)})", values))
        archive.writestr("y.npy", names(kinds))
        archive.writestr("columns.npy", names(columns))


rows = [{"height": float(r["height"]), "weight": float(r["weight"]), "note": draw.random(), "kind": r["kind"]}
        for r in csv.DictReader(open("table.csv"))]
kinds = [row["kind"] for row in rows]
write("set.npz", ["height", "weight"], rows, kinds)
write("turned.npz", ["note", "weight", "height"], rows, kinds)
write("fewer.npz", ["note", "weight"], rows, kinds)


def png(value):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress((b"\0" + bytes([value] * 4)) * 4)) + chunk(b"IEND", b""))


people = open("people.csv", "w")
print("file,person", file=people)
for folder, count in (("pets", 40), ("new", 4)):
    for i in range(count):
        kind = "cat" if i % 2 else "dog"
        os.makedirs(f"{folder}/{kind}", exist_ok=True)
        open(f"{folder}/{kind}/{i}.png", "wb").write(png(20 + i if i % 2 else 200 + i))
        if folder == "pets":
            print(f"{kind}/{i}.png,p{i // 10}", file=people)
PYTHON
cat >npz.toml <<'TOML'
name = "npz"
seed = 3
[data]
file = "set.npz"
partition = { kind = "iid", clients = 3 }
[model]
name = "tm"
clauses = 10
[method]
name = "fedtm-bank"
[client]
epochs = 3
TOML
"$program" run npz.toml --quiet --json --out npz >npz.json
accuracy=$(field npz.json accuracy)
expect "$accuracy test 40" npz/model.safetensors
expect "$accuracy test 40" npz/model.safetensors --data set.npz
grep -q 'the test rows of the run in set.npz, 40 of 200' predicted.json || fail "the set of the run is not named"
all=$(predicted npz/model.safetensors --data set.npz --rows all)
[ "$(predicted npz/model.safetensors --data turned.npz)" = "$all" ] || fail "columns of an archive by position: $all"
grep -q 'all 200 rows of turned.npz, which is not what the model was trained on' predicted.json || fail "other rows"
refuse "fewer: has no column 'height', an input of the model" npz/model.safetensors --data fewer.npz
sed 's/set.npz/turned.npz/' npz.toml >turned.toml
[ "$(predicted npz/model.safetensors --data turned.toml --rows all)" = "$all" ] || fail "columns of a recipe by position"

sed 's/^file.*/folder = "pets"\nperson = "people.csv"/; s/"tm"/"ctm"\npatch = [2, 2]/; s/"iid", clients = 3/"column"/' \
  npz.toml >pets.toml
"$program" run pets.toml --quiet --json --out pets-run >pets.json
expect "$(field pets.json accuracy) test 8" pets-run/model.safetensors --data pets
[ "$(predicted pets-run/model.safetensors --data new | cut -d' ' -f 2-)" = "all 4" ] || fail "a folder of nobody's"

echo "-- a model file of an earlier build"
python3 - <<'PYTHON'
import json, struct
whole = open("people/model.safetensors", "rb").read()
(size,) = struct.unpack("<Q", whole[:8])
header = json.loads(whole[8:8 + size])
for key in ("bitfed.columns", "bitfed.trained_on", "bitfed.data"):
    del header["__metadata__"][key]
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open("earlier.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + whole[8 + size:])
PYTHON
refuse '--data: missing' earlier.safetensors
refuse 'samples of|columns' earlier.safetensors --data turned.csv --label kind --person person
predicted earlier.safetensors --data table.csv --label kind --ignore person >/dev/null
grep -q 'may hold rows that the model was trained on' predicted.json || fail "training rows are not named"

echo "-- images of a built-in set"
"$program" run one-shot.toml --quiet --json --out images >images.json
expect "$(field images.json accuracy) test 56" images/model.safetensors
expect "$(field images.json accuracy) test 56" images/model.safetensors --data mnist
[ "$(predicted images/model.safetensors --rows validation | cut -d' ' -f 2-)" = "validation 64" ] || fail "validation"
expect "$(field images.json validation_accuracy) validation 64" images/model.safetensors --rows validation
"$program" run one-shot.toml --quiet --json --out halves --set data.evaluate=stratified-half >halves.json
[ "$(predicted halves/model.safetensors | cut -d' ' -f 1-2)" = "$(field halves.json accuracy) test" ] || fail "halves"

echo "-- a test set that is sorted by class"
mkdir -p sorted/mnist
cp data/mnist/train-* sorted/mnist
python3 - <<'PYTHON'
import gzip, struct
images = gzip.open("data/mnist/t10k-images-idx3-ubyte.gz").read()
labels = gzip.open("data/mnist/t10k-labels-idx1-ubyte.gz").read()[8:]
order = sorted(range(len(labels)), key=lambda i: labels[i])
gzip.open("sorted/mnist/t10k-images-idx3-ubyte.gz", "w").write(
    images[:16] + b"".join(images[16 + 64 * i:16 + 64 * (i + 1)] for i in order))
gzip.open("sorted/mnist/t10k-labels-idx1-ubyte.gz", "w").write(
    struct.pack(">II", 0x801, len(labels)) + bytes(labels[i] for i in order))
PYTHON
"$program" run one-shot.toml --quiet --json --out sorted-run --data-dir sorted >sorted.json
grep -q 'leaves no test samples of: 0' sorted.json || fail "half of the classes is tested without a word"

echo "-- tables that are refused"
refuse_run() {
  local text=$1 status=0
  shift
  "$program" run table.toml --quiet --out bad "$@" >out 2>err || status=$?
  [ $status = 2 ] && grep -Eq -- "$text" err || fail "$*: status $status: $(cat err)"
  echo "   $(cat err)"
}
refuse_run "column 'height' holds real values" --set data.label=height --set data.person=person --set data.ignore=kind
refuse_run "column 'kind' is both label and person" --set data.person=kind
sed 's/dog/cat/' table.csv >cats.csv
refuse_run "found one class, 'cat', expected at least two" --set data.file=cats.csv
sed '7s/,[^,]*,/,?,/' table.csv >mark.csv
"$program" run table.toml --quiet --json --set data.file=mark.csv --out mark | grep -q '1 row with an empty cell' ||
  fail "? is no missing value"
