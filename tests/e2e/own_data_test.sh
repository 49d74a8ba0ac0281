#!/bin/bash
# Devices that bring data of their own: a CSV file each, whose columns and classes come in any order.
#   own_data_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"

# The server holds rows to test on and no device's; the third device has seen one class alone.
cat >own.toml <<'TOML'
name = "own"
rounds = 5
[data]
file = "table.csv"
label = "kind"
ignore = "person"
[model]
name = "mlp"
hidden = [8]
[method]
name = "fed-bin-mlp"
[client]
epochs = 5
learning_rate = 0.01
[federation]
clients = 3
TOML
python3 - <<'PYTHON'
import random
draw = random.Random(9)
for device in range(3):
    with open(f"device-{device}.csv", "w") as file:
        print("note,kind,weight,height", file=file)
        for i in range(60):
            kind = 1 if device == 2 else i % 2
            print(f"x{i},{'cat' if kind else 'dog'},{draw.gauss(-kind * 2, 1):.4f},{draw.gauss(kind * 3, 1):.4f}", file=file)
PYTHON
sed 's/^x5,[a-z]*,/x5,cow,/' device-0.csv >cow.csv
sed 's/height/depth/' device-0.csv >depth.csv

serve own own.toml --plaintext
wait_for_port own
bad() {
  local status=0
  "$program" join --server 127.0.0.1:$port --plaintext --id "bad-$1" --state "bad-$1" --data "$2" 2>err || status=$?
  [ $status = 2 ] && grep -q "$3" err || fail "$1: status $status: $(cat err)"
  echo "   $(tail -1 err)"
}
# Nothing of these is a client yet: a place is taken by name, so they come back with their data put right.
bad 0 cow.csv "class 'cow' is not a class of the federation"
bad 1 depth.csv "has no column 'height'"
bad 2 nothing.csv "nothing.csv"
for device in 0 1 2; do
  "$program" join --server 127.0.0.1:$port --plaintext --id bad-$device --state bad-$device --data device-$device.csv \
    >device-$device.out 2>device-$device.err &
  client_pids[$device]=$!
  started+=($!)
done
for device in 0 1 2; do finish ${client_pids[$device]} device-$device; done
finish $server_pid own
python3 - <<'PYTHON' || fail "own.json: $(cat own.json)"
import json
summary = json.load(open("own.json"))
assert summary["clients"] == 3 and summary["accuracy"] > 0.9, summary["accuracy"]
assert summary["partition"] == "their own, 3 clients"
PYTHON
# A device's model is the federation's.
"$program" predict bad-1/model.safetensors --data table.csv --json >predicted.json
[ "$(field predicted.json accuracy)" = "$(field own.json accuracy)" ] || fail "a device's model: $(cat predicted.json)"
