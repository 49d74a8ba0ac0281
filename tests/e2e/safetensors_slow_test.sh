#!/bin/bash
# A trained model is a safetensors file to others: checked against the format's description, and with the
# format's own library where that is installed or can be.
set -euo pipefail
program=$1
source_dir=$2
work=$3

command -v python3 >/dev/null || { echo "skipped: python3 is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
"$program" run "$source_dir/recipes/quickstart.toml" --set client.epochs=1 --quiet --out "$work/run"
python=python3
if ! python3 -c 'import safetensors.numpy' 2>/dev/null && python3 -m venv "$work/venv" &&
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check safetensors numpy; then
  python=$work/venv/bin/python
fi
# The model, and what travels and is kept besides: an upload, the server's checkpoint.
for file in model checkpoint/round-00001/client-00000 checkpoint/server; do
  "$python" "$source_dir/tests/e2e/read_safetensors.py" "$work/run/$file.safetensors"
done
