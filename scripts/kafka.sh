#!/bin/sh
# Runs Apache Kafka for tests: one or three brokers in processes of their own, on loopback, without a container.
#
#   scripts/kafka.sh start     start it (a second start changes nothing), wait until it answers, print its addresses
#   scripts/kafka.sh stop      end it cleanly; data and logs stay
#   scripts/kafka.sh status    print the addresses and exit 0 if it runs, exit 1 if not
#   scripts/kafka.sh jars      only fetch what it is made of, print where that is
#
#   --brokers 1|3   how many brokers (default 1); with 3, topics have three replicas of which two must be in sync
#   --dir DIR       where data, logs and process ids are (default: ~/.cache/joinbench/kafka-run)
#   --port PORT     the first broker's port (default 9092; `free`: one that nobody listens on)
#
# To start over with an empty broker: stop it and remove DIR. Settings (environment): XDG_CACHE_HOME, where the cache is (default ~/.cache);
# KAFKA_HEAP, each broker's largest heap (default 1g). Brokers need Java 17 or later.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
program=kafka
. "$here/tools.sh"
VERSION=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/kafka/pom.xml")
JAVA=17
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/joinbench
# The pom is what the jars are made of, so its checksum is in the name.
jars=$cache/kafka-$VERSION-$(sha256sum "$here/kafka/pom.xml" | cut -c1-8)
brokers=
dir=$cache/kafka-run
port=
answer=120 # seconds a start may take: 5 on two idle cores, many times that on busy ones

usage() { sed -n '2,14s/^# \{0,1\}//p' "$0"; }

# java_version: the major version of the java in PATH, 0 without one.
java_version() {
	v=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\)[."].*/\1/p' | head -n 1)
	echo "${v:-0}"
}

need_java() {
	[ "$(java_version)" -ge $JAVA ] || install_tools default-jre-headless
	[ "$(java_version)" -ge $JAVA ] || die "Kafka $VERSION needs Java $JAVA or later, and java is $(java_version)" \
		"put a newer java first in PATH"
}

# need_jars: Kafka's jars in the cache, fetched once.
need_jars() {
	[ ! -f "$jars/FETCHED" ] || return 0
	command -v mvn >/dev/null 2>&1 || install_tools maven
	mkdir -p "$cache" || die "cannot create $cache" "set XDG_CACHE_HOME to a place that can be written"
	(
		flock 9 # one at a time; whoever waited finds it done
		[ ! -f "$jars/FETCHED" ] || exit 0
		say "fetching Kafka $VERSION (110 MB, once)"
		rm -rf "$jars"
		mkdir -p "$jars"
		mvn -B -q -f "$here/kafka/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$jars" \
			>"$cache/kafka-fetch.log" 2>&1 || { tail -n 15 "$cache/kafka-fetch.log" >&2
			die "mvn could not fetch Kafka $VERSION" "the lines above say why; a mirror belongs in ~/.m2/settings.xml"; }
		touch "$jars/FETCHED"
	) 9>"$cache/kafka.lock"
}

# taken PORT: does somebody listen on it? The kernel's own tables say so; no tool is needed.
taken() {
	cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		awk -v want="$(printf '%04X' "$1")" '$4 == "0A" { n = split($2, a, ":"); if (a[n] == want) found = 1 } END { exit !found }'
}

# free_port COUNT: the first of COUNT ports in a row that nobody listens on, below those that the kernel gives to clients.
free_port() {
	tries=0
	while [ $tries -lt 200 ]; do
		tries=$((tries + 1))
		p=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 10000))
		i=0
		while [ $i -lt "$1" ] && ! taken $((p + i)); do i=$((i + 1)); done
		[ $i -lt "$1" ] || { echo $p; return; }
	done
	die "found no free port" "say one with --port"
}

home() { echo "$dir/broker-$1"; }

