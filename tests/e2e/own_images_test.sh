#!/bin/bash
# Images and arrays of one's own: each kind federates from one recipe, predicts, exports and resumes; whatever is
# wrong with one ends in one clear line.
#   own_images_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
images=$source_dir/tests/data/images

python3 - <<'PYTHON'
import gzip, json, os, random, struct, zipfile, zlib
draw = random.Random(3)


def write(name, data):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    open(name, "wb").write(data if isinstance(data, bytes) else data.encode())


def image(label, side=8):
    return bytes(200 if (2 * y // side == label // 2 and 2 * x // side == label % 2) != (draw.randrange(10) == 0)
                 else 10 for y in range(side) for x in range(side))


def png(pixels, width, height, depth=8, colour=0, palette=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    step = len(pixels) // height
    rows = b"".join(b"\0" + pixels[i * step:(i + 1) * step] for i in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
            + (chunk(b"PLTE", palette) if palette else b"") + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def npy(descr, shape, data):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def npz(name, arrays):
    with zipfile.ZipFile(name, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, data in arrays.items():
            archive.writestr(key + ".npy", data)


labels = [draw.randrange(4) for _ in range(240)]
pixels = [image(label) for label in labels]
# IDX with labels 1 to 26, as EMNIST-Letters has them: the class is where a bright block stands on a grid of 6 x 6.
def idx(name, count):
    letters = [draw.randrange(26) for _ in range(count)]
    blocks = [bytes(200 if (y // 2, x // 2) == divmod(letter, 6) else draw.randrange(40)
                    for y in range(12) for x in range(12)) for letter in letters]
    write(f"{name}-images-idx3-ubyte.gz", gzip.compress(
        struct.pack(">IIII", 0x803, count, 12, 12) + b"".join(blocks)))
    write(f"{name}-labels-idx1-ubyte.gz", gzip.compress(
        struct.pack(">II", 0x801, count) + bytes(1 + letter for letter in letters)))
idx("letters-train", 600)
idx("letters-test", 130)
npz("set.npz", {"x": npy("|u1", "(240, 8, 8)", b"".join(pixels)), "y": npy("|u1", "(240,)", bytes(labels)),
                "person": npy("|u1", "(240,)", bytes(i % 3 for i in range(240)))})
for i in range(240):
    write(f"pets/class-{labels[i]} é/{i}.png", png(pixels[i], 8, 8))
write("records.bin", b"".join(bytes([label]) + data for label, data in zip(labels, pixels)))
users = {f"writer{u}": {"x": [[value / 255 for value in pixels[i]] for i in range(u, 240, 3)],
                        "y": [labels[i] for i in range(u, 240, 3)]} for u in range(3)}
write("leaf.json", json.dumps({"users": list(users), "num_samples": [80] * 3, "user_data": users}))

# What is spoilt.
good = png(pixels[0], 8, 8)
for name, data in {
        "cut": good[:50], "flipped": good[:45] + bytes([good[45] ^ 1]) + good[46:], "text": b"hello",
        "huge": png(pixels[0], 16000, 4000), "empty": b"", "other-size": png(image(0, 16), 16, 16)}.items():
    write(f"bad/{name}/a/1.png", good)
    write(f"bad/{name}/b/1.png", good)
    write(f"bad/{name}/b/2.png", data)
for name in ("cmyk", "jpeg-cut"):
    write(f"bad/{name}/a/1.png", good)
    write(f"bad/{name}/b/1.png", good)
for name in ("circle", "nowhere", "pipe"):
    write(f"bad/{name}/a/1.png", good)
    write(f"bad/{name}/b/1.png", good)
os.symlink("2.png", "bad/circle/b/2.png")
os.symlink("3.png", "bad/nowhere/b/2.png")
os.mkfifo("bad/pipe/b/2.png")
write("bad/no-class/1.png", good)
write("bad/class-empty/a/1.png", good)
os.makedirs("bad/class-empty/b")
write("bad/foreign/a/1.png", good)
write("bad/foreign/a/2.gif", b"GIF89a")
write("bad/nested/a/1.png", good)
write("bad/nested/a/more/1.png", good)
write("bad/one-class/a/1.png", good)
write("bad/one-class/a/2.png", good)
os.makedirs(b"bad/latin/caf\xe9")
write("bad/pickle.npy", npy("|O", "(2,)", b"\x80\x04K\x01."))
write("bad/claims.npy", npy("|u1", "(1099511627776,)", bytes(8)))
write("bad/y.npy", npy("|u1", "(2,)", bytes([0, 1])))
write("bad/x.npy", npy("|u1", "(3, 2, 2)", bytes(12)))
write("bad/real.npy", npy("<f4", "(3,)", struct.pack("<3f", 0.5, 1.5, 2)))
npz("bad/names.npz", {"images": npy("|u1", "(2, 2, 2)", bytes(8))})
write("bad/cut.npz", open("set.npz", "rb").read()[:200])
write("bad/cut.json", '{"user_data": {"a": {"x": [[1, 2')
write("bad/rows.json", '{"user_data": {"a": {"x": [[1], [1, 2]], "y": [1, 2]}}}')
write("bad/counts.json", '{"users": ["a"], "num_samples": [2], "user_data": {"a": {"x": [[1]], "y": [1]}}}')
write("bad/odd.bin", bytes(100))
# Sixteen megabytes of zeros; the directory says fewer, or many more.
npz("bad/bomb.npz", {"x": npy("|u1", "(16384, 32, 32)", bytes(1 << 24))})
bomb = open("bad/bomb.npz", "rb").read()
size = bomb.index(b"PK\1\2") + 24
for name, claimed in {"bomb": 1000, "claims": 0xfffffff0}.items():
    write(f"bad/{name}.npz", bomb[:size] + struct.pack("<I", claimed) + bomb[size + 4:])
for name in ("folder-circle", "folder-above"):
    write(f"bad/{name}/a/1.png", good)
os.symlink("b", "bad/folder-circle/b")
os.symlink(".", "bad/folder-above/b")
# Kinds of PNG that are read.
write("kinds/a/palette.png", png(bytes(64), 8, 8, 8, 3, bytes([1, 2, 3])))
write("kinds/a/deep.png", png(bytes(128), 8, 8, 16))
write("kinds/b/alpha.png", png(bytes(256), 8, 8, 8, 6))
write("kinds/b/bits.png", png(bytes(8), 8, 8, 1))
PYTHON
cp "$images/cmyk.jpg" bad/cmyk/b/2.jpg
head -c 300 "$images/colour.jpg" >bad/jpeg-cut/b/2.jpg
cp "$images/colour.jpg" kinds/a/colour.jpg
cp "$images/grey.jpg" kinds/b/grey.JPEG

recipe() {
  cat >"$1.toml" <<TOML
name = "$1"
seed = 5
[data]
$2
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
}
iid='partition = { kind = "iid", clients = 3 }'
people='partition = { kind = "column" }'
recipe letters 'file = "letters-train-images-idx3-ubyte.gz"
labels = "letters-train-labels-idx1-ubyte.gz"
test_file = "letters-test-images-idx3-ubyte.gz"
test_labels = "letters-test-labels-idx1-ubyte.gz"
class_names = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z"]
'"$iid"
recipe arrays 'file = "set.npz"
'"$people"
recipe folder 'folder = "pets"
test_fraction = 0.25
'"$iid"
recipe records 'file = "records.bin"
image = [8, 8, 1]
'"$iid"
recipe leaf 'file = "leaf.json"
image = [8, 8, 1]
'"$people"

echo "-- each kind federates, predicts, exports, resumes"
for name in letters arrays folder records leaf; do
  "$program" run $name.toml --quiet --json --out $name >$name-run.json || fail "$name"
  python3 -c "import json; s = json.load(open('$name-run.json')); assert s['accuracy'] > 0.8 and s['clients'] == 3, s" ||
    fail "$name: $(cat $name-run.json)"
  [ -s $name/samples.png ] && grep -q 'class="samples"' $name/report.html || fail "$name: no pictures of samples"
  "$program" predict $name/model.safetensors --json >predicted.json
  [ "$(field predicted.json accuracy)" = "$(field $name-run.json accuracy)" ] || fail "$name: $(cat predicted.json)"
  "$program" export $name/model.safetensors --format c --out $name-c >/dev/null
  "$program" run $name.toml --quiet --out $name-again --threads 1 >/dev/null
  cmp $name/model.safetensors $name-again/model.safetensors || fail "$name: another model with one thread"
  rm $name-again/summary.json $name-again/model.safetensors
  "$program" run $name.toml --quiet --out $name-again --resume >/dev/null
  cmp $name/model.safetensors $name-again/model.safetensors || fail "$name: another model after resuming"
  classes=4
  [ $name != letters ] || classes=26
  "$program" data info $name.toml | grep -q "^classes   $classes" || fail "$name: data info"
  echo "   $name $(field $name-run.json accuracy)"
done
# The same pixels in three files: three clients of one partition learn the same.
grep -q '"B"' letters-run.json || fail "letters without the names of classes"
"$program" data info pets --pictures pets.png | grep -q '8 x 8 pixels' || fail "data info of a folder"
"$program" data info records.bin --set 'data.image=[8,8,1]' >/dev/null || fail "data info: a key with its section"
"$program" data info records.bin --set 'image=[8,8,1]' | grep -q '^samples   192 for training, 48 for testing' ||
  fail "data info of a file"
"$program" data info kinds --set 'channels=1' --set test_fraction=0.5 | grep -q '8 x 8 pixels, 1 channel' ||
  fail "kinds of PNG and JPEG"
"$program" predict folder/model.safetensors --data pets --rows all >out
grep -q '^scored: all 240 rows of pets' out || fail "predict a folder: $(cat out)"

echo "-- what is wrong ends in one line"
refuse() {
  local text=$1 status=0
  shift
  "$program" data info "$@" >out 2>err || status=$?
  [ $status = 2 ] && [ "$(wc -l <err)" = 1 ] && [ ! -s out ] || fail "$*: status $status: $(cat out err)"
  grep -Eq -- "$text" err || fail "$*: expected '$text' in: $(cat err)"
  echo "   $(cat err)"
}
refuse 'cut/b/2.png: not a whole PNG' bad/cut
refuse 'flipped/b/2.png: not a whole PNG' bad/flipped
refuse 'text/b/2.png: found neither' bad/text
refuse 'huge/b/2.png: its header says 4000 x 16000' bad/huge
refuse 'empty/b/2.png: found neither' bad/empty
refuse 'found an image of 16 x 16, but .* expected one size' bad/other-size
refuse 'cmyk/b/2.jpg: found a JPEG in CMYK' bad/cmyk
refuse 'jpeg-cut/b/2.jpg: not a whole JPEG' bad/jpeg-cut
refuse 'circle/b/2.png: cannot be read' bad/circle
refuse 'nowhere/b/2.png: cannot be read' bad/nowhere
refuse 'pipe/b/2.png: is a pipe' bad/pipe
refuse '1.png: found a file, expected a folder for each class' bad/no-class
refuse 'class-empty/b: holds no image' bad/class-empty
refuse '2.gif: found a file in the folder of class' bad/foreign
refuse 'more: found a folder in the folder of class' bad/nested
refuse "found one class, 'a'" bad/one-class --set test_fraction=0.5
refuse 'expected names in UTF-8' bad/latin
refuse 'holds pickled Python objects' bad/pickle.npy --set labels=bad/y.npy
refuse 'says 1099511627776 values' bad/claims.npy --set labels=bad/y.npy
refuse 'y: found 2, expected one value for each of 3' bad/x.npy --set labels=bad/y.npy
refuse 'labels are real values such as 0.5' bad/x.npy --set labels=bad/real.npy
refuse 'labels: found 0 files, expected 1' bad/x.npy
refuse 'found images, expected x and y' bad/names.npz
refuse 'no end of a ZIP directory' bad/cut.npz
refuse 'not valid JSON' bad/cut.json
refuse 'sample 1 has 2 values, expected 1' bad/rows.json
refuse 'found 1 samples, expected 2 .num_samples' bad/counts.json
refuse 'x.npy is damaged: it unpacks to 1001 bytes, expected 1000' bad/bomb.npz
refuse 'x.npy is said to unpack from .* to 4294967280' bad/claims.npz
refuse 'folder-circle/b: found a file, expected a folder for each class' bad/folder-circle
refuse 'found a folder in the folder of class .b.' bad/folder-above
refuse '100 bytes, expected a multiple of 3073' bad/odd.bin
refuse ': 130 labels, but .* holds 600 images' letters-train-images-idx3-ubyte.gz --set labels=letters-test-labels-idx1-ubyte.gz
refuse 'unknown key.*labels' letters-train-images-idx3-ubyte.gz --set labells=x --set labels=letters-train-labels-idx1-ubyte.gz
refuse 'found Parquet, which the Python package reads' "$source_dir/README.md" --set format=parquet
