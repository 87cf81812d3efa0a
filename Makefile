# Everything here needs Go and nothing else; the race detector needs a C compiler
# as well, and is left out with a word where there is none.

SHELL      := /bin/bash
GO         ?= go
# Programs and tests are compiled in one way, so that they share the build cache: without C, and without the
# path of the checkout. The race detector needs C.
export CGO_ENABLED ?= 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
STATICCHECK = $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck
MODULES     = . envtest test test/operators/published test/operators/programs test/operators/programs/gatekeeper test/operators/programs/tested test/operators/programs/kyverno test/operators/programs/further tools
# Folders of test that run published programs, in processes of their own.
PROGRAMS    = controlplane aggregation egress extension operators console
# Folders of test without the race detector: they compare results, one request after the other, or their server is a
# program, which is built without it.
COMPARED    = oracle builtin compare corpus publish verdict crash footprint migrate scarce session soak traces watch
# The other folders of test, but for those with a target of their own.
EVERYDAY    = $(filter-out $(PROGRAMS) $(COMPARED) bench changes etcd integrations kubernetes upstream,$(notdir $(patsubst %/,%,$(wildcard test/*/))))
patterns    = $(patsubst %,./%/...,$1)
# Packages that start no goroutines, and neither do their tests (internal/rules). The race detector finds nothing in
# them, and multiplies their time by four to ten.
SEQUENTIAL  = admission/podsecurity builtin/recording object object/codec object/jsonpatch object/protobuf \
	offline/history offline/revision registry/apply registry/fieldset rules schema/celpolicy schema/conversion \
	schema/crd/change schema/crd/crdtest schema/crd/infer schema/crd/translate schema/crd/validation schema/gotype \
	schema/jsonschema schema/model schema/structural
sequential  = $(SEQUENTIAL:%=github.com/anykind/anykind/internal/%)
concurrent  = $(or $(filter-out $(sequential),$(shell $(GO) list ./...)),./packages/that/go/list/did/not/find)
# make test LONG=1 tests as the gate does: with all random cases, and with test/bench and tools/release.
LONG       ?=
short       = $(if $(LONG),,-short)
# make test RACE=1 tests with the race detector, where there is a C compiler.
RACE       ?=
gotest      = $(GO) -C $1 test -timeout 30m
raced       = $(gotest)
ifneq ($(RACE),)
ifneq ($(shell command -v $$(CGO_ENABLED=1 $(GO) env CC)),)
# A program with the race detector sleeps for a second before it exits, unless GORACE has another time.
raced       = env CGO_ENABLED=1 GORACE="atexit_sleep_ms=10 $$GORACE" $(gotest) -race
else
$(warning no C compiler: the race detector is left out)
endif
endif

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help bump bump-report build release release-check portable test etcd full lint programs quick tidy allocations bench microbench changes console infer integrations verdicts churn kits soak month forks verify compare compare-every compared examples manifests operators suites builtin-long builtin-reach crash manager trouble many extension both-ways snapshots upstream upstream-admission cmd integration e2e everything fmt clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build ./anykind
	CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -ldflags '-s -w' -o anykind ./cmd/anykind

release: ## build all files of a release in dist, reproducibly; publishes nothing (make release VERSION=v1.0.0 BASE=https://example.com/v1.0.0)
	$(GO) -C tools/release run . -source $(CURDIR) -version '$(VERSION)' -base '$(BASE)'

release-check: ## build a release from two clones, compare them, and run and install the results (half an hour; make release-check ARGS=-cold uses separate build caches)
	$(GO) -C tools/release test ./check -count=1 -v -timeout 5h -release $(ARGS)

portable: ## vet the product for macOS and Windows; make release builds it for them
	@set -e; for os in darwin windows; do \
		echo "$(GO) vet for $$os"; \
		CGO_ENABLED=0 GOOS=$$os $(GO) vet -tags grpcnotrace -trimpath ./...; \
	done

# Package verify uses one processor, for minutes: it is tested beside the folders of test.
test: ## run all tests of the product, then real kubectl against it (LONG=1: with the volumes of the gate; RACE=1: with the race detector)
	@failed=0; try() { echo "$$*" | cut -c1-300; "$$@" || failed=1; }; \
	try $(call gotest,.) $(short) $(sequential); \
	try $(call raced,.) $(short) $(concurrent); \
	try $(call raced,envtest) $(short) .; \
	beside=$$(mktemp); $(call gotest,envtest) $(short) ./verify ./anykind-verify > $$beside 2>&1 & verify=$$!; trap "kill $$verify; exit 1" INT TERM; \
	try $(call raced,test) $(short) $(call patterns,$(EVERYDAY)); \
	try $(call gotest,test) $(short) $(call patterns,$(COMPARED)); \
	try $(call gotest,tools) ./bump; \
	$(if $(LONG),try $(call raced,test) ./bench/...; try $(call gotest,tools) ./...;) \
	wait $$verify || failed=1; cat $$beside; rm $$beside; \
	exit $$failed

quick: ## run the tests of one package and of those that import it (make quick PKG=internal/store/kv)
	@test -n "$(PKG)" || { echo "make quick PKG=internal/store/kv"; exit 2; }
	$(GO) test $$($(GO) list -f '{{.ImportPath}} {{join .Deps " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | \
		awk -v package="$$($(GO) list ./$(PKG))" '{ for (i = 1; i <= NF; i++) if ($$i == package) { print $$1; next } }')

tidy: ## run go mod tidy in the modules that import what they require
	@set -e; for m in $(filter-out test/operators/%,$(MODULES)); do echo "$(GO) mod tidy in $$m"; $(GO) -C $$m mod tidy; done

bump: ## follow a release of Kubernetes: versions, gates, and a report of the differences with places in the tree (make bump VERSION=v1.38.0)
	$(GO) -C tools run ./bump -source $(CURDIR) -version '$(VERSION)' $(ARGS)

bump-report: ## print the report of make bump, and change nothing (make bump-report VERSION=v1.38.0 FROM=v1.37.1)
	@$(GO) -C tools run ./bump -source $(CURDIR) -report -version '$(VERSION)' -from '$(FROM)' $(ARGS)

month: ## keep the history of a million changes, and ask 100,000 questions about it (a quarter of an hour)
	$(GO) test ./internal/store/history -run TestMonth -count=1 -v -timeout 2h -args -changes 1000000 -questions 100000

forks: ## measure 1,000 forks of a server with 1,000 definitions and 100,000 objects (five minutes)
	$(GO) test ./internal/app -run TestForkFigures -count=1 -v -timeout 1h -args -kinds 1000 -objects 100000 -forks 1000

verify: ## run correct controllers, those of kube-controller-manager and of published operators with 2,000 plans each (hours)
	$(GO) -C envtest test ./verify -run 'TestCorrect(Controllers|Sites)' -count=1 -v -timeout 6h -args -plans 2000 -time 10m
	$(GO) -C test/kubernetes test ./controllers -count=1 -v -timeout 3h -args -plans 2000 -time 10m
	$(GO) -C test/operators/programs/tested test -tags verify ./controllers -count=1 -v -timeout 3h -args -plans 2000 -time 10m

allocations: ## run the tests that the race detector changes or makes expensive: allocations, memory, large objects
	$(GO) test ./internal/app ./internal/offline/check ./internal/schema/celrule ./internal/schema/crd ./internal/server/rest ./internal/store/watchcache \
		-run 'Alloc|Bombs$$|HeldLists|InferredAccepts|LimitOfObjects|MemoryOfObjects|MeterStack|Published|TestProvider|TouchesWhat' -count=1

etcd: ## run the tests with etcd: the store, servers that share one, and their failures
	$(call raced,test) ./etcd/...

programs: ## run a sample of schedulers, kube-controller-manager, operators and Kubernetes' own tests against the server
	$(call gotest,test) -p 1 $(call patterns,$(PROGRAMS))
	$(call gotest,test) ./kubernetes/...

full: ## run everything that CI runs
	.ci/run

# Compilers and staticcheck have few live objects: with GOGC=400 they take an eighth less time.
lint: ## check formatting, go vet and staticcheck in all modules
	@unformatted=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt): $$unformatted"; exit 1; fi
	@set -e; for m in $(MODULES); do \
		echo "$(GO) vet, staticcheck in $$m"; \
		(cd $$m && export GOGC=400 && $(GO) vet ./... && $(STATICCHECK) ./...); \
	done

bench: ## measure beside kube-apiserver with etcd, and write docs/benchmarks.md (minutes; make bench ARGS=-full takes hours)
	cd test/bench && $(GO) run . $(ARGS)

microbench: ## run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

compare: ## send generated requests to kube-apiserver and to anykind, and compare (make compare ARGS="-duration 1h -kinds patch,watch")
	cd test/compare && $(GO) run . $(ARGS)

compare-every: ## compare each store with three new seeds for an hour, all nine in parallel (make compare-every ARGS="-duration 5m -every 1")
	cd test/compare && $(GO) run . -every 3 -duration 1h $(ARGS)

compared: ## run the tests of test/compare against kube-apiserver and anykind: users, tokens, pods, admission, webhooks, shards, broken connections (a quarter of an hour)
	$(GO) -C test/compare test . ./admission ./aggregated ./conversions ./pods ./releases ./shards ./tokens ./trouble ./users ./webhooks -count=1 -timeout 60m -reference start $(ARGS)

examples: ## apply the published examples of Kubernetes and others to kube-apiserver and to anykind, and compare (make examples ARGS="-from ~/website/content/en")
	$(GO) -C test/compare test ./examples -count=1 -v -timeout 60m -reference start $(ARGS)

manifests: ## apply the manifests of twenty published projects to kube-apiserver and to anykind, and compare
	$(GO) -C test/operators test . -run Manifests -count=1 -v -timeout 60m -all -reference

operators: ## build and run published operators, with their own ServiceAccounts and webhooks
	$(GO) -C test/operators test . -count=1 -v -timeout 120m -operators

suites: ## run the envtest suites of controller-runtime and others, with kube-apiserver and etcd, and with anykind (make suites ARGS="-run pkg/client")
	cd test/operators && $(GO) run ./suites $(ARGS)

changes: ## compare crd diff with the published crdify on definitions of two releases, and settle differences with objects
	$(GO) -C test/changes test . -count=1 -v -timeout 30m $(ARGS)

integrations: ## run the action with act, and the plugins and post-renderers with Helm 3 and 4 (the first build takes 5 minutes)
	$(GO) -C test test ./integrations -count=1 -v -timeout 60m $(ARGS)

console: ## run the pages of the console with 300,000 objects of 2,000 kinds, by thirty questions, and against kube-apiserver (ten minutes)
	$(call gotest,test) ./console -run TestManyRows -count=1 -v -args -rows 300000 -kinds 2000 -watched 1m
	$(call gotest,test) ./console -run TestBeside -count=1 -args -questions .
	$(call gotest,test) ./console -count=1 -args -reference start

verdicts: ## compare 100,000 verdicts of anykind check with those of kube-apiserver (minutes; make verdicts ARGS="-first 6000000" has other schemas)
	$(GO) -C test test ./oracle -run TestVerdictsOfKubeAPIServer -count=1 -v -timeout 60m -reference start -verdicts 70000 $(ARGS)
	$(GO) -C test test ./builtin -run TestVerdictsOfKubeAPIServer -count=1 -v -timeout 60m -reference start -verdicts 32000

infer: ## infer definitions from the objects of published projects, and compare them with the published ones (minutes)
	$(GO) -C test test ./verdict -run 'TestInfer$$' -count=1 -v -timeout 30m -projects

builtin-long: ## run all mutations of objects of built-in kinds, 20,000 pairs, and 5,000 in the store, against kube-apiserver's own code
	$(GO) -C test/builtin test . -run Mutations -count=1 -v -timeout 120m -mutations 0 -pairs 20000 -stored 5000 $(ARGS)

builtin-reach: ## report the errors of kube-apiserver's validation that 2,000 mutations of each kind cover
	mkdir -p .build
	$(GO) -C test/builtin test . -run Reach -count=1 -timeout 120m -mutations 2000 $(ARGS) -coverprofile $(CURDIR)/.build/reach.out \
		-coverpkg 'k8s.io/kubernetes/pkg/apis/.../validation'
	cd test/builtin && $(GO) run ./reach $(CURDIR)/.build/reach.out

crash: ## kill a server and a store 100 times while eight clients write, and have 80 stores lose power
	ANYKIND_CRASH_ROUNDS=100 ANYKIND_POWER_LOSS_SEEDS=80 $(GO) test ./internal/store/boltkv -run 'TestCrash$$|TestPowerLoss' -count=1 -v -timeout 60m
	$(GO) -C test test ./crash -run TestCrash -count=1 -v -timeout 60m -rounds 100

manager: ## run every controller of kube-controller-manager for ten minutes, alone and with ours, and print their observed work
	$(GO) -C test/controlplane test . -run 'Each|Both|Controllers' -count=1 -v -parallel 8 -timeout 60m -all -duration 10m $(ARGS)

kits: ## run the tests of the kits for other languages, with their client libraries from the registries
	$(GO) -C test test ./kits -count=1 -v -timeout 30m -args -download

churn: ## kill and start Konnectivity's server and agents for ten minutes while clients connect through them
	$(GO) -C test/egress test . -run Churn -count=1 -v -timeout 30m -churn 10m

soak: ## send the writes of a day of 500 nodes in an hour, and check that memory, files, descriptors and goroutines stay flat
	$(GO) -C test test ./soak -count=1 -v -timeout 2h -duration 1h

trouble: ## inject failures for ten minutes into three servers over an etcd of three members, and for ten into three stores
	$(GO) -C test/etcd test . -run 'InTrouble|ThroughThree' -count=1 -v -timeout 60m -duration 10m

many: ## measure 20 servers with their own stores behind one, in one process
	$(GO) test ./internal/app -run TestManyBehind -count=1 -v -behind 20

extension: ## run anykind behind a published kube-apiserver for an hour, kill one of the two each minute, and check that no watch loses an event
	$(GO) -C test/extension test . -run Watch -count=1 -v -timeout 90m -duration 1h -every 1m $(ARGS)

both-ways: ## run the published kube-apiserver and anykind over one etcd, check that each serves the objects of the other, and that an opened snapshot has them
	$(GO) -C test/etcd test . -run 'BothWays|Moved' -count=1 -v -timeout 30m -both-ways

snapshots: ## fill etcds with the published kube-apiservers of v1.34 and of this release, encrypted too, and compare their lists with those of opened snapshots (two minutes; the first builds take half an hour)
	$(GO) -C test/etcd test . -run FilledSnapshot -count=1 -v -timeout 60m -args -filled v1.34.4

upstream: ## run Kubernetes' own tests of CustomResourceDefinitions against anykind (make upstream ARGS=-reference runs its server too)
	cd test/upstream && $(GO) run . $(ARGS)

cmd: ## run the shell suite of kubectl against kube-apiserver and anykind (a quarter of an hour; make cmd ARGS="-what 'crd get'" runs sections of it)
	cd test/kubernetes && $(GO) run ./cmd -reference $(ARGS)

integration: ## run Kubernetes' integration tests of the API with kube-apiserver and with anykind (three hours; make integration ARGS="-packages quota,auth")
	cd test/kubernetes && $(GO) run ./integration -reference $(ARGS)

e2e: ## run Kubernetes' end-to-end tests of API machinery, with webhooks as processes, against kube-apiserver and anykind (Linux; 40 minutes)
	cd test/kubernetes && $(GO) run ./e2e -reference $(ARGS)

everything: full console builtin-long crash trouble both-ways snapshots cmd integration integrations e2e verdicts ## run everything, for hours
	$(MAKE) compare compared examples

upstream-admission: ## run Kubernetes' own tests of admission webhooks against anykind (minutes)
	cd test/upstream && $(GO) run . -admission $(ARGS)

fmt: ## format all Go files
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

clean: ## remove build results
	rm -rf .build anykind dist
