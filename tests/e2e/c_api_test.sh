#!/bin/bash
# The shared library stands alone; the example in C, against it, gives the classes of `bitfed predict`.
#   c_api_test.sh PROGRAM SOURCE_DIR WORK_DIR
set -euo pipefail
source "$2/tests/e2e/tiny.sh"
library=$(dirname "$program")/libbitfed.so
command -v cc >/dev/null || { echo "skipped: no C compiler"; exit 77; }
[ -e "$library" ] || fail "no $library"
nm -D "$library" | grep -Eq '__(asan|tsan|ubsan)_' && { echo "skipped: a sanitizer is in the library"; exit 77; }
# It needs nothing but the C library.
readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -Ev '^(libc|libm|ld-linux[^ ]*)\.so' >others && fail "needs: $(head -3 others)"
# Nothing but the interface is to be seen.
nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^bitfed_' >others && fail "symbols: $(head -3 others)"

cc -std=c99 -Wall -Wextra -pedantic -Werror -I"$source_dir/include" "$source_dir/examples/predict.c" "$library" \
  -Wl,-rpath,"$(dirname "$library")" -o predict
"$program" run one-shot.toml --quiet --out run >/dev/null
"$program" predict run/model.safetensors --data mnist --out predicted.csv >/dev/null
python3 - <<'PYTHON'
import glob, gzip
name = glob.glob("data/mnist/t10k-images*")[0]
data = gzip.open(name).read() if name.endswith(".gz") else open(name, "rb").read()
open("samples", "wb").write(data[16:])
PYTHON
./predict run/model.safetensors <samples >classes
# The run's test rows are the last of the file.
tail -n +2 predicted.csv | cut -d, -f2 >predicted
[ "$(wc -l <predicted)" -gt 20 ] || fail "too few rows: $(wc -l <predicted)"
cmp <(tail -n "$(wc -l <predicted)" classes) predicted || fail "other classes"
status=0
./predict samples </dev/null 2>err >out || status=$?
[ $status = 2 ] || fail "a broken model: status $status"
[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
