#!/bin/bash
# The examples of docs/adding-an-op.md, as one patch: it applies to these sources, and what the page shows is in it.
set -eu
patch -p1 --dry-run --force --follow-symlinks < tests/adding_an_op.patch
shown=0
while IFS= read -r line; do
  line="${line#    }"
  grep -qF -- "+$line" tests/adding_an_op.patch || { echo "not in the patch: $line"; exit 1; }
  shown=$((shown + 1))
done < <(grep -E '^    [^ ].*|^      y\[' docs/adding-an-op.md)
echo "$shown lines"
[ "$shown" -ge 6 ]
