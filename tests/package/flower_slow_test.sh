#!/bin/bash
# Flower as it comes from its package index: the tests of bitfed.flower, and the app of examples/flower by `flwr run`
# against `bitfed run`. The module is the one in the build folder.
#   flower_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
program=$1
source_dir=$2
work=$3
python=${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/}python3

fail() {
  echo "FAILED: $*"
  exit 1
}

module=$(dirname "$program")/python
[ -d "$module/bitfed" ] || { echo "skipped: built without the Python module"; exit 77; }
"$python" -m venv --help >/dev/null 2>&1 || { echo "skipped: python3-venv is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'flwr[simulation]' numpy pandas pytest >"$work/pip.log" 2>&1 ||
  { echo "skipped: pip cannot install flwr[simulation]: $(tail -1 "$work/pip.log")"; exit 77; }

export PYTHONPATH=$module BITFED_PROGRAM=$program PYTHONDONTWRITEBYTECODE=1
"$work/venv/bin/python" -m pytest -q -p no:cacheprovider --basetemp "$work/pytest" "$source_dir/python/tests/test_flower.py" |
  tee "$work/pytest.log"
! grep -q skipped "$work/pytest.log" || fail "tests of Flower were skipped"

echo "-- the app"
cp -r "$source_dir/examples/flower" "$work/app"
cd "$work"
python3 "$source_dir/tests/e2e/tiny_data.py" "$work"
export BITFED_DATA=$work/data
sed -i 's/fedtm-bank/fedtmos/' one-shot.toml
"$program" run one-shot.toml --quiet --out expected >/dev/null
# flwr leaves a server in the background.
trap 'pkill -f "$work/venv/bin/flower-" || true' EXIT
export FLWR_HOME=$work/flwr FLWR_TELEMETRY_ENABLED=0 RAY_worker_niceness=0
export FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION=1 PATH=$work/venv/bin:$PATH
flwr run app --stream --federation-config num-supernodes=4 \
  -c "recipe=\"$work/one-shot.toml\" out=\"$work/model.safetensors\" data-dir=\"$work/data\"" >flwr.log 2>&1 ||
  fail "$(tail -20 flwr.log)"
[ -s model.safetensors ] || fail "no model: $(tail -20 flwr.log)"
expected=$(python3 -c "import json; print(json.load(open('expected/summary.json'))['model_sha256'])")
grep -q "model_sha256 $expected" flwr.log || fail "another model than $expected: $(grep model_sha256 flwr.log)"
