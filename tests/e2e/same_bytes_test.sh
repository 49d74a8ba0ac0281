#!/bin/bash
# A change of shapes must not change results: models, uploads and exports of small federations of every method and
# every architecture have the bytes that tests/golden/same-bytes.txt names.
#   same_bytes_test.sh PROGRAM SOURCE_DIR WORK_DIR
# BITFED_DEVICE=cuda trains on a GPU instead; methods that train on the CPU alone stay there.
# A change that is meant to change them replaces that file by the one that this leaves in WORK_DIR, and says why.
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
device=${BITFED_DEVICE:-cpu}

sha() { sha256sum "$1" | cut -c 1-16; }

# federation NAME RECIPE KEY=VALUE...: one line with all that can be compared.
federation() {
  local name=$1 recipe=$2 settings=() setting
  shift 2
  for setting in "$@"; do settings+=(--set "$setting"); done
  local run=("$program" run "$recipe.toml" --quiet --json --out "$name" "${settings[@]}")
  if ! "${run[@]}" --device "$device" >"$name.json" 2>err; then
    grep -q 'is trained on the CPU alone' err || fail "$name: $(cat err)"
    "${run[@]}" >"$name.json" || fail "$name"
  fi
  local model=$name/model.safetensors c=refused onnx=refused
  if "$program" export "$model" --format c --name model --out "$name-c" >/dev/null 2>&1; then
    c=$(cat "$name-c"/* | sha256sum | cut -c 1-16)
  fi
  if "$program" export "$model" --format onnx --name model --out "$name-onnx" >/dev/null 2>&1; then
    onnx=$(cat "$name-onnx"/* | sha256sum | cut -c 1-16)
  fi
  echo "$name model=$(field "$name.json" model_sha256 | cut -c 1-16) file=$(sha "$model")" \
    "upload=$(field "$name.json" total_upload_bytes) c=$c onnx=$onnx" | tee -a found.txt
}

federation fedtm-bank one-shot
federation fedtmos one-shot method.name=fedtmos
federation fedtmos-ensemble one-shot method.name=fedtmos-ensemble
federation fedtm fedtm
federation composite composite
federation composite-fedtmos composite method.name=fedtmos
federation table table
federation fed-bin-mlp people
federation fed-bin-mlp-real people model.precision=full
federation fed-bin-mlp-bits people method.upload=bits
federation fedavg-mlp people method.name=fedavg
federation fedavg-mlp-sgd people method.name=fedavg client.optimizer=sgd
federation fedavg-mlp-binary people method.name=fedavg model.precision=binary
federation fedbnn-cnn4 network
federation fedbnn-cnn4-static network model.deploy=static
federation fedbnn-cnn4-plain network method.lambda=false method.beta=false client.augment=crop-flip
federation fedbnn-cnn4-orthogonal network method.rotation=orthogonal
federation fedbnn-cnn4-server network method.rotation=server
federation fedbnn-resnet10 network model.name=resnet10
federation fedbnn-resnet10-static network model.name=resnet10 model.deploy=static
federation fedbnn-resnet18 network model.name=resnet18 rounds=1 client.epochs=1
federation fedbnn-cnn4-momentum network client.momentum=0.9 client.weight_decay=5e-4 method.rotation=none
federation fedbnn-resnet10-shortcuts network model.name=resnet10 model.shortcuts=convolution client.momentum=0.9 \
  client.weight_decay=5e-4 client.schedule=cosine method.initial_scale=0.3
federation fedavg-cnn4 network method.name=fedavg
federation fedavg-resnet10-shortcuts network method.name=fedavg model.name=resnet10 model.shortcuts=convolution \
  client.momentum=0.9 client.weight_decay=5e-4 client.schedule=step federation.evaluate_every=2
federation fedavg-cnn4-narrow network method.name=fedavg model.width=5
federation fedavg-resnet10 network method.name=fedavg model.name=resnet10
federation fedavg-resnet10-narrow network method.name=fedavg model.name=resnet10 model.width=5
federation fedavg-adam network method.name=fedavg client.optimizer=adam
federation fedbnn-adam network client.optimizer=adam
federation fedprox-cnn4 network method.name=fedprox method.mu=0.1
federation fedprox-resnet10 network method.name=fedprox model.name=resnet10 client.momentum=0.9
federation scaffold-cnn4 network method.name=scaffold rounds=3
federation scaffold-resnet10 network method.name=scaffold model.name=resnet10 federation.norm_bound=1
federation fedbat-cnn4 network method.name=fedbat
federation fedmud-cnn4 network method.name=fedmud
federation fedmud-resnet10 network method.name=fedmud model.name=resnet10
federation fedbnn-colour colour
federation fedbnn-colour-resnet10 colour model.name=resnet10 client.augment=crop-flip
federation median network federation.combine=median method.name=fedavg

diff "$source_dir/tests/golden/same-bytes.txt" found.txt || fail "bytes have changed"
