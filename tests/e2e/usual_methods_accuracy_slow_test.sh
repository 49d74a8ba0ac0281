#!/bin/bash
# FedAvg, FedProx, SCAFFOLD and Adam have a least accuracy on real data: CNN4 on Fashion-MNIST, 20 clients at Dir(0.3),
# five per round, ten short rounds; FedAvg of perceptrons on HAPT, thirty people.
#   usual_methods_accuracy_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR; exit status 77: skipped
set -euo pipefail

program=$1
source=$2
work=$3
command -v python3 >/dev/null || { echo "SKIPPED: python3 is missing"; exit 77; }
"$program" data info fashion-mnist >/dev/null 2>&1 || { echo "SKIPPED: Fashion-MNIST is missing"; exit 77; }
rm -rf "$work"
mkdir -p "$work"
cd "$work"

# at_least PERCENT NAME RECIPE OPTION...
at_least() {
  local floor=$1 name=$2 recipe=$3
  shift 3
  "$program" run "$source/recipes/$recipe.toml" --quiet --json --out "$name" "$@" >"$name.json"
  python3 - "$name" "$floor" <<'PYTHON'
import json, sys
name, floor = sys.argv[1], float(sys.argv[2])
found = 100 * json.load(open(name + ".json"))["accuracy"]
print(f"{name}: {found:.2f} %, expected at least {floor:g} %")
sys.exit(found < floor)
PYTHON
}

few=(--set rounds=10 --set 'data.partition={kind="dirichlet",clients=20,alpha=0.3}' --set client.epochs=1
  --set federation.clients_per_round=5)
at_least 79 fedavg fedprox-fashion-mnist "${few[@]}" --set method.name=fedavg
at_least 79 fedprox fedprox-fashion-mnist "${few[@]}"
at_least 81 scaffold scaffold-fashion-mnist "${few[@]}"
at_least 80 adam fedprox-fashion-mnist "${few[@]}" --set method.name=fedavg --set client.optimizer=adam \
  --set client.learning_rate=0.001
if "$program" data info hapt14 >/dev/null 2>&1; then
  at_least 77 hapt fedavg-hapt --set rounds=40
  at_least 77 hapt-sgd fedavg-hapt --set rounds=40 --set client.optimizer=sgd --set client.learning_rate=0.1
fi
