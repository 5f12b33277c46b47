# make demo   install what is missing, build, measure six data planes side by side, print the report's path
# make test   every test that this machine can run; each need that is missing is named
.PHONY: demo test build needs clean

build:
	cargo build --release

needs:
	@sh tools/needs.sh

demo: needs build
	./target/release/planimeter run bianco2010/fig2 bianco2010/fig3 bianco2010/fig4 --effort quick

test: needs
	cargo xtask ci

clean:
	cargo clean
