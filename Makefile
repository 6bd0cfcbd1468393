# The commands for contributors. `make` alone builds both programs.

GO      ?= go
# Programs contain the tag or revision that they were built from, if git knows it.
STAMP   := -ldflags '-s -w' -buildvcs=$(if $(shell git status --porcelain >/dev/null 2>&1 && echo yes),true,false)
# The programs, the tools and the linters' input are built with the same flags, so that no package is compiled twice. Tests have other flags.
BUILD   := CGO_ENABLED=0 $(GO) build -trimpath
# The linters collect garbage half as often: that saves a quarter of the processor time and needs 4 GB of memory instead of 2.5.
LINT    := CGO_ENABLED=0 GOGC=200 GOFLAGS='$(shell $(GO) env GOFLAGS) -trimpath' $(CURDIR)/bin/golangci-lint
ARGS    ?=
# The race detector needs a C compiler. Without one, tests run without the race detector.
RACE    := $(if $(shell command -v $(firstword $(shell $(GO) env CC))),-race)
# Libraries that only compute (SQLite in Go, zstd, the cipher of bcrypt) are up to ten times slower under the race detector. So is our delta coder, which starts no goroutines. All of these are compiled without the race detector.
# Never add packages of the standard library to this list: the race detector would not see their atomic operations, and would report races that do not exist.
UNWATCHED = $(if $(RACE),$(patsubst %,-gcflags=%=-race=false,modernc.org/... github.com/klauspost/compress/... golang.org/x/crypto/blowfish snap/internal/delta))
# The race detector also turns on checks of unsafe pointers, which are for code that imports unsafe. Ours does not, so they are off. There is no debug information, because nobody debugs these binaries.
LIGHT = $(if $(RACE),'-gcflags=all=-dwarf=false -d=checkptr=0' -ldflags='-s -w')
TIMEOUT ?= 75m

.PHONY: cross image soak lint-deploy fuzz vuln build demo recording check test bench corpus load lint fmt screenshots tools axe servers databases generate clean

build: ## build both programs into bin/
	@mkdir -p bin
	$(BUILD) $(STAMP) -o bin/ ./cmd/...

demo: build ## run the whole story with real commands; ARGS=--exit stops the service and the web UI at the end
	@$(BUILD) -o bin/demo ./demo
	@bin/demo $(ARGS)

recording: build ## record the demo's real output in docs/recording.txt, and its story in the README
	@$(BUILD) -o bin/demo ./demo
	TMPDIR=/tmp bin/demo --exit >bin/recording.txt
	sed -E 's#/tmp/snap-demo-[0-9]+#/home#g; s# on [^ "]+"$$# on laptop"#' bin/recording.txt >docs/recording.txt
	$(GO) test -run TestRecording . -update

test: servers databases bin/versitygw bin/dex bin/zitadel bin/gotestsum axe ## run all tests, and name the skipped ones at the end; `make lint` runs go vet
	@GORACE=atexit_sleep_ms=0 SNAP_VERSITYGW=$(CURDIR)/bin/versitygw bin/gotestsum --format pkgname-and-test-fails --format-icons text $(RERUN) --packages ./... -- \
		-vet=off $(RACE) $(LIGHT) $(UNWATCHED) -timeout $(TIMEOUT) $(ARGS)

check: ## run the tests for every change: no servers, no browser, about a minute
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "run make fmt"; exit 1; }
	$(GO) vet ./...
	$(GO) test -short -vet=off ./...

# The folders with benchmarks.
BENCHED = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=tools '^func Benchmark' .)))

bench: servers bin/versitygw bin/peers ## run each benchmark once and print ratios; docs/benchmarks.md lists the variables
	@tools/servers bench
	@SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 2h $(ARGS) $(BENCHED)
	@$(GO) test -C tools/peers -bench . -benchtime 1x

CORPUS = zabbix-server-mysql zabbix-server-pgsql zabbix-proxy-sqlite3 roundcube-core cacti icingadb icinga2-ido-mysql icinga2-ido-pgsql \
	icingaweb2 mediawiki phpmyadmin pdns-backend-mysql pdns-backend-pgsql pdns-backend-sqlite3 bacula-director-mysql bacula-director-pgsql \
	bacula-director-sqlite3 kea-admin freeradius-config ejabberd kamailio-mysql-modules kamailio-postgres-modules kamailio-sqlite-modules \
	davical libawl-php zoneminder request-tracker5 gammu-smsd opendmarc tt-rss jabberd2
