#!/bin/bash
# A network that the recipe spells out: the VGG of recipes/fedbnn-vgg-cifar10.toml, smaller, on tiny images. It trains,
# is killed and resumed, predicts, exports to C with the same answers, and federates over TLS to the same bytes.
#   custom_network_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

python3 - "$source_dir/recipes/fedbnn-vgg-cifar10.toml" vgg.toml <<'END'
import sys
text = open(sys.argv[1]).read()
for wide, narrow in (("convolution 64", "convolution 16"), ("convolution 128", "convolution 16"),
                     ("convolution 256", "convolution 32"), ("clients = 100", "clients = 3"),
                     ("rounds = 500", "rounds = 2"), ("clients_per_round = 10", "clients_per_round = 3"),
                     ("epochs = 5", "epochs = 2"), ('augment = "crop-flip"', 'augment = "none"'),
                     ('evaluate = "second-half"', ''), ('select = "validation"', '')):
    assert wide in text, wide
    text = text.replace(wide, narrow)
open(sys.argv[2], "w").write(text)
END

"$program" run vgg.toml --out vgg --json --quiet >vgg.json
expected=$(field vgg.json model_sha256)
[ "$(field vgg.json model)" = custom ] || fail "the summary says model $(field vgg.json model)"

# Killed after the first client, and resumed.
"$program" run vgg.toml --out killed --json --quiet --threads 1 >killed.json 2>killed.err &
pid=$!
until [ -s killed/events.jsonl ] && grep -q client-finished killed/events.jsonl; do
  kill -0 $pid 2>/dev/null || break
  sleep 0.02
done
kill -KILL $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
"$program" run vgg.toml --out killed --json --quiet --resume >killed.json
[ "$(field killed.json model_sha256)" = "$expected" ] || fail "resumed: another model"

"$program" inspect vgg/model.safetensors | grep -q layers.21 || fail "inspect does not show the layers"
"$program" predict vgg/model.safetensors --data cifar10 --out predictions.csv >/dev/null

# In C: the class of every test image.
"$program" export vgg/model.safetensors --format onnx --out onnx >/dev/null
"$program" export vgg/model.safetensors --format c --name vgg --out c >/dev/null
if command -v cc >/dev/null; then
  cc -std=c99 -O1 -o vgg-c c/*.c
  python3 - data/cifar-10-batches-bin/test_batch.bin >pixels <<'END'
import sys
data = open(sys.argv[1], "rb").read()
for at in range(0, len(data), 3073):
    planes = data[at + 1:at + 3073]
    sys.stdout.buffer.write(bytes(planes[channel * 1024 + pixel] for pixel in range(1024) for channel in range(3)))
END
  ./vgg-c <pixels | cut -d ' ' -f 1 >c-classes
  python3 - vgg/summary.json predictions.csv >classes <<'END'
import csv, json, sys
names = json.load(open(sys.argv[1]))["class_names"]
for row in csv.DictReader(open(sys.argv[2])):
    print(names.index(row["predicted"]))
END
  [ "$(wc -l <classes)" = 20 ] || fail "$(wc -l <classes) predictions, expected 20"
  cmp c-classes classes || fail "C predicts other classes"
fi

# The same federation over TLS.
source "$2/tests/e2e/federate.sh"
certs() { "$program" certs "$@" >>certs.out 2>&1 || fail "certs $*: $(cat certs.out)"; }
certs init
certs server 127.0.0.1 localhost
for number in 0 1 2; do certs client client-$number; done
serve served vgg.toml --certs certs
wait_for_port served
for number in 0 1 2; do join served $number --certs certs; done
finish "$server_pid" served
[ "$(field served.json model_sha256)" = "$expected" ] || fail "served: another model than simulated"
echo "model $expected"
