# SPDX-License-Identifier: MIT
# A thin front of meson and ninja: `make help`. Build directories: build/FLAVOUR.

MESON ?= meson
NINJA ?= ninja
PREFIX ?= /usr/local
DESTDIR ?=
WERROR ?= false
CHECK = tests/check.py $(CHECKFLAGS)

# How each flavour is set up.
SETUP_native =
SETUP_clang = --native-file cross/clang.ini -Drace=disabled
SETUP_small = -Dsmall=true -Ddebug_checks=true -Drace=disabled
SETUP_chaos = -Dflavour=chaos -Ddebug_checks=true -Drace=disabled
SETUP_asan = -Db_sanitize=address,undefined -Db_lundef=false
SETUP_ubsan = -Db_sanitize=undefined -Db_lundef=false
SETUP_tsan = -Db_sanitize=thread -Db_lundef=false
SETUP_msan = --native-file cross/clang.ini -Db_sanitize=memory -Db_lundef=false -Drace=disabled -Dsymbols=disabled
SETUP_model = -Dflavour=model
SETUP_aarch64 = --cross-file cross/aarch64.ini -Drace=disabled
FLAVOURS = native clang small chaos asan ubsan msan tsan model aarch64

all: build-native

build/%/build.ninja:
	@$(MESON) setup build/$* $(SETUP_$*) >build/$*.log 2>&1 || { cat build/$*.log; exit 1; }

# WERROR=true makes warnings errors in this directory from now on.
$(FLAVOURS:%=configure-%): configure-%: | build
	@[ -f build/$*/build.ninja ] || $(MAKE) --no-print-directory build/$*/build.ninja
	@[ $(WERROR) = false ] || [ -f build/$*/.werror ] || \
	    { $(MESON) configure build/$* -Dwerror=$(WERROR) && touch build/$*/.werror; }

# TARGETS: only these, by ninja's names.
$(FLAVOURS:%=build-%): build-%: configure-%
	@$(NINJA) --quiet -C build/$* $(TARGETS)

build:
	@mkdir -p build

quick check-static net uring small chaos asan ubsan msan tsan clang aarch64 valgrind:
	@$(CHECK) $(@:check-%=%)

check:
	@$(CHECK)

stress:
	@PIRN_STRESS_SECONDS=60 PIRN_STRESS_PROGRAMS=100000 $(CHECK) --timeout-scale 60 stress

model model-quick: build-model
	@tests/model/run.py $(if $(filter model-quick,$@),--quick)

mutants: build-model
	@tests/model/mutate.py --report docs/design/mutants.md

demo: configure-native
	@out=$$($(NINJA) -C build/native examples/demo 2>&1) || { echo "$$out"; exit 1; }
	@build/native/examples/demo

fuzz:
	@tests/fuzz/run

bench: configure-native
	@$(NINJA) --quiet -C build/native
	@bench/run build/native

install: configure-native
	@$(MESON) configure build/native --prefix $(PREFIX)
	@$(NINJA) --quiet -C build/native
	@DESTDIR=$(DESTDIR) $(MESON) install -C build/native --no-rebuild --quiet

C_FILES = $$(find src include tests bench examples -name '*.[ch]')

format:
	@clang-format -i $(C_FILES)

lint: configure-clang
	@tools/check-layers
	@tools/check-atomics
	@clang-format --dry-run -Werror $(C_FILES)
	@find src -name '*.c' | xargs -P $$(nproc) -n 1 clang-tidy --quiet --warnings-as-errors='*' -p build/clang

clean:
	@rm -rf build

help:
	@echo 'make              the library, tests and examples, in build/native'
	@echo 'make demo         builds and runs the demo'
	@echo 'make quick        unit tests, in seconds'
	@echo 'make check        everything that must hold before a change is published'
	@echo 'make check-static layers, symbols, atomics, headers'
	@echo 'make asan ubsan msan tsan chaos small clang aarch64 valgrind net uring'
	@echo '                  one group of the tests; tests/check.py --list says what it is'
	@echo 'make stress       the long forms of the stress tests and of some others, more than an hour'
	@echo 'make model        every model, about 10 minutes; model-quick: 40 s'
	@echo 'make mutants      spoils the sources one place at a time: do the models see it?'
	@echo 'make fuzz         FUZZ_SECONDS=600 of fuzzing the parsers of the examples'
	@echo 'make build-NAME   only builds it, in build/NAME; WERROR=true: warnings are errors'
	@echo 'make bench        the benchmarks, against Go and the other peers that are installed'
	@echo 'make install      PREFIX=$(PREFIX), DESTDIR='
	@echo 'make format lint  clang-format; clang-tidy and tools/check-*'
	@echo 'make clean        removes build/'

.PHONY: all quick check check-static net uring demo tsan asan ubsan msan chaos small clang aarch64 valgrind bench stress \
	fuzz install format lint clean help model model-quick mutants $(FLAVOURS:%=build-%) $(FLAVOURS:%=configure-%)
