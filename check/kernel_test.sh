#!/bin/sh
# What nestor_kernel_test runs: NESTOR PROGRAM FLAGS.. Each shard, and each run of
# --runs_per_test, draws cases that no other draws.
set -eu
if [ -n "${TEST_SHARD_STATUS_FILE-}" ]; then
  touch "$TEST_SHARD_STATUS_FILE"
fi
nestor=$1
shift
run=$(((${TEST_RUN_NUMBER:-1} - 1) * ${TEST_TOTAL_SHARDS:-1} + ${TEST_SHARD_INDEX:-0}))
exec "$nestor" check "$@" --seed=$((run * 1000000000 + 1))
