#!/bin/sh
# kernel_test.sh, as shards and repeated runs start it.
set -eu
script=$1 nestor=$2 library=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints its arguments.
printf '#!/bin/sh\necho "$@"\n' >"$work/echo"
chmod +x "$work/echo"

fail() {
  echo "FAILED: $1" >&2
  exit 1
}
# TEST_SHARD_INDEX and the like are this test's own, too.
run() {
  env -u TEST_SHARD_INDEX -u TEST_TOTAL_SHARDS -u TEST_SHARD_STATUS_FILE -u TEST_RUN_NUMBER "$@"
}

[ "$(run "$script" "$work/echo" softmax --where='C > 1')" = 'check softmax --where=C > 1 --seed=1' ] ||
  fail "arguments are not handed on"

# All seeds of three runs of two shards are different.
for number in 1 2 3; do
  for index in 0 1; do
    run TEST_SHARD_INDEX=$index TEST_TOTAL_SHARDS=2 TEST_SHARD_STATUS_FILE="$work/status$index" \
      TEST_RUN_NUMBER=$number "$script" "$work/echo" softmax
  done
done >"$work/seeds"
[ "$(sort -u "$work/seeds" | wc -l)" = 6 ] || fail "shards share seeds: $(cat "$work/seeds")"
[ -e "$work/status0" ] && [ -e "$work/status1" ] || fail "Bazel is not told that shards are known"

code=0
run "$script" "$nestor" softmax --library="$library" --symbol=softmax_by_16 >"$work/report" || code=$?
[ $code = 1 ] || fail "a wrong kernel's exit code is $code"
grep -q 'C % 16 == 1' "$work/report" || fail "there is no report"
