#!/bin/bash
# Server and clients that are killed at random moments: the run ends, with the model of an undisturbed one, and no
# update is lost or counted twice. federate_kill_slow_test.sh does it for longer.
#   federate_kill_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
source "$2/tests/e2e/federate_kill.sh"

sed -i 's/^rounds = 6/rounds = 300/' people.toml
"$program" run people.toml --quiet --out simulated >/dev/null
federate_killed both people.toml 4 8 $((${BITFED_KILL_SEED:-1})) both
[ $killed -ge 4 ] || fail "only $killed processes were caught at work"
same_as both simulated
echo "killed $killed"