CORPUS_MODULES = github.com/coder/coder/v2@v2.10.0 go.temporal.io/server@v1.24.2
corpus: servers databases bin/corpus ## build, load, sample and mask databases with schemas from other projects; SNAP_CORPUS_SERVERS="postgres sqlite" limits it
	-@cd tools && $(GO) mod download $(CORPUS_MODULES)
	SNAP_CORPUS=$(CURDIR)/bin/corpus/root:$$($(GO) env GOMODCACHE) $(GO) test -count=1 -v -run TestCorpus -timeout 12h $(ARGS) ./internal/corpus

# Schemas in Debian packages, for `make corpus` alone.
bin/corpus: tools/unpack
	-@tools/unpack debian:bookworm $@ $(CORPUS) --

load: servers bin/versitygw ## measure the service with a million snapshots, on SQLite and on one and three replicas
	@SNAP_VERSITYGW=$(CURDIR)/bin/versitygw SNAP_LOAD_SNAPSHOTS=$${SNAP_LOAD_SNAPSHOTS:-1000000} SNAP_LOAD_SECONDS=$${SNAP_LOAD_SECONDS:-20} \
		$(GO) test -run '^$$' -bench Load -benchtime 1x -timeout 2h ./internal/load

screenshots: ## save every state of the web UI, light and dark, at three widths, in bin/screenshots, and the pictures of README.md
	SNAP_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -run Screenshots ./internal/webui
	cp bin/screenshots/web-light.png bin/screenshots/web-dark.png docs/

lint: bin/golangci-lint ## run the linters
	$(LINT) run --allow-parallel-runners ./...

SNAP_SOAK ?= 10m
SNAP_KILL_ROUNDS ?= 200
SNAP_RACES ?= 10000
SNAP_HISTORIES ?= 10000
SNAP_RULE_HISTORIES ?= 200
soak: servers bin/versitygw ## inject random faults for SNAP_SOAK (seed SNAP_SOAK_SEED), without and with PgBouncer; then test SNAP_KILL_ROUNDS kills, random schemas, and random histories of deltas and of the access rule
	SNAP_SOAK=$(SNAP_SOAK) SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -count=1 -v -run TestSoak -timeout 24h $(ARGS) ./internal/soak
	SNAP_SOAK_POOLED=1 SNAP_SOAK=$(SNAP_SOAK) SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -count=1 -v -run TestSoak -timeout 24h $(ARGS) ./internal/soak
	SNAP_RACES=$(SNAP_RACES) $(GO) test -count=1 -v -run 'TestSCIMRemoval|TestRemovalEnds' -timeout 2h $(ARGS) ./internal/cloud
	SNAP_KILL_ROUNDS=$(SNAP_KILL_ROUNDS) SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -count=1 -v -run TestKilled -timeout 24h $(ARGS) ./internal/transfer
	SNAP_KILL_ROUNDS=$(SNAP_KILL_ROUNDS) $(GO) test -count=1 -v -run 'TestKilledClones|TestKilledNights|TestManyClones|KilledAtRandomPoints' -timeout 24h $(ARGS) ./internal/local
	$(GO) test -count=1 -v -run 'AccessRule|TestRandomEdits' -timeout 24h $(ARGS) ./internal/store ./internal/cloud -rapid.checks=$(SNAP_RULE_HISTORIES)
	SNAP_ROUNDS=$(SNAP_SOAK) $(GO) test -count=1 -v -run 'TestGeneratedSchemas|TestDescribedTables' -timeout 24h $(ARGS) ./internal/engine/mysql
	SNAP_HISTORIES=$(SNAP_HISTORIES) $(GO) test -count=1 -v -run TestHistories -timeout 24h $(ARGS) ./internal/delta

cross: ## check that all packages compile for Linux, macOS and Windows, on both architectures
	@CGO_ENABLED=0 $(GO) test -C tools/cross -trimpath . && CGO_ENABLED=0 $(GO) run -C tools/cross -trimpath . -dir $(CURDIR)

image: ## build the image for linux/amd64 and linux/arm64 in dist/image, without a container engine; ARGS='-key FILE' signs it
	cd tools/image && CGO_ENABLED=0 $(GO) run . -out $(CURDIR)/dist/image -version $$(git describe --tags --always) $(ARGS)

lint-deploy: ## check the folder deploy with the parsers of Prometheus, Docker, Compose, Helm, Kubernetes and GoReleaser
	@if (cd tools/deploy && $(GO) mod download) >/dev/null 2>&1; then CGO_ENABLED=0 $(GO) test -C tools/deploy -count=1 -trimpath $(ARGS) ./...; \
	else echo "SKIPPED lint-deploy: needs the modules of tools/deploy, which cannot be downloaded"; fi
	@if (cd tools/image && $(GO) mod download) >/dev/null 2>&1; then CGO_ENABLED=0 $(GO) test -C tools/image -count=1 $(ARGS) ./...; \
	else echo "SKIPPED the image: needs the modules of tools/image, which cannot be downloaded"; fi

