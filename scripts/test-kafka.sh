#!/bin/sh
# Runs the tests that have Kafka in their name against an Apache Kafka: scripts/test-kafka.sh GO [flags of go test]. It starts a
# broker on a free port in a directory of its own, and ends and removes it; after a failure its log stays.
set -eu
go=$1
shift
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
ended() {
	code=$?
	trap - EXIT
	scripts/kafka.sh stop --dir "$dir/kafka" || true
	if [ $code = 0 ]; then rm -rf "$dir"; else echo "test-kafka: the broker's log: $dir/kafka/broker-1/server.log" >&2; fi
	exit $code
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
address=$(scripts/kafka.sh start --dir "$dir/kafka" --port free)
# Whoever's tests use internal/kafkatest may have such tests.
packages=$("$go" list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... |
	awk '$1 == "joinbench/internal/kafkatest" || /joinbench\/internal\/kafkatest/ { print $1 }')
# shellcheck disable=SC2086 # packages are words
JOINBENCH_TEST_KAFKA=$address "$go" test -count=1 -timeout 20m -run Kafka "$@" $packages
