#!/bin/bash
# A trained model is a safetensors file to others: checked against the format's description, and with the
# format's own library where that is installed.
set -euo pipefail
program=$1
source_dir=$2
work=$3

command -v python3 >/dev/null || { echo "skipped: python3 is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
"$program" run "$source_dir/recipes/quickstart.toml" --set client.epochs=1 --quiet --out "$work/run"
python3 "$source_dir/tests/e2e/read_safetensors.py" "$work/run/model.safetensors"
