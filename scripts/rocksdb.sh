#!/bin/sh
# Gets a release build of RocksDB and says where it is.
#
#   scripts/rocksdb.sh            build once if needed, print the prefix (include/, lib/librocksdb.a)
#   scripts/rocksdb.sh --env      the same, printed as the CGO_* settings that `go build` needs
#   scripts/rocksdb.sh --key      print the cache key (version and build flags) and stop
#
# Settings (environment):
#   ROCKSDB_PREFIX   use this release build instead of making one
#   ROCKSDB_TARBALL  use this source archive instead of fetching it (its checksum must match all the same)
#   ROCKSDB_MIRROR   Debian mirror to fetch the source from; default: the one this machine's apt uses
#   XDG_CACHE_HOME   where the cache lives; default: ~/.cache
#
# Why not the distribution's librocksdb: it is compiled with assertions, which makes a batched put 2.5 times
# as slow and turns a forgotten handle into an abort (DESIGN.md, decision 4).
set -eu

VERSION=9.10.0
SHA256=fdccab16133c9d927a183c2648bcea8d956fb41eb1df2aacaa73eb0b95e43724
SUITE=trixie # the Debian suite whose source package is 9.10.0

program=rocksdb
. "$(dirname "$0")/tools.sh"

case "$(uname -m)" in
x86_64) portable=haswell ;; # AVX2 and BMI2: every server CPU since 2015
*) portable=1 ;;
esac
# Everything that changes the library is in this list, and the list is in the cache key.
FLAGS="-DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12
-DPORTABLE=$portable -DUSE_RTTI=1 -DROCKSDB_BUILD_SHARED=OFF -DWITH_LZ4=1 -DWITH_ZSTD=1
-DWITH_TESTS=0 -DWITH_TOOLS=0 -DWITH_CORE_TOOLS=0 -DWITH_BENCHMARK_TOOLS=0
-DWITH_GFLAGS=0 -DWITH_SNAPPY=0 -DWITH_LIBURING=0 -DFAIL_ON_WARNINGS=0"
key=$VERSION-$(printf '%s %s' "$FLAGS" "$(uname -m)" | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/joinbench
prefix=$cache/rocksdb-$key

links() { # links LIB...: can the C++ linker find them?
	command -v g++ >/dev/null 2>&1 && printf 'int main(){return 0;}' |
		g++ -x c++ - -o /dev/null "$@" >/dev/null 2>&1
}

# need_link_tools: what `go build` needs, also when the library itself is already in the cache.
need_link_tools() {
	links -llz4 -lzstd || install_tools g++ liblz4-dev libzstd-dev
	links -llz4 -lzstd || die "g++ still cannot link lz4 and zstd" "try: echo 'int main(){}' | g++ -x c++ - -llz4 -lzstd"
}

need_build_tools() {
	missing=
	command -v cmake >/dev/null 2>&1 || missing="$missing cmake"
	command -v ninja >/dev/null 2>&1 || missing="$missing ninja-build"
	[ -z "$missing" ] || install_tools $missing
}

# check_prefix DIR: is it RocksDB 9.10 without assertions?
check_prefix() {
	header=$1/include/rocksdb/version.h
	[ -f "$header" ] || die "$1 has no include/rocksdb/version.h" "ROCKSDB_PREFIX must hold include/ and lib/librocksdb.a"
	[ -f "$1/lib/librocksdb.a" ] || die "$1 has no lib/librocksdb.a" "build it with -DROCKSDB_BUILD_SHARED=OFF"
	got=$(awk '/define ROCKSDB_(MAJOR|MINOR)/ { printf "%s%s", sep, $3; sep = "." }' "$header")
	[ "$got" = "${VERSION%.*}" ] || die "$1 is RocksDB $got, and the Go binding needs ${VERSION%.*}"
	if command -v nm >/dev/null 2>&1 && nm "$1/lib/librocksdb.a" 2>/dev/null | grep -q ' U __assert_fail'; then
		die "$1 was compiled with assertions" "build it with -DCMAKE_BUILD_TYPE=Release"
	fi
}

# mirror: the first plain Debian mirror that apt on this machine uses.
mirror() {
	[ -z "${ROCKSDB_MIRROR:-}" ] || { echo "$ROCKSDB_MIRROR"; return; }
	cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		grep -v '^[[:space:]]*#' | grep -oE '(https?|file|copy):/[^[:space:]]+' |
		grep -E '/debian/?$' | head -n 1
}

# fetch FILE: puts the source archive there.
fetch() {
	if [ -n "${ROCKSDB_TARBALL:-}" ]; then
		cp "$ROCKSDB_TARBALL" "$1" || die "cannot read ROCKSDB_TARBALL=$ROCKSDB_TARBALL"
		return
	fi
	command -v apt-get >/dev/null 2>&1 || die "no apt-get to fetch the source with" \
		"download rocksdb_$VERSION.orig.tar.gz of Debian's source package and set ROCKSDB_TARBALL to it"
	from=$(mirror)
	[ -n "$from" ] || die "no Debian mirror in this machine's apt sources" "set ROCKSDB_MIRROR=http://.../debian"
	say "fetching the source of $VERSION"
	apt=$work/apt
	mkdir -p "$apt/lists/partial" "$apt/get"
	# trusted=yes: older keyrings do not know this suite; the pinned checksum is what vouches for the archive.
	echo "deb-src [trusted=yes] $from $SUITE main" >"$apt/sources.list"
	set -- "$1" -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=0
	to=$1
	shift
	(cd "$apt/get" && apt-get "$@" update && apt-get "$@" source --tar-only --download-only rocksdb) \
		>"$work/fetch.log" 2>&1 || { tail -n 10 "$work/fetch.log" >&2
		die "could not fetch the source package" "the lines above say why; or set ROCKSDB_TARBALL or ROCKSDB_MIRROR"; }
	mv "$apt"/get/rocksdb_*.orig.tar.* "$to" || die "apt-get left no source archive"
}

build() {
	work=$cache/build.$$
	mkdir -p "$work"
	trap 'rm -rf "$work"' EXIT INT TERM
	need_build_tools
	archive=$cache/rocksdb_$VERSION.orig.tar.gz
	[ -f "$archive" ] && [ -z "${ROCKSDB_TARBALL:-}" ] || { fetch "$work/archive" && mv "$work/archive" "$archive"; }
	got=$(sha256sum "$archive" | cut -d' ' -f1)
	[ "$got" = "$SHA256" ] || { rm -f "$archive"
		die "the source archive has the wrong checksum" "expected $SHA256" "got      $got" "removed; try again"; }
	tar -xzf "$archive" -C "$work" || die "cannot unpack $archive (disk full?)"
	src=$(find "$work" -maxdepth 2 -name CMakeLists.txt -print | head -n 1)
	[ -n "$src" ] || die "the archive holds no CMakeLists.txt"
	jobs=${ROCKSDB_JOBS:-$(nproc)}
	say "building $VERSION in release mode with $jobs jobs: about 5 minutes on 2 cores, once"
	# shellcheck disable=SC2086 # the flags are words on purpose
	cmake -S "$(dirname "$src")" -B "$work/out" -G Ninja $FLAGS >"$work/cmake.log" 2>&1 ||
		{ tail -n 20 "$work/cmake.log" >&2; die "cmake failed; the lines above say why"; }
	progress "$work/build.log" &
	ticker=$!
	cmake --build "$work/out" -j "$jobs" --target rocksdb >"$work/build.log" 2>&1 || { kill "$ticker" 2>/dev/null
		grep -E 'error|FAILED|Killed|No space' "$work/build.log" | head -n 20 >&2
		die "the build failed; the lines above say why" "out of memory? try ROCKSDB_JOBS=1"; }
	kill "$ticker" 2>/dev/null || true
	mkdir -p "$work/prefix/lib"
	cp -R "$(dirname "$src")/include" "$work/prefix/" && cp "$work/out/librocksdb.a" "$work/prefix/lib/" ||
		die "cannot copy the library (disk full?)"
	printf 'rocksdb %s\nflags %s\nsha256 %s\n' "$VERSION" "$FLAGS" "$SHA256" >"$work/prefix/BUILD_INFO"
	check_prefix "$work/prefix"
	mv "$work/prefix" "$prefix"
	say "ready in $prefix"
}

# progress LOG: one line every 15 s with ninja's own count.
progress() {
	while sleep 15; do say "building $(grep -oE '^\[[0-9]+/[0-9]+\]' "$1" 2>/dev/null | tail -n 1)"; done
}

[ "${1:-}" != --key ] || { echo "$key"; exit 0; }
if [ -n "${ROCKSDB_PREFIX:-}" ]; then
	prefix=$ROCKSDB_PREFIX
	check_prefix "$prefix"
	need_link_tools
else
	mkdir -p "$cache" || die "cannot create $cache" "set XDG_CACHE_HOME to a place that can be written"
	need_link_tools
	if [ ! -f "$prefix/BUILD_INFO" ]; then
		# One build at a time; whoever waited finds it done.
		exec 9>"$cache/rocksdb.lock"
		if command -v flock >/dev/null 2>&1; then flock 9; fi
		[ -f "$prefix/BUILD_INFO" ] || build
	fi
fi
case "${1:-}" in
--env)
	echo "CGO_CFLAGS=-I$prefix/include"
	echo "CGO_CXXFLAGS=-I$prefix/include"
	echo "CGO_LDFLAGS=-L$prefix/lib -lrocksdb -pthread -lstdc++ -ldl -lm -lzstd -llz4"
	;;
*) echo "$prefix" ;;
esac
