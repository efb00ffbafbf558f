# What scripts/rocksdb.sh and scripts/kafka.sh share: each sources it, with its own name in $program.
# shellcheck shell=sh

say() { printf '%s: %s\n' "$program" "$*" >&2; }
die() { say "$1"; shift; for line in "$@"; do say "  $line"; done; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
may_install() {
	command -v apt-get >/dev/null 2>&1 && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# install_tools PACKAGE...: installs what is missing, or prints the one command that does.
install_tools() {
	may_install || die "missing: $*; type this and try again:" "sudo apt-get install --no-install-recommends $*"
	say "installing $*"
	log=$(mktemp)
	{ as_root apt-get update && as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y --no-install-recommends "$@"; } >"$log" 2>&1 ||
		{ tail -n 15 "$log" >&2; rm -f "$log"; die "apt-get could not install: $*" "the lines above say why"; }
	rm -f "$log"
}
