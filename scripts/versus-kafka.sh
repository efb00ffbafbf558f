#!/bin/sh
# What serve joins beside what a bare consumer reads, on an Apache Kafka that is started for it on a free port and removed afterwards:
#
#   scripts/versus-kafka.sh JOINBENCH [flags of joinbench run]
#
# Its data, 5 GB, lie in TMPDIR (default /tmp). Exit codes are those of joinbench run.
set -eu
joinbench=$1
shift
scripts=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
ended() {
	code=$?
	trap - EXIT
	"$scripts/kafka.sh" stop --dir "$dir/kafka" >&2 || true
	rm -rf "$dir"
	exit $code
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
address=$("$scripts/kafka.sh" start --dir "$dir/kafka" --port free)
"$joinbench" run --profile kafka --kafka "$address" "$@"