# pid_of N: the process of broker N; empty if that is gone, or its number is another's by now.
pid_of() {
	pid=$(cat "$(home "$1")/pid" 2>/dev/null) || return 0
	{ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF "kafka.Kafka $(home "$1")/server.properties" && echo "$pid" || true
}

# free_soon N PORT: does nobody listen on the port? A broker N that was killed may go on doing so for a moment after its main thread has gone.
free_soon() {
	tries=0
	while taken "$2"; do
		[ -f "$(home "$1")/server.log" ] && [ $tries -lt 50 ] || return 1
		sleep 0.2
		tries=$((tries + 1))
	done
}

# started N: has broker N's present life come up? It says so once the controller takes it for alive.
started() { grep -q 'Kafka Server started' "$(home "$1")/server.log" 2>/dev/null && taken $((port + $1 - 1)); }

each() { seq 1 "$brokers"; }

addresses() {
	a=
	for n in $(each); do a=$a${a:+,}127.0.0.1:$((port + n - 1)); done
	echo "$a"
}

# known: takes what an earlier start decided.
known() {
	[ -f "$dir/settings" ] || return 1
	wanted_brokers=$brokers wanted_port=$port
	read -r brokers port id <"$dir/settings"
	case "$wanted_brokers" in "" | "$brokers") ;; *) die "$dir has $brokers broker(s), not $wanted_brokers" "take another --dir" ;; esac
	case "$wanted_port" in "" | free | "$port") ;; *) die "the brokers of $dir are at port $port, not $wanted_port" "take another --dir" ;; esac
}

running() { for n in $(each); do [ -n "$(pid_of "$n")" ] && started "$n" || return 1; done; }

decide() {
	brokers=${brokers:-1}
	[ "$port" != free ] || port=$(free_port $((2 * brokers)))
	port=${port:-9092}
	# A cluster's id is 16 bytes in base64; one that began with a dash would look like a flag.
	id=J$(head -c 16 /dev/urandom | base64 | tr '+/' '-_' | cut -c2-21)A
	mkdir -p "$dir" && echo "$brokers $port $id" >"$dir/settings" || die "cannot write $dir" "choose another --dir"
}

properties() { # properties N
	insync=1
	[ "$brokers" = 1 ] || insync=2
	voters=
	for n in $(each); do voters=$voters${voters:+,}$n@127.0.0.1:$((port + brokers + n - 1)); done
	cat <<-EOF
		process.roles=broker,controller
		node.id=$1
		controller.quorum.voters=$voters
		controller.listener.names=CONTROLLER
		listeners=PLAINTEXT://127.0.0.1:$((port + $1 - 1)),CONTROLLER://127.0.0.1:$((port + brokers + $1 - 1))
		listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
		log.dirs=$(home "$1")/data
		auto.create.topics.enable=false
		num.partitions=4
		# Events of tests bear any time, and a week of retention would go by that.
		log.retention.ms=-1
		default.replication.factor=$brokers
		min.insync.replicas=$insync
		offsets.topic.num.partitions=4
		offsets.topic.replication.factor=$brokers
		transaction.state.log.num.partitions=4
		transaction.state.log.replication.factor=$brokers
		transaction.state.log.min.isr=$insync
		share.coordinator.state.topic.num.partitions=1
		share.coordinator.state.topic.replication.factor=$brokers
		share.coordinator.state.topic.min.isr=$insync
		# So that tests wait for seconds where production waits for minutes; a killed broker may come back once its session is over.
		broker.session.timeout.ms=4000
		broker.heartbeat.interval.ms=500
		group.initial.rebalance.delay.ms=0
		# Not sooner: a killed broker that comes back has partitions without a leader for some seconds, and what it aborts then never ends there.
		transaction.abort.timed.out.transaction.cleanup.interval.ms=8000
	EOF
}

