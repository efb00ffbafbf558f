# joinbench. `make` builds, `make run` measures, `make test` proves. `make help` lists the rest.

SHELL := /bin/sh
GO ?= go
PKGS := ./...
BIN := bin/joinbench

# Everything that has C in it is built with the release RocksDB that scripts/rocksdb.sh provides: ROCKSDB_PREFIX names one
# that exists already.
ENV = eval "$$(scripts/rocksdb.sh --env | sed 's/^\([A-Z_]*\)=\(.*\)$$/export \1="\2"/')" && export CGO_ENABLED=1 GOFLAGS="$(FLAGS)" &&
FLAGS = -tags=grocksdb_no_link -buildvcs=false
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
DIRTY := $(shell test -z "$$(git status --porcelain --untracked-files=no 2>/dev/null)" && echo false || echo true)
LDFLAGS := -X main.commit=$(COMMIT) -X main.dirty=$(DIRTY)

.PHONY: build run test test-short race crash crash-kafka lint bench fuzz soak mutants steady recovery liveview gate baseline gate-proof rocksdb env clean help kafka kafka-stop test-kafka versus-kafka image-check FORCE

build: $(BIN) ## bin/joinbench (the default)

$(BIN): FORCE
	@$(ENV) $(GO) build -ldflags '$(LDFLAGS)' -o $@ ./cmd/joinbench

run: build ## the quick benchmark, with its report
	@$(BIN) run --profile quick

test: ## all tests
	@$(ENV) $(GO) test -timeout 60m $(PKGS)

test-short: ## the tests that take less than a minute in all
	@$(ENV) $(GO) test -short $(PKGS)

race: ## all tests with the race detector, the random ones fewer
	@$(ENV) $(GO) test -race -short -timeout 60m $(PKGS)

test-kafka: ## the tests with Kafka in their name, against an Apache Kafka that is started for them
	@$(ENV) scripts/test-kafka.sh $(GO)

BROKERS ?= 1
kafka: ## start Apache Kafka on this machine (BROKERS=3), print its addresses
	@scripts/kafka.sh start --brokers $(BROKERS)

kafka-stop: ## end it; its data stay
	@scripts/kafka.sh stop

VERSUS ?=
versus-kafka: build ## B a second of serve beside a bare consumer's, on an Apache Kafka started for it (VERSUS='--rounds 5')
	@scripts/versus-kafka.sh $(BIN) $(VERSUS)

image-check: ## take the Dockerfile's steps in a chroot, where images cannot be pulled
	@scripts/image-check.sh

CRASH ?=
crash: ## kill join and run 300 times, at every failpoint and at random moments (CRASH='-crash.seed=2 -crash.n=1000')
	@$(ENV) $(GO) test -tags=crash,grocksdb_no_link -timeout 3h -run '^TestCrash$$' -v ./cmd/joinbench $(CRASH)

crash-kafka: ## kill serve, stop it, kill its broker, delete its state (CRASH='-crash.seed=2 -crash.faults=300 -crash.apache')
	@$(ENV) $(GO) test -tags=crash,grocksdb_no_link -timeout 3h -run '^TestCrashKafka$$' -v ./cmd/joinbench $(CRASH)

lint: ## gofmt, go vet, staticcheck, and govulncheck where its database can be reached
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt: $$out"; exit 1; }
	@$(ENV) $(GO) vet $(PKGS)
	@$(ENV) GOFLAGS="-tags=crash,failpoints,grocksdb_no_link -buildvcs=false" $(GO) vet $(PKGS)
	@$(ENV) $(GO) tool staticcheck $(PKGS)
	@CGO_ENABLED=0 GOARCH=arm64 $(GO) vet $$($(GO) list $(PKGS))
	@$(ENV) scripts/vulncheck.sh $(GO) $(PKGS)

BENCHTIME ?= 1s
COUNT ?= 1
bench: ## all benchmarks, in the form that benchstat reads (COUNT=10 for statistics)
	@$(ENV) $(GO) test -run '^$$' -bench . -benchtime $(BENCHTIME) -count $(COUNT) $(PKGS)

FUZZTIME ?= 20s
fuzz: ## every fuzz target for FUZZTIME
	@$(ENV) scripts/fuzz.sh $(GO) $(FUZZTIME)

STEADY ?= 10m
steady: build ## the quick benchmark for STEADY, held against its limits: memory, disk, drops, stalls (results/steady.json)
	@mkdir -p results
	@$(ENV) CLAIM_STEADY=$(STEADY) CLAIM_BIN=$(CURDIR)/$(BIN) CLAIM_DIR=$(CURDIR)/results \
		$(GO) test -count=1 -v -timeout 0 -run '^TestSteady$$' ./cmd/joinbench

liveview: build ## what the live view costs (PAIRS=10)
	scripts/liveview.sh $(PAIRS)

recovery: build ## kill -9 with 5 M waiting, resumed, held against its limits (results/recovery.json)
	@mkdir -p results
	@$(ENV) CLAIM_RECOVERY=recovery CLAIM_BIN=$(CURDIR)/$(BIN) CLAIM_DIR=$(CURDIR)/results \
		$(GO) test -count=1 -v -timeout 0 -run '^TestRecovery$$' ./cmd/joinbench

BASELINE = .ci/baseline.json
gate: build ## profile ci against the counts of the last release, which .ci/baseline.json has
	@mkdir -p results
	@$(BIN) run --profile ci --progress none --out results/ci.json > /dev/null
	@$(BIN) compare $(BASELINE) results/ci.json --strict --skip-time --limit memory=25%

baseline: build ## record .ci/baseline.json anew, when counts change on purpose
	@$(BIN) run --profile ci --progress none --label baseline --out $(BASELINE) > /dev/null

PROOF ?= docs/gate-proof.ndjson
ROUNDS ?= 50
gate-proof: ## the error rates of `ab` itself: A against A, and against A slowed down by 3 to 20 % (ROUNDS=50; goes on where it stopped)
	@$(ENV) $(GO) run ./internal/gateproof -go $(GO) -data $(PROOF) -rounds $(ROUNDS)

SOAKCASES ?= 500
soak: ## the metamorphic test with ever new seeds, until it fails or you stop it
	@$(ENV) $(GO) test -c -o bin/pipeline.test ./pipeline && cd pipeline && while :; do \
		seed=$$(date +%s%N); echo "soak: -meta.seed=$$seed -meta.n=$(SOAKCASES)"; \
		../bin/pipeline.test -test.timeout 0 -test.run '^TestMetamorphic$$' -meta.seed=$$seed -meta.n=$(SOAKCASES) || exit 1; \
	done

mutants: ## plants bugs one at a time; the metamorphic test must find each
	@$(ENV) $(GO) run ./internal/mutants -go $(GO)

rocksdb: ## get and build RocksDB, once
	@scripts/rocksdb.sh

env: ## print what go needs: eval "$$(make -s env)"
	@$(ENV) for v in CGO_ENABLED CGO_CFLAGS CGO_CXXFLAGS CGO_LDFLAGS GOFLAGS; do eval "echo \"export $$v='\$$$$v'\""; done

clean: ## remove what was built here (the RocksDB in the cache stays)
	rm -rf bin

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14
