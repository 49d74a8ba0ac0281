#!/bin/bash
# The wheel: built by pip alone, small, quick to import, complete; four lines train a convolutional Tsetlin machine.
#   python_wheel_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source_dir=$2
work=$3
python=${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/}python3
"$python" -m venv --help >/dev/null 2>&1 || { echo "skipped: python3-venv is missing"; exit 77; }

fail() {
  echo "FAILED: $*"
  exit 1
}

rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/venv"
"$work/venv/bin/pip" install -q numpy || { echo "skipped: pip cannot install numpy"; exit 77; }

# Without a compiler: one line says what to install.
if env -u CXX PATH="$work/venv/bin" "$work/venv/bin/pip" wheel --no-deps -w "$work" "$source_dir" >"$work/none.log" 2>&1; then
  fail "a wheel without a compiler"
fi
grep -q 'found no C++ compiler, expected g++ or clang++' "$work/none.log" || fail "$(tail -30 "$work/none.log")"

"$work/venv/bin/pip" wheel -q --no-deps -w "$work" "$source_dir"
"$work/venv/bin/pip" install -q --no-deps "$work"/*.whl

bytes=$(stat -c %s "$work"/*.whl)
echo "wheel $bytes bytes"
((bytes < 6000000)) || fail "the wheel has $bytes bytes, expected fewer than 6,000,000"
unzip -l "$work"/*.whl | grep >/dev/null 'bitfed/_core.pyi' || fail "no stubs in the wheel"

cd "$work"
# Not grep -q, which may close the pipe before all is written.
"$work/venv/bin/bitfed" methods | grep >/dev/null fedtmos || fail "the command bitfed"
"$work/venv/bin/bitfed" reproduce --list | grep >/dev/null fedtmos:table1 || fail "recipes of the papers"
"$work/venv/bin/python" - <<'PYTHON'
import time
import numpy as np

start = time.perf_counter()
import bitfed
print(f"import {time.perf_counter() - start:.3f} s beside numpy")
assert time.perf_counter() - start < 0.2

y = np.arange(400) % 4
X = np.random.default_rng(0).integers(0, 80, (400, 16, 16), dtype=np.uint8)
for image, label in zip(X, y):
    image[8 * (label // 2) + 2:, 8 * (label % 2) + 2:][:4, :4] = 250
machine = bitfed.TsetlinClassifier(20, T=50, s=5, patch=6, epochs=5).fit(X[:300], y[:300])
print("accuracy", machine.score(X[300:], y[300:]), bitfed.instruction_set())
assert machine.score(X[300:], y[300:]) > 0.9
PYTHON
