#!/bin/bash
# Devices that own images join a served federation: as parts of the recipe's folder, and with a folder, an .npz and an
# IDX pair of their own; both end with the bytes of the simulation. bitfed-client says that it reads none of them.
#   join_images_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
client=$(dirname "$program")/bitfed-client

# Three people: pets/{train,test}/PERSON/CLASS/*.png. The second one also as .npz, the third as IDX.
python3 - <<'PYTHON'
import os, random, struct, zipfile, zlib
draw = random.Random(3)


def write(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "wb").write(data)


def png(pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[i * 8:(i + 1) * 8] for i in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


people = {}
for part, count in (("train", 240), ("test", 80)):
    for i in range(count):
        person, label = i % 3, draw.randrange(4)
        if part == "train" and person == 1:
            label %= 3  # a device need not have all classes
        pixels = bytes(200 if (y // 4 == label // 2 and x // 4 == label % 2) != (draw.randrange(10) == 0) else 10
                       for y in range(8) for x in range(8))
        write(f"pets/{part}/p{person}/{label}/{i:03}.png", png(pixels))
        if part == "train":
            people.setdefault(person, []).append((label, pixels))
for samples in people.values():
    samples.sort(key=lambda sample: sample[0])  # as folders are read
x, y = (b"".join(pixels for _, pixels in people[1]), bytes(label for label, _ in people[1]))
with zipfile.ZipFile("p1.npz", "w") as archive:
    archive.writestr("x.npy", npy("|u1", f"({len(y)}, 8, 8)", x))
    archive.writestr("y.npy", npy("|u1", f"({len(y)},)", y))
x, y = (b"".join(pixels for _, pixels in people[2]), bytes(label for label, _ in people[2]))
write("p2-images-idx3-ubyte", struct.pack(">IIII", 0x803, len(y), 8, 8) + x)
write("p2-labels-idx1-ubyte", struct.pack(">II", 0x801, len(y)) + y)
PYTHON
cat >pets.toml <<'TOML'
name = "pets"
seed = 5
[data]
folder = "pets"
person = "folder"
partition = { kind = "column" }
[model]
name = "ctm"
clauses = 20
threshold = 50
patch = [4, 4]
[method]
name = "fedtm-bank"
[client]
epochs = 3
TOML
"$program" run pets.toml --quiet --json --out simulated >simulated.json
expected=$(field simulated.json model_sha256)

# federation NAME RECIPE: a server; clients come one after the other, so that their numbers are known.
federation() {
  unset port
  serve "$1" "$2" --plaintext
  wait_for_port "$1"
}
# device FOLDER NUMBER OPTION...: a device with samples of its own; waits until the server knows it.
device() {
  local folder=$1 number=$2 tries=0
  shift 2
  "$program" join --server 127.0.0.1:$port --plaintext --id "client-$number" --state "$folder-$number" --give-up 120 \
    "$@" >"$folder-$number.out" 2>"$folder-$number.err" &
  client_pids[$number]=$!
  started+=($!)
  until grep -q "client $number of federation" "$folder-$number.err"; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "$folder-$number: $(cat "$folder-$number.err")"
    sleep 0.1
  done
}
finish_all() {
  for number in 0 1 2; do finish ${client_pids[$number]} $1-$number; done
  finish $server_pid $1
  [ "$(field $1.json model_sha256)" = "$expected" ] || fail "$1: not the simulation's model"
}

echo "-- parts of the recipe's folder"
federation parts pets.toml
for number in 0 1 2; do join parts $number --plaintext; done
finish_all parts

echo "-- a folder, an .npz, an IDX pair"
sed 's/^person = .*//; s/^partition = .*//; s/^seed = 5/seed = 5\n[federation]\nclients = 3/' pets.toml >own.toml
mkdir server
cp -r pets/test server/
for person in p0 p1 p2; do  # the server has test samples, and one training sample of each class
  for class in 0 1 2 3; do
    mkdir -p server/pets/train/$class server/pets/test/$class
    cp server/test/$person/$class/*.png server/pets/test/$class/
    cp "$(ls server/test/$person/$class/*.png | head -1)" server/pets/train/$class/
  done
done
sed -i "s#folder = \"pets\"#folder = \"$PWD/server/pets\"#" own.toml
federation own own.toml
device own 0 --data pets/train/p0
device own 1 --data p1.npz
device own 2 --data p2-images-idx3-ubyte --labels p2-labels-idx1-ubyte
finish_all own

# refused TEXT COMMAND...: one line, status 2.
refused() {
  local text=$1 status=0
  shift
  timeout 60 "$@" --server 127.0.0.1:$port --plaintext --id client-0 --state refused >out 2>err || status=$?
  [ $status = 2 ] && [ "$(grep -cE '^bitfed(-client)?: ' err)" = 1 ] && grep -qE "$text" err ||
    fail "expected '$text': status $status: $(cat err)"
}
echo "-- what does not fit"
federation bad own.toml
refused 'images and arrays are read by bitfed join' "$client" --data p1.npz
refused 'images and arrays are read by bitfed join' "$client" --data pets/train/p0
refused 'holds no labels' "$program" join --data p2-images-idx3-ubyte
mkdir -p odd/zebra && cp pets/train/p0/0/*.png odd/zebra/
refused "class 'zebra' is not a class of the federation" "$program" join --data odd
refused 'found images of 16 x 16 x 1, expected 8 x 8 x 1' "$program" join \
  --data data/fashion-mnist/train-images-idx3-ubyte.gz --labels data/fashion-mnist/train-labels-idx1-ubyte.gz
refused 'nowhere' "$program" join --data nowhere