FUZZTIME ?= 30s
# In tests with a database, coverage differs from run to run, so that minimizing an input would never end. The number of attempts is therefore limited.
SMALLER = -fuzzminimizetime 10x
FUZZED = $(shell grep -rl --include='*_test.go' --exclude-dir=tools --exclude-dir=node_modules '^func Fuzz' . | sort)
fuzz: servers databases ## run every fuzz target for FUZZTIME, and the grammars of hostile dumps against servers; inputs that fail are kept in testdata
	@for file in $(FUZZED); do for name in $$(grep -o '^func Fuzz[A-Za-z]*' $$file | cut -c6-); do \
		echo "$$(dirname $$file) $$name"; $(GO) test $$(dirname $$file) -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $(SMALLER) $(ARGS) || exit 1; done; done
	SNAP_HOSTILE=$(FUZZTIME) $(GO) test -count=1 -v -run TestHostileGrammar -timeout 48h $(ARGS) ./internal/engine/mysql ./internal/engine/postgres

vuln: bin/govulncheck ## check for known vulnerabilities, listed at vuln.go.dev
	bin/govulncheck ./...

bin/govulncheck: tools/vuln/go.mod
	cd tools/vuln && $(BUILD) -ldflags '-s -w' -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	@touch $@

fmt: bin/golangci-lint ## format the tree
	bin/golangci-lint fmt ./...

tools: bin/golangci-lint bin/versitygw ## build the tools of tools/go.mod into bin/

bin/golangci-lint: tools/go.mod
	cd tools && $(BUILD) -ldflags '-s -w' -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/gotestsum: tools/gotestsum/go.mod
	cd tools/gotestsum && $(BUILD) -ldflags '-s -w' -o ../../bin/gotestsum gotest.tools/gotestsum
	@touch $@

bin/versitygw: tools/go.mod tools/versitygw/main.go
	cd tools && $(BUILD) -ldflags '-s -w' -o ../bin/versitygw ./versitygw
	@touch $@

# The clients that the benchmarks compare push and pull with.
bin/peers: tools/transferpeers/go.mod tools/transferpeers/rclone/main.go tools/transferpeers/awstm/main.go
	@cd tools/transferpeers && $(GO) build -ldflags '-s -w' -o ../../bin/peers/ github.com/minio/mc ./rclone ./awstm && touch ../../bin/peers || echo "the comparison with rclone, mc and the AWS transfer manager is skipped: they cannot be built here"

bin/dex: tools/providers/go.mod tools/providers/dex/main.go
	cd tools/providers && $(BUILD) -ldflags "-s -w -X main.web=$$($(GO) mod download github.com/dexidp/dex && $(GO) list -m -f '{{.Dir}}' github.com/dexidp/dex)/web" -o ../../bin/dex ./dex
	@touch $@

bin/zitadel: tools/providers/go.mod tools/providers/zitadel/main.go
	cd tools/providers && $(BUILD) -ldflags '-s -w' -o ../../bin/zitadel ./zitadel
	@touch $@

axe: # install the npm packages that tests use, if npm is present: accessibility rules, an identity provider, a sign-in client, an OpenAPI linter and generator, PostgreSQL's versions
	@if command -v npm >/dev/null; then for d in axe oidc openapi postgres; do [ -d tools/$$d/node_modules ] || npm ci --silent --prefix tools/$$d || true; done; fi

servers: ## as root, install the servers and the browser that the tests use; otherwise print what is missing
	@tools/servers

# Database servers and programs from other releases than the machine's own. They are unpacked, not installed.
databases: bin/postgres/17 bin/postgres/18 bin/mysql-8.0 bin/mysql-9.7 bin/mariadb-11.8

bin/postgres/17: tools/unpack
	-@tools/unpack debian:trixie $@ postgresql-client-17 -- pg_dump pg_restore psql

bin/postgres/18: tools/unpack
	-@tools/unpack debian:forky $@ postgresql-client-18 -- pg_dump pg_restore psql

bin/mysql-8.0: tools/unpack
	-@tools/unpack ubuntu:noble $@ mysql-server-core-8.0 mysql-client-core-8.0 -- mysqld mysql mysqldump

bin/mysql-9.7: tools/unpack
	-@tools/unpack debian:sid $@ mysql-server-core mysql-client-core -- mysqld mysql mysqldump

bin/mariadb-11.8: tools/unpack
	-@tools/unpack debian:trixie $@ mariadb-server mariadb-client -- mariadbd mariadb mariadb-dump mariadb-install-db my_print_defaults resolveip

generate: ## write the generated pages in docs/
	$(GO) test -run TestErrorsPage -update .
	$(GO) test -run 'TestReferencePage|TestManPages|TestJSONPage' ./internal/cli -update

clean:
	rm -rf bin dist
