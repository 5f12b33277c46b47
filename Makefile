# make demo   install what is missing, build, measure six data planes side by side, print the report's path
# make test   every test that this machine can run; each need that is missing is named
.PHONY: demo test build needs needs-of-tests clean

build:
	cargo build --release

needs:
	@sh tools/needs.sh

# Beside these, the controllers that the tests run.
needs-of-tests:
	@sh tools/needs.sh tests

demo: needs build
	./target/release/planimeter run bianco2010/fig2 bianco2010/fig3 bianco2010/fig4 --effort quick

test: needs-of-tests
	cargo xtask ci

clean:
	cargo clean
