#!/bin/sh
# Takes the Dockerfile's steps in a chroot and tries the result, where images cannot be pulled: scripts/image-check.sh
#
# It reads the Dockerfile itself (FROM, RUN, COPY, WORKDIR, ARG, ENV, USER) and needs root, apt-get and a Debian mirror. Stages
# begin with a minimal Debian of the suite that the image is of, made by debootstrap; to the builder it gives this machine's Go with its
# caches, and the RocksDB of the cache if it has been built already (IMAGE_CHECK_FRESH=1: build it there too). What it cannot
# see: what the real base images have besides, and multi-platform builds.
#
# Settings (environment): IMAGE_CHECK_DIR, where the stages are (default: a temporary directory; the base in it is used again),
# IMAGE_CHECK_MIRROR, a Debian mirror (default: the one that this machine's apt uses).
set -eu
cd "$(dirname "$0")/.."

say() { printf 'image-check: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root, for chroot"
command -v debootstrap >/dev/null 2>&1 || apt-get install -y --no-install-recommends debootstrap >&2
suite=$(sed -n 's/^FROM debian:\([a-z]*\).*/\1/p' Dockerfile)
mirror=${IMAGE_CHECK_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
	grep -oE 'https?:/[^[:space:]]+/debian/?$' | head -n 1)}
keep=${IMAGE_CHECK_DIR:-}
top=${keep:-$(mktemp -d)}
mkdir -p "$top"
go=$(go env GOROOT)
modules=$(go env GOMODCACHE)

# leave unmounts everything below the stages, deepest first; rm must never come to a place that is mounted.
leave() {
	code=$?
	trap - EXIT
	awk -v top="$top/" 'index($2, top) == 1 { print $2 }' /proc/mounts | sort -r | while read -r m; do umount "$m" || umount -l "$m"; done
	if grep -q " $top/" /proc/mounts; then say "still mounted below $top; left as it is"; exit 1; fi
	rm -rf "$top"/stage-*
	[ -n "$keep" ] || rm -rf "$top"
	exit $code
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

base=$top/base
if [ ! -f "$base/etc/debian_version" ]; then
	say "making a minimal $suite from $mirror"
	debootstrap --variant=minbase "$suite" "$base" "$mirror" >"$top/debootstrap.log" 2>&1 ||
		{ tail -n 5 "$top/debootstrap.log" >&2; die "debootstrap failed"; }
fi

settings=; user=root; root=; work=/
inside() { # inside USER COMMAND: runs a shell command in the stage
	chroot --userspec="$1" "$root" /usr/bin/env -i HOME="$(home "$1")" PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		sh -ec "$settings cd '$work'; $2"
}
home() { awk -F: -v u="$1" '$1 == u { print $6 }' "$root/etc/passwd"; }

stage() { # FROM IMAGE [AS NAME]
	root=$top/stage-${3:-final}
	settings= user=root work=/
	say "FROM $*"
	cp -a "$base" "$root"
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	mount --bind /dev "$root/dev"
	mount -t proc proc "$root/proc"
	case "$1" in
	golang:*) # what that image has: Go, a C compiler, make, git, certificates
		inside root "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ca-certificates g++ gcc git libc6-dev make pkg-config" \
			>"$top/golang.log" 2>&1 || { tail -n 5 "$top/golang.log" >&2; die "cannot make what $1 has"; }
		# A proxy with a certificate of its own may stand before this machine.
		cp "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$root/etc/ssl/certs/ca-certificates.crt"
		mkdir -p "$root/usr/local/go" "$root/go/pkg/mod" "$root/root/.cache/joinbench" "$root/root/.cache/go-build"
		mount --bind "$go" "$root/usr/local/go"
		mount --bind "$modules" "$root/go/pkg/mod"
		mount --bind "$(go env GOCACHE)" "$root/root/.cache/go-build"
		settings="export GOPATH=/go GOTOOLCHAIN=local GOPROXY='$(go env GOPROXY)';"
		prefix=${XDG_CACHE_HOME:-$HOME/.cache}/joinbench/rocksdb-$(scripts/rocksdb.sh --key)
		[ -n "${IMAGE_CHECK_FRESH:-}" ] || [ ! -d "$prefix" ] || { say "RocksDB comes from this machine's cache"
			cp -a "$prefix" "$root/root/.cache/joinbench/"; }
		;;
	esac
}

put() { # COPY [--from=STAGE] SOURCE... TARGET
	from=.
	case "$1" in --from=*) from=$top/stage-${1#--from=}; shift ;; esac
	sources=
	while [ $# -gt 1 ]; do sources="$sources $1"; shift; done
	case "$1" in /*) to=$root$1 ;; *) to=$root$work/$1 ;; esac
	case "$1" in */ | . | ./) mkdir -p "$to" ;; *) mkdir -p "$(dirname "$to")" ;; esac
	for s in $sources; do
		if [ "$s" = . ]; then
			git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -x -C "$to"
		else
			cp -a "$from/$s" "$to"
		fi
	done
}

# One instruction a line.
sed -e '/^#/d' -e ':a' -e '/\\$/N; s/\\\n//; ta' -e '/^$/d' Dockerfile >"$top/steps"
while read -r word rest <&3; do
	case "$word" in FROM) ;; *) say "$word $rest" ;; esac
	# shellcheck disable=SC2086 # an instruction is words
	case "$word" in
	FROM) stage $rest ;;
	RUN) inside "$user" "$rest" </dev/null ;;
	COPY) put $rest ;;
	WORKDIR) work=$rest; mkdir -p "$root$work" ;;
	ARG | ENV) settings="${settings}export $rest;" ;;
	USER) user=$rest ;;
	ENTRYPOINT) entry=$(echo "$rest" | tr -d '[]"') ;;
	CMD) ;;
	*) die "cannot take the step $word" ;;
	esac
done 3<"$top/steps"

say "trying it as $user"
[ "$(inside "$user" 'id -u')" != 0 ] || die "the image runs as root"
inside "$user" "$entry version"
sed -e 's/pending: .*/pending: 20k/' -e 's/b_events: .*/b_events: 200k/' -e 's/b_rate: .*/b_rate: 100/' pipeline/profiles/quick.yaml >"$root$work/small.yaml"
inside "$user" "$entry run --config small.yaml --progress none --out run.json" | grep ': 0 missing, 0 spurious, 0 duplicated' || die "run was not right, or gave no report"
inside "$user" "printf '%s\n' '{\"k\":\"p\",\"t\":1}' >a; cp a b; printf '%s\n' 'a: {key: \$.k, time: \$.t}' 'b: {key: \$.k, time: \$.t}' 'window: {within: 1h}' >j.yaml
	$entry join -c j.yaml --a a --b b --progress none" | grep -q '"key":"p"' || die "join gave no pair"
inside "$user" "$entry broker --listen 127.0.0.1:0 --data data >addr 2>broker.err & p=\$!; until [ -s addr ]; do kill -0 \$p; sleep 0.1; done; kill \$p; wait \$p"
say "the image's files, without the base: $(du -sh "$root/usr/local/bin" | cut -f1); all: $(du -shx "$root" | cut -f1)"
say ok
