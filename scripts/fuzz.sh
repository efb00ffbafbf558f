#!/bin/sh
# Runs every fuzz target of the module for a while: scripts/fuzz.sh GO TIME
set -eu
go=$1 time=$2
for pkg in $("$go" list ./...); do
	for target in $("$go" test -list '^Fuzz' "$pkg" | grep '^Fuzz' || true); do
		echo "fuzz: $pkg $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$pkg"
	done
done
