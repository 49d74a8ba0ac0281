#!/bin/sh
# Compares the bits of "adaptive-gaussian" with OpenCV's on the whole Fashion-MNIST test set: not one may
# differ. Other windows and colour images are compared on random images.
#
# usage: opencv_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR; exit status 77: skipped
set -eu

program=$1
source=$2
work=$3
dump=${BITFED_BOOLEANIZE_DUMP:-$(dirname "$program")/../tests/booleanize_dump}

skip() {
  echo "SKIPPED: $1"
  exit 77
}

[ -x "$dump" ] || { echo "FAILED: no $dump; build the target booleanize_dump"; exit 1; }
images=
for folder in "${BITFED_DATA:+$BITFED_DATA/fashion-mnist}" /usr/share/datasets/fashion-mnist; do
  if [ -n "$folder" ] && [ -z "$images" ]; then
    for name in t10k-images-idx3-ubyte.gz t10k-images-idx3-ubyte; do
      if [ -z "$images" ] && [ -f "$folder/$name" ]; then images=$folder/$name; fi
    done
  fi
done
[ -n "$images" ] || skip "no Fashion-MNIST test images under \$BITFED_DATA or /usr/share/datasets"

rm -rf "$work"
mkdir -p "$work"
python3 -m venv "$work/venv" >"$work/venv.log" 2>&1 || skip "python3 cannot make a virtual environment"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check opencv-python-headless numpy \
  >"$work/pip.log" 2>&1 || skip "pip cannot install opencv-python-headless ($(tail -n 1 "$work/pip.log"))"
"$work/venv/bin/python" "$source/tests/e2e/opencv_compare.py" "$dump" "$images" "$work"
