#!/bin/bash
# Methods have a least accuracy on real data (FedProx and SCAFFOLD: usual_methods_accuracy_slow_test.sh). The Tsetlin
# methods: MNIST, ten clients at Dir(0.1), and a hundred and five hundred clients, where a class has many holders.
# Networks: a few short rounds on Fashion-MNIST. Perceptrons and fedtm: ten rounds on the health data of thirty people. A
# set that is not there is left out.
#   accuracy_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR; exit status 77: skipped
set -euo pipefail

program=$1
source=$2
work=$3
command -v python3 >/dev/null || { echo "SKIPPED: python3 is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"
checked=0

# have FILE: sets `data` to the folder that has it.
have() {
  for data in "${BITFED_DATA:-}" /usr/share/datasets; do
    if [ -n "$data" ] && [ -e "$data/$1" ]; then return 0; fi
  done
  echo "left out: no $1 under \$BITFED_DATA or /usr/share/datasets"
  return 1
}

# at_least PERCENT METHOD RECIPE NAME OPTION...
at_least() {
  local floor=$1 method=$2 recipe=$3 name=$4
  shift 4
  checked=$((checked + 1))
  "$program" run "$source/recipes/$recipe.toml" --data-dir "$data" --quiet --json --out "$name" \
    --set "method.name=$method" "$@" >"$name.json"
  python3 - "$name" "$floor" <<'PYTHON'
import json, sys
name, floor = sys.argv[1], float(sys.argv[2])
found = 100 * json.load(open(name + ".json"))["accuracy"]
print(f"{name}: {found:.2f} %, expected at least {floor:g} %")
sys.exit(found < floor)
PYTHON
}

if have mnist; then
  few=(--set client.epochs=5)
  at_least 96.5 fedtm-bank fedtmos-mnist bank "${few[@]}"
  at_least 95.5 fedtmos fedtmos-mnist fedtmos "${few[@]}" --reuse bank
  at_least 94.5 fedtmos-ensemble fedtmos-mnist ensemble "${few[@]}" --reuse bank
  at_least 94.5 fedtm-largest fedtmos-mnist largest "${few[@]}" --reuse bank
  many=(--set 'data.partition={kind="iid",clients=100}' --set client.epochs=5)
  at_least 94.5 fedtm-bank fedtmos-mnist many-bank "${many[@]}"
  at_least 90 fedtmos fedtmos-mnist many-fedtmos "${many[@]}" --reuse many-bank
  at_least 91.5 fedtm-largest fedtmos-mnist many-largest "${many[@]}" --reuse many-bank
  at_least 88 fedtm-bank fedtmos-mnist most-bank --set client.epochs=5 \
    --set 'data.partition={kind="dirichlet-balanced",clients=500,alpha=0.1}'
  at_least 96.5 fedtm fedtmos-mnist fedtm --set rounds=10 --set client.epochs=3
fi

if have fashion-mnist; then
  short=(--set rounds=6 --set client.epochs=2 --set federation.clients_per_round=5 --set federation.evaluate_every=6)
  at_least 65 fedbnn fedbnn-fashion-mnist fedbnn "${short[@]}"
  at_least 76 fedbat fedbat-fashion-mnist fedbat "${short[@]}"
  at_least 76 fedmud fedmud-fashion-mnist fedmud "${short[@]}"
  at_least 72 fedavg fedavg-fashion-mnist fedavg --set rounds=3 --set client.epochs=1 \
    --set federation.clients_per_round=5 --set federation.evaluate_every=3
  at_least 79 fedtm-bank fedtmos-fashion-mnist two-exchanges --set rounds=2 --set client.epochs=5
  at_least 82 fedtm fedtm-fashion-mnist fedtm-fashion --set rounds=5 --set federation.evaluate_every=5
fi

if have health/hapt14.csv; then
  at_least 76 fedtm-bank health-tm bank-health --set rounds=1
  at_least 80 fedtm health-tm fedtm-health --set rounds=10
  at_least 72 fed-bin-mlp health-hapt fed-bin-mlp --set rounds=10 --set federation.evaluate_every=10
fi

[ $checked -gt 0 ] || exit 77
