#!/bin/bash
# Runs that an earlier build began and did not finish are finished by this one, with the model that the earlier build
# would have ended with; or, where a method has changed, refused with one line ("refused" instead of a model).
# tests/golden/interrupted holds what `kill -9` left of them.
#   resume_earlier_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
sed -i 's/^\[federation\]/&\nselect = "validation"/' network.toml  # as the earlier run

while read -r recipe expected settings; do
  cp -r "$source_dir/tests/golden/interrupted/$recipe" "$recipe"
  chmod -R u+w "$recipe"
  if [ "$expected" = refused ]; then
    status=0
    # shellcheck disable=SC2086  # several words
    "$program" run "$recipe.toml" $settings --out "$recipe" --resume --quiet >out 2>err || status=$?
    [ "$status $(wc -l <err)" = "2 1" ] || fail "$recipe: status $status, $(cat err)"
    echo "$recipe: refused: $(cat err)"
    continue
  fi
  # shellcheck disable=SC2086  # several words
  "$program" run "$recipe.toml" $settings --out "$recipe" --resume --json --quiet >"$recipe.json"
  found=$(field "$recipe.json" model_sha256)
  [ "$found" = "$expected" ] || fail "$recipe: model $found, expected $expected"
  grep -q round-finished "$recipe/events.jsonl" || fail "$recipe: nothing was left to do"
  echo "$recipe: $found"
done <"$source_dir/tests/golden/interrupted/expected.txt"
