#!/bin/bash
# Accuracy over epsilon and, for each cell, the advantage of the membership attack beside its bound: the tables
# of docs/results/privacy.md.
#   privacy_over_epsilon.sh PROGRAM RECIPE OUT [SETTING...]
# REPEATS: of each audit (8). SEEDS: "0 1 2". EPSILONS: "none 8 4 2 1". A cell that is there is not run again.
set -euo pipefail
program=$(readlink -f "$1") recipe=$2 out=$3
shift 3
settings=("$@")
mkdir -p "$out"
sed '/^\[privacy\]/,$d' "$recipe" >"$out/without.toml" # [privacy] is the recipe's last section
for epsilon in ${EPSILONS:-none 8 4 2 1}; do
  for seed in ${SEEDS:-0 1 2}; do
    run=$out/$epsilon-$seed
    cell=("$recipe" --set "privacy.epsilon=$epsilon")
    [ "$epsilon" != none ] || cell=("$out/without.toml")
    of_cell=()
    for setting in "${settings[@]}"; do
      [[ $epsilon = none && $setting = privacy.* ]] || of_cell+=(--set "$setting")
    done
    [ -e "$run/summary.json" ] ||
      "$program" run "${cell[@]}" "${of_cell[@]}" --seed "$seed" --threads 1 --quiet --out "$run" >/dev/null
    [ "${REPEATS:-8}" = 0 ] || [ -e "$run/audit/audit.json" ] ||
      "$program" privacy audit "$run" --repeats "${REPEATS:-8}" --threads 1 --quiet >/dev/null
  done
done
python3 - "$out" <<'PYTHON'
import collections, json, pathlib, statistics, sys

cells = collections.defaultdict(list)
for summary in sorted(pathlib.Path(sys.argv[1]).glob("*/summary.json")):
    audit = summary.parent / "audit" / "audit.json"
    cells[summary.parent.name.split("-")[0]].append(
        (json.loads(summary.read_text()), json.loads(audit.read_text()) if audit.exists() else None))

print("| epsilon | noise multiplier | accuracy of each seed | mean ± deviation | advantage (95 %) | bound |")
print("|---|---|---|---|---|---|")
for epsilon, runs in sorted(cells.items(), key=lambda cell: -float(cell[0].replace("none", "inf"))):
    accuracies = [100 * summary["accuracy"] for summary, _ in runs]
    deviation = statistics.stdev(accuracies) if len(accuracies) > 1 else 0
    audits = [audit for _, audit in runs if audit]
    guesses = sum(audit["guesses"] for audit in audits)
    advantage, bound = "", ""
    if audits:
        mean = sum(audit["advantage"] * audit["guesses"] for audit in audits) / guesses
        half = sum((audit["advantage_high"] - audit["advantage_low"]) / 2 for audit in audits) / len(audits) ** 1.5
        advantage = f"{mean:.3f} ± {half:.3f}"
        bound = f"{max(audit.get('advantage_bound', 1) for audit in audits):.3f}"
    print(f"| {epsilon} | {runs[0][0].get('noise_multiplier', 0):.3f} | {', '.join(f'{a:.1f}' for a in accuracies)} "
          f"| {statistics.mean(accuracies):.1f} ± {deviation:.1f} | {advantage} | {bound} |")
PYTHON