launch() { # launch N
	at=$(home "$1")
	mkdir -p "$at"
	properties "$1" >"$at/server.properties"
	if [ ! -f "$at/data/meta.properties" ]; then
		java -Xmx256m "-Dlog4j2.configurationFile=$here/kafka/log4j2.properties" -cp "$jars/*" kafka.tools.StorageTool \
			format -t "$id" -c "$at/server.properties" >"$at/format.log" 2>&1 || { tail -n 5 "$at/format.log" >&2
			die "cannot format $at/data" "the lines above say why"; }
	fi
	[ ! -f "$at/server.log" ] || mv "$at/server.log" "$at/server.log.old"
	# Killed brokers must come back on the same port; a session of its own keeps the terminal's ^C away.
	setsid java "-Xmx${KAFKA_HEAP:-1g}" -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError \
		"-Dlog4j2.configurationFile=$here/kafka/log4j2.properties" -cp "$jars/*" \
		kafka.Kafka "$at/server.properties" >"$at/server.log" 2>&1 </dev/null 9>&- &
	echo $! >"$at/pid"
}

start() {
	known || decide
	if running; then addresses; return; fi
	need_java
	need_jars
	for n in $(each); do
		[ -n "$(pid_of "$n")" ] && continue
		for p in $((port + n - 1)) $((port + brokers + n - 1)); do
			free_soon "$n" $p || die "port $p is taken by another program" "choose another with --port (and another --dir), or end that program"
		done
	done
	for n in $(each); do [ -n "$(pid_of "$n")" ] || launch "$n"; done
	waited=0
	until running; do
		for n in $(each); do
			[ -n "$(pid_of "$n")" ] || [ $waited -lt 10 ] || { grep -iE 'error|fatal|exception|invalid' "$(home "$n")/server.log" | head -n 5 >&2
				end; die "broker $n ended while it started" "$(home "$n")/server.log says why"; }
		done
		[ $waited -lt $((answer * 5)) ] || { end; die "no answer after $answer s" "logs: $dir/broker-*/server.log"; }
		sleep 0.2
		waited=$((waited + 1))
	done
	addresses
}

# end: asks all brokers to end, and waits. A controlled shutdown asks the controllers, so with three the others must still be there: all are asked at once.
end() {
	for n in $(each); do
		pid=$(pid_of "$n")
		[ -z "$pid" ] || kill -CONT "$pid" 2>/dev/null || true
		[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null || true
	done
	waited=0
	for n in $(each); do
		while [ -n "$(pid_of "$n")" ]; do
			if [ $waited -ge 150 ]; then
				say "broker $n does not end after 30 s: killed"
				kill -KILL "$(pid_of "$n")" 2>/dev/null || true
			fi
			sleep 0.2
			waited=$((waited + 1))
		done
		rm -f "$(home "$n")/pid"
	done
}

command=${1:-}
[ $# = 0 ] || shift
while [ $# -gt 0 ]; do
	case "$1" in
	--brokers | --dir | --port) [ $# -gt 1 ] || { say "$1 needs a value"; exit 2; } ;;
	-h | --help) usage; exit 0 ;;
	*) say "no such flag: $1 (see scripts/kafka.sh --help)"; exit 2 ;;
	esac
	case "$1" in
	--brokers) brokers=$2 ;;
	--dir) dir=$2 ;;
	--port) port=$2 ;;
	esac
	shift 2
done
case "$brokers" in "" | 1 | 3) ;; *) say "--brokers is 1 or 3, not $brokers"; exit 2 ;; esac
case "$port" in free | *[!0-9]*) [ "$port" = free ] || { say "--port is a number or \`free\`, not $port"; exit 2; } ;; esac
case "$dir" in /*) ;; *) dir=$(pwd)/$dir ;; esac

# locked FUNCTION: one start or stop at a time in a directory.
locked() {
	mkdir -p "$dir" || die "cannot create $dir" "choose another --dir"
	exec 9>"$dir/lock"
	flock 9
	"$@"
}

case "$command" in
start) locked start ;;
stop) if known; then locked end; fi ;;
status) if known && running; then addresses; else say "not running in $dir"; exit 1; fi ;;
jars) need_jars; echo "$jars" ;;
-h | --help | help) usage ;;
*) usage >&2; exit 2 ;;
esac
