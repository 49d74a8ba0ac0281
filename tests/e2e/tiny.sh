# What the scripts here share; to be sourced by one that was called with PROGRAM SOURCE_DIR WORK_DIR. Leaves it in
# the empty work folder with the tiny data, which all runs find.
program=$1
source_dir=$2
work=$3
command -v python3 >/dev/null || { echo "skipped: python3 is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
python3 "$source_dir/tests/e2e/tiny_data.py" .
export BITFED_DATA=$PWD/data
export HOME=$PWD  # no data of the user's own
unset BITFED_ISA

fail() {
  echo "FAILED: $*"
  exit 1
}

# field FILE NAME: a field of a JSON document.
field() {
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"
}

# Nothing may be left half written.
nothing_half_written() {
  local left
  left=$(find . -name '*.part*' -o -name '*.tmp*')
  [ -z "$left" ] || fail "half-written files: $left"
}
