#!/bin/bash
# Every relative link in a page leads to a file, and to a heading of it; every path in README's code blocks and every page
# that sources name exists.
set -euo pipefail
cd "$2"

status=0
missing() {
  echo "$1: found $2, expected $3"
  status=1
}

# The headings of a page as links name them.
anchors() {
  sed -n '/^```/,/^```/d; s/^#\+ //p' "$1" | tr '[:upper:] ' '[:lower:]-' | sed 's/[^[:alnum:]_-]//g'
}

while IFS= read -r page; do
  while IFS= read -r link; do
    file=${link%%#*}
    target=$(dirname "$page")/$file
    [[ -n $file ]] || target=$page
    if [[ ! -e $target ]]; then
      missing "$page" "a link to $link" "a file of that name"
    elif [[ $link == *'#'* ]] && ! anchors "$target" | grep -qxF -- "${link#*#}"; then
      missing "$page" "a link to $link" "a heading of that name"
    fi
  done < <(sed '/^```/,/^```/d' "$page" | grep -oP '\]\(\K[^)\s]+' | grep -vE '^(https?|mailto):' || true)
done < <(find . \( -path ./build -o -path ./runs \) -prune -o -name '*.md' -print)

folders='recipes|docs|examples|packaging|scripts|tests|include|benchmarks'
while IFS= read -r path; do
  [[ -e $path ]] || missing README.md "$path in a code block" "a file of that name"
done < <(sed -n '/^```/,/^```/p' README.md | grep -oP "(?<![\w./])(\./[\w-]+|($folders)/[\w./-]+)" | sort -u)

while IFS=: read -r file page; do
  [[ -e $page ]] || missing "$file" "$page" "a page of that name"
done < <(grep -roE --exclude-dir=build --exclude='*.md' 'docs/[a-z/-]+\.(md|csv|svg)' \
  bitfed cli tests recipes scripts packaging proto include examples benchmarks cmake)

exit $status
