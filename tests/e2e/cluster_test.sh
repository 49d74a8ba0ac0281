#!/bin/bash
# Simulations over several ranks: the model of one process, for every method; errors that name the rank.
#   cluster_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/ranks.sh"

# same METHOD RANKS: as many ranks end with the model of one process.
same() {
  local method=$1 ranks=$2
  read -ra recipe <<<"$(method_recipe $method)"
  [ -e $method ] || "$program" run "${recipe[@]}" --out $method --json --quiet >$method.json
  mpirun -n $ranks "$program" run "${recipe[@]}" --out $method-$ranks --json --quiet >out.json 2>err ||
    fail "$method, $ranks ranks: $(cat err)"
  [ "$(field out.json model_sha256)" = "$(field $method.json model_sha256)" ] || fail "$method, $ranks ranks: another model"
  for name in accuracy total_upload_bytes train_samples client_results; do
    [ "$(field out.json $name)" = "$(field $method.json $name)" ] || fail "$method, $ranks ranks: another $name"
  done
  [ "$(field out.json ranks)" = $ranks ] || fail "ranks in the summary: $(field out.json ranks)"
  [ "$(field out.json hosts)" = "['$(hostname)']" ] || fail "hosts in the summary: $(field out.json hosts)"
}
# Every method with every number of ranks: cluster_kill_slow_test.sh.
read -ra numbers <<<"4 7 2 4 4 2 7 3"
for method in $all_methods; do
  same $method ${numbers[0]}
  numbers=("${numbers[@]:1}" "${numbers[0]}")
done
same fed-bin-mlp 2
same fed-bin-mlp 7
python3 -c '
import json
last = [json.loads(line) for line in open("fed-bin-mlp-7/events.jsonl") if "round-finished" in line][-1]
assert last["workers"] == 7 and 0 < last["workers_busy"] <= 1, last'

# Clients of another run, fused by several ranks.
mpirun -n 3 "$program" run one-shot.toml --set method.name=fedtmos --reuse fedtm-bank --out reused --json --quiet >out.json
[ "$(field out.json model_sha256)" = "$(field fedtmos.json model_sha256)" ] || fail "reused: another model"

# refused STATUS TEXT COMMAND...: ends with this status and one line of ours that has this text.
refused() {
  local expected=$1 text=$2 status=0
  shift 2
  timeout 60 "$@" >out 2>err || status=$?
  [ $status = $expected ] || fail "status $status, expected $expected: $(cat err)"
  [ "$(our_line err | wc -l)" = 1 ] || fail "expected one line of ours: $(cat err)"
  our_line err | grep -q "$text" || fail "expected '$text': $(cat err)"
}
one=(-n 1 "$program" run people.toml --quiet --out refused)
refused 2 'epochs' mpirun -n 3 "$program" run people.toml --set client.epochs=-1 --out refused
refused 2 'nowhere.toml' mpirun -n 3 "$program" run nowhere.toml --out refused
cp "$program" other && cp "$(dirname "$program")/bitfed-mpi.so" . && echo >>other
refused 2 "rank 1 on $(hostname): found bitfed .* (build .*), expected that of rank 0" \
  mpirun "${one[@]}" : -n 1 ./other run people.toml --quiet --out refused
images=("$program" run "$PWD/one-shot.toml" --quiet --out "$PWD/refused")
refused 2 "rank 1 on $(hostname): .*mnist" \
  mpirun -n 1 "${images[@]}" : -n 1 env -C / BITFED_DATA=/nowhere "${images[@]}"
refused 2 "rank 2 on $(hostname): read another recipe or other data than rank 0: 'epochs = 3' there, 'epochs = 2' here" \
  mpirun "${one[@]}" : "${one[@]}" : "${one[@]}" --set client.epochs=2
# A table of the same name where a sample is another person's.
here=(-n 1 "$program" run people.toml --quiet --out "$PWD/refused")
mkdir other-people && cp people.toml other-people
sed '2s/^p0,/p1,/' table.csv >other-people/table.csv
refused 2 "rank 2 on $(hostname): read another recipe or other data than rank 0: .*'train groups = " \
  mpirun "${here[@]}" : "${here[@]}" : -n 1 env -C other-people "${here[@]:2}"
