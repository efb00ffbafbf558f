#!/bin/sh
# What the live view costs: pairs of short closed-loop runs, one with the view and one without, in changing order. Prints the
# ratio of throughput and of CPU time per B (with / without) of each pair, and their medians with the middle half.
#
#   scripts/liveview.sh [pairs] [arguments of run]      # default: 10 pairs of profile quick, cut to 3 M B
#
# The view is the full-screen one, the dearest, drawn to nowhere. Other work on the machine spreads the ratios: it takes
# more pairs then, and the CPU time tells more than the throughput.
set -eu
cd "$(dirname "$0")/.."
pairs=${1:-10}
[ $# -gt 0 ] && shift
bin=${JOINBENCH:-bin/joinbench}
[ -x "$bin" ] || { echo "liveview: no $bin: run make first" >&2; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export JOINBENCH_LOAD_B_EVENTS="${JOINBENCH_LOAD_B_EVENTS:-3M}"

# one runs with a view and prints achieved_per_s and cpu_s_per_million.
one() {
	view=$1
	shift
	"$bin" run --out "$dir/r.json" --progress "$view" "$@" >/dev/null 2>"$dir/err" || { cat "$dir/err" >&2; exit 1; }
	awk -F'[:,]' '/"achieved_per_s"/ { rate = $2 } /"cpu_s_per_million"/ { cpu = $2 } END { print rate + 0, cpu + 0 }' "$dir/r.json"
}

i=0
while [ "$i" -lt "$pairs" ]; do
	if [ $((i % 2)) = 0 ]; then
		on=$(one tty "$@")
		off=$(one none "$@")
	else
		off=$(one none "$@")
		on=$(one tty "$@")
	fi
	echo "$on $off" | awk '{ printf "%.4f %.4f\n", $1 / $3, $2 / $4 }' | tee -a "$dir/ratios" | awk '{ print "throughput " $1 "  CPU " $2 }'
	i=$((i + 1))
done
for column in 1 2; do
	awk -v c=$column '{ print $c }' "$dir/ratios" | sort -n | awk -v c=$column '
		function at(q,  x, k) { x = 1 + q * (NR - 1); k = int(x); return k < NR ? v[k] + (x - k) * (v[k + 1] - v[k]) : v[NR] }
		{ v[NR] = $1 }
		END { printf "%s with / without the view: median %.4f, middle half %.4f to %.4f, %d pairs\n",
			c == 1 ? "throughput" : "CPU per B", at(0.5), at(0.25), at(0.75), NR }'
done
