#!/bin/bash
# As federate_kill_test.sh, for longer: 50 kills of the server, 50 of clients, 50 of both at once, for a method with
# personal models, and 12 for each of three others; then a disk that fills up.
#   federate_kill_slow_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
source "$2/tests/e2e/federate.sh"
source "$2/tests/e2e/federate_kill.sh"

# Rounds enough to be caught at work so often.
sed -i 's/^rounds = 6/rounds = 6000/; s/^epochs = 3/epochs = 1/' people.toml
sed -i 's/^rounds = 4/rounds = 60/; s/^epochs = 3/epochs = 20/' fedtm.toml
sed -i 's/^epochs = 3/epochs = 2000/' one-shot.toml two-exchanges.toml
for recipe in people fedtm one-shot two-exchanges; do
  "$program" run $recipe.toml --quiet --out simulated-$recipe >/dev/null
done
for victims in server clients both; do
  federate_killed people-$victims people.toml 4 50 7 $victims
  [ $killed -ge 50 ] || fail "$victims: only $killed processes were caught at work"
  same_as people-$victims simulated-people
  echo "people, $victims: killed $killed"
done
for recipe in fedtm one-shot two-exchanges; do
  federate_killed $recipe-both $recipe.toml 4 12 11 both
  [ $killed -ge 6 ] || fail "$recipe: only $killed processes were caught at work"
  same_as $recipe-both simulated-$recipe
  echo "$recipe, both: killed $killed"
done

echo "-- a disk that fills up"
if mkdir small && mount -t tmpfs -o size=192k tmpfs small 2>/dev/null; then
  trap 'end_all; umount -l "$work/small"' EXIT
  port=$(free_port)
  sed 's/^rounds = 6000/rounds = 40/' people.toml >short.toml
  "$program" run short.toml --quiet --out simulated-short >/dev/null
  dd if=/dev/zero of=small/ballast bs=1k count=60 2>/dev/null
  for number in 0 1 2 3; do join full $number --plaintext --quiet; done
  status=0
  "$program" serve short.toml --state small/full --listen 127.0.0.1:$port --plaintext --quiet >full.json 2>full.err || status=$?
  [ $status = 1 ] && [ "$(wc -l <full.err)" = 1 ] || fail "full disk: status $status: $(cat full.err)"
  echo "   $(cat full.err)"
  rm small/ballast
  mount -o remount,size=64m small
  "$program" serve short.toml --state small/full --listen 127.0.0.1:$port --plaintext --quiet --json >full.json 2>full.err ||
    fail "with room again: $(cat full.err)"
  same_as small/full simulated-short
else
  echo "   (not tried: no tmpfs can be mounted here)"
fi