# A node without a GPU. The other rank has read its data by then, and waits.
if ! "$program" run people.toml --device cuda --quiet --out device 2>err; then
  refused 2 "rank 1 on $(hostname): .*" mpirun "${one[@]}" : "${one[@]}" --device cuda
fi
# More threads than processors.
mpirun -n 1 "$program" run people.toml --out bound : \
  -n 1 taskset -c "$(taskset -cp $$ | sed 's/.*[ ,-]//')" "$program" run people.toml --threads 3 --out bound >out 2>err
grep -q "^rank 1 on $(hostname): 3 threads, 1 processor" err || fail "no word about the processors: $(cat err)"
mkdir -p full && cp fed-bin-mlp/recipe.toml full
refused 2 'holds a run already' mpirun -n 3 "$program" run people.toml --out full
[ ! -e refused ] || fail "a refused run left something"

# One rank that runs out of memory.
cat >small.sh <<S
ulimit -v 400000
exec "$program" run recipe.toml --quiet --out refused
S
sed 's/^file = .*/name = "synthetic-health"\ndevices = 20\npoints = 200000/; /^label\|^person/d' people.toml >recipe.toml
refused 1 "rank 1 on $(hostname): out of memory" \
  mpirun -n 1 "$program" run recipe.toml --quiet --out refused : -n 1 bash ./small.sh
refused 1 "rank 0 on $(hostname): out of memory" \
  mpirun -n 1 bash ./small.sh : -n 1 "$program" run recipe.toml --quiet --out refused
[ ! -e refused ] || fail "a refused run left something"

# Without the module every rank would run the whole.
cp "$program" alone && mkdir elsewhere && mv alone elsewhere/bitfed
status=0
mpirun -n 2 elsewhere/bitfed run people.toml --quiet --out refused >out 2>err || status=$?
[ $status = 1 ] || fail "without the module: status $status: $(cat err)"
grep -q 'the module for MPI is neither of' err || fail "without the module: $(cat err)"

# A rank that is killed ends all; another number of ranks goes on.
sed 's/^rounds = 6/rounds = 200/' people.toml >long.toml
# Long enough for signals to come in time, on any machine: mpirun passes one on after three seconds.
epochs=1000 SECONDS=0
until [ $SECONDS -ge 12 ]; do
  epochs=$((2 * epochs)) SECONDS=0
  long=(long.toml --set client.epochs=$epochs)
  "$program" run "${long[@]}" --out long --overwrite --json --quiet >long.json
done
mpirun -n 4 "$program" run "${long[@]}" --out killed --quiet >out 2>err &
pid=$!
until_rounds killed 30 $pid
victim=$(pgrep -P $pid -f 'bitfed run long.toml' | sed -n 2p)
kill -9 "$victim"
status=0
wait $pid || status=$?
[ $status != 0 ] || fail "a killed rank went unnoticed"
grep -q "rank .* on node $(hostname) exited on signal 9" err || fail "the killed rank is not named: $(cat err)"
for left in $(pgrep -f "bitfed run long.toml .*--out killed" || true); do fail "process $left is left"; done
mpirun -n 3 "$program" run "${long[@]}" --out killed --resume --json --quiet >out.json
[ "$(field out.json model_sha256)" = "$(field long.json model_sha256)" ] || fail "killed and resumed: another model"

# mpirun passes the signal on, but not what ranks say from then on; the run stops in good order.
# It may be over before the signal has arrived: then once more, from the beginning.
for try in 1 2 3 4 5; do
  rm -rf stopped rank.err
  mpirun -n 3 sh -c 'exec "$@" 2>>rank.err' sh "$program" run "${long[@]}" --out stopped --quiet >out 2>err &
  pid=$!
  until_rounds stopped 20 $pid
  kill -TERM $pid 2>/dev/null || true
  status=0
  wait $pid || status=$?
  [ -e stopped/summary.json ] || break
