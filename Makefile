# Everything one types. Rust and make are enough, except where a line says otherwise.
# All of it but the last part of `test` builds with the same features, so nothing is compiled twice.
CARGO   ?= cargo
FLAGS   := --all-features
# What is deployed, and measured.
DEPLOYED := --no-default-features --features lambda
# With the examples, because then cargo picks the same features for every crate as for the tests.
BINS    := --bins --examples
TARGET  := $(or $(CARGO_TARGET_DIR),target)
CONFIG  ?= default
MINUTES ?= 30
export CASES_DIR FEATURES MINUTES ORDERS PARAMETERS

.DEFAULT_GOAL := help
.PHONY: help run test peers cases check bench budget bench-worker build deploy prove soak fuzz abuse dashboard

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1|/' | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

run: ## charge the sample orders of events/ through the real Lambda binary, locally (ARGS="--twice", EVENTS=...)
	@$(CARGO) build $(FLAGS) $(BINS)
	@$(TARGET)/debug/charge-once local $(ARGS) $(EVENTS)

# Cargo unifies features, so any other crate may switch arbitrary_precision on.
test: ## run every test, and the examples that tell whether they hold
	$(CARGO) test $(FLAGS)
	$(TARGET)/debug/examples/custom_gateway
	$(TARGET)/debug/examples/custom_ledger
	$(TARGET)/debug/charge-once local --bootstrap $(TARGET)/debug/examples/own_function --twice events/01-one-order.json
	$(CARGO) test --quiet --no-default-features --features serde_json/arbitrary_precision --lib

dashboard: ## draw the template's dashboard into docs/dashboard.svg, from ORDERS=2000 with faults and kills in local mode (needs python3)
	$(CARGO) build $(FLAGS) $(BINS)
	$(TARGET)/debug/charge-once local --queue $(or $(ORDERS),2000) --duplicates 5% --poison 1% --faults mixed --kill-every 20s --log $(TARGET)/dashboard.log
	"$$(scripts/tools dashboard)/python" scripts/lib/dashboard.py $(TARGET)/dashboard.log docs/dashboard.svg

cases: ## run the behaviour cases through the real Lambda binary (CASES_DIR=... adds a folder)
	$(CARGO) test $(FLAGS) --test it cases -- --nocapture

check: ## format, lints, documentation, licences, what the Lambda binary links and how many instructions it takes
	$(CARGO) fmt --all --check
	$(CARGO) clippy $(FLAGS) --all-targets -- -D warnings
	$(CARGO) clippy $(DEPLOYED) --bin bootstrap -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(FLAGS)
	$(CARGO) test --quiet $(FLAGS) --test it artefact
	$(CARGO) bench --quiet $(FLAGS) --profile dev --bench lambda -- --budget
	@PATH="$(CURDIR)/.tools/cargo/bin:$$PATH"; if command -v cargo-deny >/dev/null; then \
		echo "$(CARGO) deny check bans licenses sources"; $(CARGO) deny --all-features check bans licenses sources; \
	else echo "cargo-deny is not installed: licences and sources not checked (see CONTRIBUTING.md)"; fi

peers: ## put template, binary and Stripe gateway before third parties (needs python3, npm; installs into .tools)
	scripts/peers

bench: ## measure starts, batches, CPU, instructions and cost into docs/performance.md (python3, npm and valgrind add to it)
	$(CARGO) build --release $(DEPLOYED) --bin bootstrap --example empty_function
	$(CARGO) bench $(DEPLOYED) --bench lambda -- $(CHAPTERS)

budget: ## take the instructions that are counted now as what `make check` compares with (needs valgrind)
	$(CARGO) bench $(FLAGS) --profile dev --bench lambda -- --accept

bench-worker: ## the worker's messages a second at 30 ms a request, next to boto3, also on rustack (needs python3)
	$(CARGO) bench $(FLAGS) --bench worker -- --python "$$(scripts/tools bench)/python" --rustack "$$(scripts/tools rustack)/rustack"

build: ## make the Lambda zips, and start this machine's from its zip (FEATURES=s3,otel adds abilities; needs python3; installs into .tools)
	scripts/build

deploy: ## build and deploy to your AWS account with SAM, guided the first time (CONFIG=prod for production, PARAMETERS="Name=value" for what changes)
	CONFIG=$(CONFIG) scripts/deploy check
	PATH="$$(scripts/tools build):$$PATH" "$$(scripts/tools sam)/sam" build
	CONFIG=$(CONFIG) scripts/deploy

prove: ## run the long proofs: tests marked as ignored whose name contains `prove`
	$(CARGO) test $(FLAGS) prove -- --ignored --nocapture

soak: ## run the chaos soak for MINUTES=30, or until there were ORDERS=100000
	$(CARGO) build --release $(FLAGS) --example skewed
	$(CARGO) test --release $(FLAGS) --test it soak -- --ignored --nocapture

abuse: ## print time and memory of the real binary under every abuse of docs/abuse.md
	$(CARGO) test $(FLAGS) --test it abuse -- --nocapture --test-threads=1

fuzz: ## fuzz every target, each for MINUTES=10, two side by side (needs a C++ compiler; installs cargo-fuzz into .tools)
	MINUTES=$(if $(filter file,$(origin MINUTES)),10,$(MINUTES)) scripts/fuzz
