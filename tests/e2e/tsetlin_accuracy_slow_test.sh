#!/bin/bash
# Every Tsetlin method has a least accuracy on real data: MNIST, ten clients at Dir(0.1), and a hundred clients of 600
# samples, where a class has many holders.
#   tsetlin_accuracy_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR; exit status 77: skipped
set -euo pipefail

program=$1
source=$2
work=$3
command -v python3 >/dev/null || { echo "SKIPPED: python3 is missing"; exit 77; }
data=
for folder in "${BITFED_DATA:-}" /usr/share/datasets; do
  if [ -z "$data" ] && [ -n "$folder" ] && [ -d "$folder/mnist" ]; then data=$folder; fi
done
[ -n "$data" ] || { echo "SKIPPED: no MNIST under \$BITFED_DATA or /usr/share/datasets"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# at_least PERCENT NAME OPTION...: the accuracy of a run of the recipe for MNIST.
at_least() {
  local floor=$1 name=$2
  shift 2
  "$program" run "$source/recipes/fedtmos-mnist.toml" --data-dir "$data" --quiet --json --out "$name" "$@" >"$name.json"
  python3 - "$name" "$floor" <<'PYTHON'
import json, sys
name, floor = sys.argv[1], float(sys.argv[2])
found = 100 * json.load(open(name + ".json"))["accuracy"]
print(f"{name}: {found:.2f} %, expected at least {floor:g} %")
sys.exit(found < floor)
PYTHON
}

few=(--set client.epochs=5)
at_least 96.5 bank "${few[@]}" --set method.name=fedtm-bank
at_least 95.5 fedtmos "${few[@]}" --reuse bank
at_least 94.5 ensemble "${few[@]}" --reuse bank --set method.name=fedtmos-ensemble
at_least 94.5 largest "${few[@]}" --reuse bank --set method.name=fedtm-largest

many=(--set 'data.partition={kind="iid",clients=100}' --set client.epochs=5)
at_least 94.5 many-bank "${many[@]}" --set method.name=fedtm-bank
at_least 90 many-fedtmos "${many[@]}" --reuse many-bank
at_least 91.5 many-largest "${many[@]}" --reuse many-bank --set method.name=fedtm-largest

at_least 96.5 fedtm --set method.name=fedtm --set rounds=10 --set client.epochs=3
