# What a contributor calls. `make` alone builds both programs.

GO      ?= go
# Programs carry the tag or revision they were built from, where git can tell it.
STAMP   := -ldflags '-s -w' -buildvcs=$(if $(shell git status --porcelain >/dev/null 2>&1 && echo yes),true,false)
ARGS    ?=
# The race detector needs a C compiler; without one the tests run without it.
RACE    := $(if $(shell command -v $(firstword $(shell $(GO) env CC))),-race)
TIMEOUT ?= 15m

.PHONY: build demo recording test bench lint fmt screenshots tools axe servers generate clean

build: ## both programs into bin/
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build $(STAMP) -trimpath -o bin/ ./cmd/...

demo: build ## the whole main job with real commands; ARGS=--exit ends instead of staying up
	@$(GO) build -o bin/demo ./demo
	@bin/demo $(ARGS)

recording: build ## the demo's real output into docs/recording.txt, and its story into the README
	@$(GO) build -o bin/demo ./demo
	TMPDIR=/tmp bin/demo --exit >bin/recording.txt
	sed -E 's#/tmp/snap-demo-[0-9]+#/home#g; s# on [^ "]+"$$# on laptop"#' bin/recording.txt >docs/recording.txt
	$(GO) test -run TestRecording . -update

test: servers bin/versitygw bin/dex bin/zitadel axe ## everything, with what was skipped named at the end
	@$(GO) build -o bin/testreport ./internal/testreport
	@GORACE=atexit_sleep_ms=0 SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -json $(RACE) -timeout $(TIMEOUT) $(ARGS) ./... | bin/testreport

# The folders that have benchmarks.
BENCHED = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir=tools '^func Benchmark' .)))

bench: servers bin/versitygw ## the benchmarks, as ratios of one run; SNAP_BENCH_SIZES=10000,1000000 for more snapshots
	@SNAP_VERSITYGW=$(CURDIR)/bin/versitygw $(GO) test -p 1 -run '^$$' -bench . -benchtime 1x -timeout 2h $(ARGS) $(BENCHED)
	@$(GO) test -C tools/peers -bench . -benchtime 1x

screenshots: ## every state of the web UI, light and dark, at three widths, into bin/screenshots
	SNAP_SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -run Screenshots ./internal/webui

lint: bin/golangci-lint ## the linters
	bin/golangci-lint run --allow-parallel-runners ./...

fmt: bin/golangci-lint ## format the tree
	bin/golangci-lint fmt ./...

tools: bin/golangci-lint bin/versitygw ## the tools of tools/go.mod into bin/

bin/golangci-lint: tools/go.mod
	cd tools && $(GO) build -ldflags '-s -w' -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/versitygw: tools/go.mod
	cd tools && $(GO) build -ldflags '-s -w' -o ../bin/versitygw github.com/versity/versitygw/cmd/versitygw
	@touch $@

bin/dex: tools/providers/go.mod tools/providers/dex/main.go
	cd tools/providers && $(GO) build -ldflags "-s -w -X main.web=$$($(GO) mod download github.com/dexidp/dex && $(GO) list -m -f '{{.Dir}}' github.com/dexidp/dex)/web" -o ../../bin/dex ./dex
	@touch $@

bin/zitadel: tools/providers/go.mod tools/providers/zitadel/main.go
	cd tools/providers && $(GO) build -ldflags '-s -w' -o ../../bin/zitadel ./zitadel
	@touch $@

axe: # what tests take from npm, where it is at hand: accessibility rules, an identity provider, a sign-in client
	@if command -v npm >/dev/null; then for d in axe oidc; do [ -d tools/$$d/node_modules ] || npm ci --silent --prefix tools/$$d || true; done; fi

servers: ## install the servers and the browser that the tests use, as root; else say what is missing
	@tools/servers

generate: ## the generated pages below docs/
	$(GO) test -run TestErrorsPage -update .
	$(GO) test -run 'TestReferencePage|TestManPages|TestJSONPage' ./internal/cli -update

clean:
	rm -rf bin dist
