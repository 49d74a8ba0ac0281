#!/bin/bash
# The accountant against dp_accounting of PyPI, over a grid: within 1 % of its Rényi accountant, and never below its
# tighter accountant by privacy loss distributions. Skipped where the package is missing; BITFED_DP_PYTHON names a Python
# that has it.
#   accountant_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
program=$1
python=${BITFED_DP_PYTHON:-python3}
"$python" -c 'import dp_accounting' 2>/dev/null || { echo "skipped: dp_accounting is missing"; exit 77; }
"$python" - "$program" <<'PYTHON'
import subprocess, sys, warnings
import dp_accounting
from dp_accounting import pld, rdp

warnings.filterwarnings("ignore")
worst = 0
for sigma in (0.7, 1, 2, 5):
    for q in (0.01, 0.1, 0.5, 1):
        for rounds in (1, 20, 500):
            event = dp_accounting.GaussianDpEvent(sigma)
            if q < 1:
                event = dp_accounting.PoissonSampledDpEvent(q, event)
            # Orders between the integers where the series converges, as it does for q < 0.1 and for q = 1.
            orders = [1 + x / 10 for x in range(1, 100)] if q != 0.1 and q != 0.5 else []
            accountant = rdp.RdpAccountant(orders + list(range(2, 65)) + list(range(72, 257, 8)) + list(range(320, 1025, 64)))
            accountant.compose(event, rounds)
            theirs = accountant.get_epsilon(1e-5)
            tight = pld.PLDAccountant(value_discretization_interval=1e-3)
            tight.compose(event, rounds)
            least = tight.get_epsilon(1e-5)
            ours = float(subprocess.run(
                [sys.argv[1], "privacy", "epsilon", "--noise-multiplier", str(sigma), "--sampling", str(q), "--rounds",
                 str(rounds)], check=True, capture_output=True, text=True).stdout)
            print(f"{sigma:4} {q:5} {rounds:4}  ours {ours:9.4f}  rdp {theirs:9.4f}  pld {least:9.4f}", flush=True)
            assert ours <= theirs * 1.01, "more than 1 % above its Rényi accountant"
            if orders:
                assert ours >= theirs * 0.99, "more than 1 % below its Rényi accountant"
            assert ours >= least * 0.999, "below what is possible"
            worst = max(worst, abs(ours / theirs - 1)) if orders else worst
print(f"largest difference {100 * worst:.2f} %")
PYTHON
