# Everything here works with Go, git and make alone, except what says otherwise in its comment.

GO       ?= go
FUZZ     ?= Fuzz[A-Za-z0-9_]+
FUZZTIME ?= 20s
BENCH    ?= .
ANSIBLE  ?= $(shell command -v ansible-inventory)
GOLANGCI ?= $(shell command -v golangci-lint || echo $(shell $(GO) env GOPATH)/bin/golangci-lint)
GOLANGCI_AT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# v1.2.3 is 1.2.3; five commits later it is 1.2.3+5.gabcdef0; without a tag it is 0.0.0+gabcdef0.
# No hyphen, so that it is the same version to SemVer and to dpkg.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null \
	| sed -E 's/^v//; s/-([0-9]+)-g([0-9a-f]+)/+\1.g\2/; s/^([^+]*)-dirty$$/\1+dirty/; s/-dirty$$/.dirty/')
ifeq ($(strip $(VERSION)),)
VERSION := 0.0.0+g$(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
endif

# The version is ours, so Go's own stamp is off: it fails where the checkout belongs to somebody else.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'

.PHONY: demo build test test-inventory race lint e2e fuzz bench docs dist lab-up lab-down

# A fleet inside one process, upgraded over real SSH on loopback. Needs no root.
demo: build
	./bin/kibo-rollout demo

build:
	$(BUILD) -o bin/kibo-rollout ./cmd/kibo-rollout
	$(BUILD) -o bin/kibo-agent ./cmd/kibo-agent

# Where Ansible is, inventories are compared with what it says; elsewhere with the answers stored from it.
test:
	$(GO) test ./...
	$(if $(ANSIBLE),$(MAKE) --no-print-directory test-inventory)

# Every inventory of the tests, given to ansible-inventory and to us: hosts, groups and variables are equal, or ours refuses it and
# says why. INVENTORY='FILE DIRECTORY …' names more.
test-inventory:
	@test -n '$(ANSIBLE)' || { echo 'error: ansible-inventory is missing' >&2; echo 'next: apt-get install ansible-core' >&2; exit 1; }
	$(GO) test -tags ansible -count=1 -run AgainstAnsible -v ./inventory -args -inventory '$(abspath $(INVENTORY))'

# The race detector needs a C compiler, and several times the time.
race:
	$(GO) test -race -timeout 20m ./...

lint:
	@test -x '$(GOLANGCI)' || { echo 'error: golangci-lint is missing' >&2; echo 'next: $(GO) install $(GOLANGCI_AT)' >&2; exit 1; }
	$(GOLANGCI) run

# Real Debian hosts on this machine: needs root, systemd-container and mmdebstrap.
e2e:
	$(GO) test -tags lab -count=1 -timeout 30m -v ./internal/lab/e2e/...

lab-up:
	$(GO) run ./internal/lab/cmd/lab up

lab-down:
	$(GO) run ./internal/lab/cmd/lab down

# Every fuzz target of the checkout whose name matches FUZZ, FUZZTIME each. Minimizing is kept short: left alone it takes most of the
# time, and may still be at it when the time is up, which Go reports as a failure.
fuzz:
	@found=$$(git grep --untracked -ohE '^func ($(FUZZ))\(' -- '*_test.go'); \
	test -n "$$found" || { echo 'error: no fuzz target is named $(FUZZ)' >&2; exit 1; }
	@git grep --untracked -oE '^func ($(FUZZ))\(' -- '*_test.go' | while IFS=: read -r file found; do \
		name=$${found#func }; name=$${name%(}; dir=./$$(dirname "$$file"); \
		echo "fuzz $$dir $$name"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x "$$dir" </dev/null || exit 1; \
	done

bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

# The pages under docs/ and the schema under examples/ that are made from code, and the screens that tests compare with.
docs:
	$(GO) test ./examples ./docs ./internal/view -update

# What is published: operator for Linux and macOS, agent for Linux with its .deb, checksums of all.
dist:
	rm -rf dist && mkdir dist
	for os in linux darwin; do for arch in amd64 arm64; do \
		GOOS=$$os GOARCH=$$arch $(BUILD) -o dist/kibo-rollout-$$os-$$arch ./cmd/kibo-rollout || exit 1; \
	done; done
	for arch in amd64 arm64; do \
		GOOS=linux GOARCH=$$arch $(BUILD) -o dist/kibo-agent-linux-$$arch ./cmd/kibo-agent || exit 1; \
		$(GO) run ./agent/pack/cmd/agent-deb -out dist -version '$(VERSION)' -arch $$arch -binary dist/kibo-agent-linux-$$arch || exit 1; \
	done
	cd dist && sha256sum kibo-* >SHA256SUMS
