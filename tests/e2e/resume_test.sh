#!/bin/bash
# Runs that are killed, or stopped with Ctrl-C, and resumed end with the model of an undisturbed run.
#   resume_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"

# Long enough to be caught at work, one client after the other.
run=("$program" run --quiet --threads 1 --set client.epochs=120 --json)

# catch FOLDER RECIPE SIGNAL EVENTS PAUSE [--resume]: starts a run, waits until its log has so many finished
# clients, then for PAUSE, and sends the signal. Sets `status`.
catch() {
  local folder=$1 recipe=$2 signal=$3 events=$4 pause=$5
  shift 5
  "${run[@]}" "$recipe" --out "$folder" "$@" >"$folder.json" 2>"$folder.err" &
  local pid=$! tries=0
  until [ "$(grep -c client-finished "$folder/events.jsonl" 2>/dev/null || true)" -ge "$events" ] 2>/dev/null; do
    kill -0 $pid 2>/dev/null || break
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || fail "$folder: nothing happens"
    sleep 0.02
  done
  sleep "$pause"
  kill -"$signal" $pid 2>/dev/null || true
  status=0
  wait $pid 2>/dev/null || status=$?
}

killed=0
# Of the people's rounds many go by between two checkpoints.
sed -i 's/^rounds = 6/rounds = 400/; s/^epochs = 3/epochs = 1/' people.toml
sed 's/name = "fedbnn"/name = "scaffold"/; s/^rounds = 2/rounds = 4/' network.toml >scaffold.toml
sed -i 's/^\[federation\]/&\nselect = "validation"/' network.toml
for recipe in one-shot two-exchanges fedtm people network scaffold; do
  "${run[@]}" $recipe.toml --out $recipe >$recipe.json
  expected=$(field $recipe.json model_sha256)
  uploads=$(field $recipe.json total_upload_bytes)
  samples=$(field $recipe.json train_samples)
  moments=("0 0" "0 0.05" "1 0" "2 0.1" "3 0.02")
  [ $recipe != two-exchanges ] || moments=("0 0.05" "3 0.02" "4 0")  # in the first, at its end, in the second
  [[ $recipe != @(network|scaffold) ]] || moments=("0 0.05" "1 0" "3 0.02")  # these take longest
  for moment in "${moments[@]}"; do
    folder=$recipe-${moment/ /-}
    catch $folder $recipe.toml KILL ${moment% *} ${moment#* }
    [ $status = 137 ] && killed=$((killed + 1))
    # And once more, on the way.
    catch $folder $recipe.toml KILL $((${moment% *} + 1)) 0.03 --resume
    "${run[@]}" $recipe.toml --out $folder --resume >$folder.json || fail "$folder: does not resume"
    [ "$(field $folder.json model_sha256)" = "$expected" ] || fail "$folder: another model"
    [ "$(field $folder.json total_upload_bytes)" = "$uploads" ] || fail "$folder: other bytes"
    [ "$(field $folder.json train_samples)" = "$samples" ] || fail "$folder: other samples"
    cmp $folder/model.safetensors $recipe/model.safetensors
    python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' $folder/events.jsonl
  done
  echo "$recipe: $expected"
done
[ $killed -ge 4 ] || fail "only $killed runs were caught at work"

# A signal that is handled has to come in time.
for recipe in one-shot fedtm; do
  epochs=1000
  [ $recipe = one-shot ] || epochs=400  # and more rounds
  run=("$program" run --quiet --threads 1 --set client.epochs=$epochs --json)
  "${run[@]}" $recipe.toml --out $recipe-long >$recipe-long.json
  for signal in INT TERM; do
    folder=$recipe-$signal
    # On a busy machine the run may be over before the signal comes: then once more, from the beginning.
    for try in 1 2 3 4 5 6 7 8; do
      rm -rf $folder
      catch $folder $recipe.toml $signal 1 0
      [ $status = 0 ] || break
    done
    [ $status = 1 ] || fail "$signal: status $status: $(cat $folder.err)"
    [ "$(wc -l <$folder.err)" = 1 ] || fail "$signal: $(cat $folder.err)"
    grep -q -- --resume $folder.err || fail "$signal: nothing about --resume: $(cat $folder.err)"
    [ ! -s $folder.json ] || fail "$signal: a result although stopped"
    [ ! -e $folder/summary.json ] || fail "$signal: a summary although stopped"
    grep -q client-finished $folder/events.jsonl
    "${run[@]}" $recipe.toml --out $folder --resume >$folder.json
    [ "$(field $folder.json model_sha256)" = "$(field $recipe-long.json model_sha256)" ] || fail "$signal: another model"
    grep -q '"origin":"checkpoint"' $folder/events.jsonl || [ $recipe = fedtm ] || fail "$signal: trained again"
  done
done

# A finished run, resumed, prints what it printed and trains nothing.
before=$(wc -l <fedtm-long/events.jsonl)
"${run[@]}" fedtm.toml --out fedtm-long --resume >again.json
cmp again.json fedtm-long.json
[ "$(wc -l <fedtm-long/events.jsonl)" = "$before" ] || fail "a finished run went on"
nothing_half_written
