.DEFAULT_GOAL := build
.PHONY: help demo test build needs needs-of-tests clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do \
		printf '%-16s %s\n' "$$name" "$$text"; done

build: ## build target/release/planimeter
	cargo build --release

DEMO = ./target/release/planimeter run bianco2010/fig2 bianco2010/fig3 bianco2010/fig4 \
	--effort quick

# Exit code 4: this machine lacks what the link veth:live requires.
demo: needs build ## build, measure six data planes, print the path of report.html
	$(DEMO) --link veth:live || { test $$? -eq 4 && $(DEMO); }

test: needs-of-tests ## run every check and test of CI, and list missing requirements
	cargo xtask ci

needs: ## install the programs for measurements (as root on Debian or Ubuntu)
	@sh tools/needs.sh

needs-of-tests: ## also install the programs for tests: controllers, browser, Python packages
	@sh tools/needs.sh tests

clean: ## delete build results
	cargo clean
