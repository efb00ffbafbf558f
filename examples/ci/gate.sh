#!/bin/sh
# A gate without any service: the baseline is a record on a branch of its own, "joinbench-baseline", one for each profile.
#
#   gate.sh check    run the profile, compare with the baseline; exit code of `joinbench compare`
#   gate.sh record   run the profile and put its record on the branch (on the main branch, when a change is meant to move counts)
#
# JOINBENCH is the program (default: joinbench), PROFILE the workload (default: ci), REMOTE where the branch lives (default: origin;
# empty: this repository alone). Files go to ./joinbench-gate: record, comparison, comment.md, junit.xml, bench.txt.
set -eu
joinbench=${JOINBENCH-joinbench} profile=${PROFILE-ci} remote=${REMOTE-origin}
branch=joinbench-baseline out=joinbench-gate
mkdir -p "$out"

run() {
	"$joinbench" run --profile "$profile" --progress none --out "$out/new.json" > "$out/report.txt"
}

fetch() {
	[ -z "$remote" ] || git fetch -q "$remote" "+refs/heads/$branch:refs/heads/$branch"
}

case ${1-} in
check)
	fetch || exit 2
	git show "$branch:$profile.json" > "$out/base.json" || exit 2 # no baseline is no pass
	rm -f "$out/new.json"
	run || [ -s "$out/new.json" ] # what the run said itself, compare says too
	"$joinbench" compare "$out/base.json" "$out/new.json" --strict --skip-time --limit memory=25% \
		-o "md=$out/comment.md" -o "junit=$out/junit.xml" -o "bench=$out/bench.txt" -o "json=$out/comparison.json"
	;;
record)
	fetch || echo "gate.sh: no branch $branch yet; it is made" >&2
	run
	# The commit is made beside the working tree: nothing is checked out.
	export GIT_INDEX_FILE="$PWD/$out/index"
	rm -f "$GIT_INDEX_FILE"
	parent=$(git rev-parse -q --verify "refs/heads/$branch" || :)
	[ -z "$parent" ] || git read-tree "$parent"
	blob=$(git hash-object -w "$out/new.json")
	git update-index --add --cacheinfo "100644,$blob,$profile.json"
	commit=$(git commit-tree "$(git write-tree)" ${parent:+-p "$parent"} -m "Baseline of profile $profile at $(git rev-parse --short HEAD)")
	git update-ref "refs/heads/$branch" "$commit" ${parent:+"$parent"}
	[ -z "$remote" ] || git push -q "$remote" "$branch"
	;;
*)
	echo "usage: gate.sh check|record" >&2
	exit 2
	;;
esac
