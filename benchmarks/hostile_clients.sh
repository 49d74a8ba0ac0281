#!/bin/bash
# Accuracy under attack, for docs/results/hostile-clients.md: hostile_clients.sh BUILD_DIR RECIPE OUT.csv NORM_BOUND [KEY=VALUE...]
# Runs that OUT.csv has already are not repeated. KEY=VALUE overrides the recipe in all runs.
set -euo pipefail
program=$(realpath "$1")/benchmarks/hostile_clients
recipe=$2 out=$3 bound=$4
shift 4
common=("$@")
declare -A settings=(
  [mean]=""
  [norm-bound]="federation.norm_bound=$bound federation.max_samples=600"
  [median]="federation.combine=median"
  [trimmed-mean]="federation.combine=trimmed-mean federation.trim=0.4"
  [geometric-median]="federation.combine=geometric-median"
)
run() { # RULE ATTACK PERCENT SEED
  # shellcheck disable=SC2086  # settings are words
  "$program" "$recipe" "$out" "$1" "$2" "$3" "$4" "${common[@]}" ${settings[$1]} || echo "$* failed" >&2
}
for seed in 0 1 2; do
  for percent in 0 30 10; do
    attacks="sign-flip scaling label-flip backdoor"
    # Networks have no preparation round.
    if grep -q fed-bin-mlp "$recipe"; then attacks+=" round-0"; fi
    if [ $percent = 0 ]; then attacks=none; fi
    for attack in $attacks; do
      for rule in mean norm-bound median trimmed-mean geometric-median; do run $rule $attack $percent $seed; done
    done
  done
done