done
[ $status != 0 ] || fail "stopped, with status 0"
our_line rank.err | grep -q -- --resume || fail "stopped without a word: $(cat rank.err err)"
[ "$(our_line rank.err | wc -l)" = 1 ] || fail "expected one line of ours: $(cat rank.err)"
mpirun -n 2 "$program" run "${long[@]}" --out stopped --resume --json --quiet >out.json
[ "$(field out.json model_sha256)" = "$(field long.json model_sha256)" ] || fail "stopped and resumed: another model"

# A table: rows and seeds by a rank each, the rest by all; resumed by another number.
mkdir -p recipes/papers
cp one-shot.toml recipes/
cat >recipes/papers/tiny-table1.toml <<'TOML'
title = "A tiny table"
source = "A tiny paper"
row_header = ["data", "clients"]
seeds = [0, 20, 24]
clients_from = "fedtm-bank"
[[column]]
key = "fedtmos"
name = "FedTMOS"
method = "fedtmos"
metric = "accuracy"
[[column]]
key = "bank"
name = "fedtm-bank"
method = "fedtm-bank"
metric = "accuracy"
[[row]]
name = "mnist/4"
recipe = "one-shot.toml"
paper = { fedtmos = [50, 1.5] }
TOML
"$program" reproduce tiny:table1 --out table --quiet >out 2>err
mpirun -n 3 "$program" reproduce tiny:table1 --out table-3 --seeds 0 --quiet >out.3 2>err || fail "table: $(cat err)"
mpirun -n 2 "$program" reproduce tiny:table1 --out table-3 >out.3 2>err || fail "table: $(cat err)"
grep -q 'seed 20: begun by rank' err || fail "no run by a rank alone: $(cat err)"
cmp out out.3
for cell in table/cells/*/; do
  other=table-3/cells/$(basename "$cell")
  [ "$(field "$cell/summary.json" model_sha256)" = "$(field "$other/summary.json" model_sha256)" ] || fail "$cell: another model"
done
grep -q '"ranks": 3' table-3/cells/*-seed-0-*/summary.json || fail "no run by all ranks"

# Two runs by a rank each, then one by both: nothing is left.
sed 's/^seeds/set = ["client.epochs=2000"]\n&/' recipes/papers/tiny-table1.toml >recipes/papers/tiny-table2.toml
mpirun -n 2 "$program" reproduce tiny:table2 --out table-left >out 2>err || fail "table: $(cat err)"
[ "$(grep -o '[0-9:]* [a-z]* left for the table$' err | tail -1)" = '0 s left for the table' ] || fail "time left: $(cat err)"

here=(-n 1 "$program" reproduce tiny:table1 --out table-2 --quiet)
refused 2 "rank 2 on $(hostname): found bitfed .* (build .*), expected that of rank 0" \
  mpirun "${here[@]}" : "${here[@]}" : -n 1 ./other "${here[@]:3}"
[ ! -e table-2 ] || fail "a refused table left something"

# A sweep: runs whose clients are the same by one rank, the rest by all.
sweep=(sweep one-shot.toml --grid method.name=fedtm-bank,fedtmos --grid model.sensitivity=3,5,10)
"$program" "${sweep[@]}" --out sweep --quiet >out 2>err || fail "sweep: $(cat err)"
mpirun -n 2 "$program" "${sweep[@]}" --out sweep-2 >out.2 2>err || fail "sweep: $(cat err)"
cmp out out.2
[ "$(grep -c 'begun by rank' err)" = 2 ] || fail "expected two pairs of runs by a rank each: $(cat err)"
grep -q '"ranks": 2' sweep-2/*/seed-0/summary.json || fail "no run of the sweep by all ranks"
rm -r sweep-2/*sensitivity-3
mpirun -n 4 "$program" "${sweep[@]}" --out sweep-2 --quiet >out.4 2>err || fail "sweep resumed: $(cat err)"
cmp out out.4
nothing_half_written
