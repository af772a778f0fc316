# The short names of the things one does here; `make help` lists them. CMakePresets.json holds the builds behind them.

JOBS ?= $(shell nproc)
FUZZ_RUNS ?= 1000000
BUILT = cmake --build --preset
# $(call tested,PRESET,FOLDER): in CI, a test that need not have been skipped is a failure.
tested = ctest -j $(JOBS) --preset $1 $(if $(filter true,$(CI)),&& tools/check_skips.py $2/junit.xml)
NVCC := $(or $(CUDACXX),$(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null))
# Thread sanitizer cannot live with some kernels' address space randomisation.
FIXED_ADDRESSES := $(shell setarch -R true 2>/dev/null && echo setarch -R)
MAKEFLAGS += --no-print-directory

.PHONY: help setup setup-demo program build data demo test test-asan test-tsan test-asan-core test-tsan-core test-torch \
        test-mpi test-cuda fuzz crash ranks mutants format format-check check-layers header-check sbom bench clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

setup:  ## install what a developer needs and is missing (Debian packages, a virtual environment for tests)
	@tools/setup test

setup-demo:  ## install only what the program needs
	@tools/setup demo

# In the folder of `build`, which then compiles only what the program is not made of.
program: setup-demo  ## build build/bin/fedep and nothing else
	@test -f build/build.ninja || cmake --preset demo
	@cmake --build build -j $(JOBS) --target fedep

build: setup  ## build everything; the programs are in build/bin/
	@cmake --preset release
	@$(BUILT) release -j $(JOBS)

demo: program  ## the paper's toy experiment, then four algorithms on built-in data, side by side
	@rm -rf build/demo && mkdir -p build/demo
	@printf '\nThe toy experiment: two clients, one global mean\n'
	@build/bin/fedep toy --figure build/demo/toy
	@printf '\nsynthetic(1, 1), 30 clients: ten rounds of FedAvg, then 90 of each algorithm\n'
	@for algorithm in fed_avg fed_pa fed_ep fed_sep; do \
	  build/bin/fedep run recipe/synthetic.toml --out build/demo/$$algorithm --threads $(JOBS) \
	    --set phase.1.algorithm=$$algorithm >/dev/null || [ $$? = 3 ] || exit 1; \
	done
	@printf '\n'
	@build/bin/fedep compare build/demo/fed_avg build/demo/fed_pa build/demo/fed_ep build/demo/fed_sep | tee build/demo/comparison.txt
	@build/bin/fedep report build/demo/fed_avg build/demo/fed_pa build/demo/fed_ep build/demo/fed_sep --out build/demo/report.html >/dev/null
	@printf '\nA run that says it is not to be trusted has scores, but no intervals: its posterior has not converged (docs/recipe.md, stop).\n'
	@printf '\nOpen build/demo/report.html in a browser: curves, calibration and posteriors of the four. The toy is in\n'
	@printf 'build/demo/toy-distance.svg and build/demo/toy-contours.svg, the comparison in build/demo/comparison.txt\n'

test: build data header-check test-cuda test-mpi test-torch $(if $(filter true,$(CI)),test-asan-core test-tsan-core)  ## build and run all tests (with CI=true also the core folders' sanitizers)
	@$(call tested,release,build)

test-asan test-asan-core test-tsan test-tsan-core test-mpi test-torch: test-%: setup
	@cmake --preset $*
	@$(BUILT) $* -j $(JOBS)
	@$(FIXED_ADDRESSES) $(call tested,$*,build-$*)

test-asan:  ## all tests under the address and undefined-behaviour sanitizers
# Tests that need a GPU skip where there is none; that they compile is something already.
test-cuda: setup  ## what differs by CUDA, where there is nvcc
ifeq ($(NVCC),)
	@echo 'nvcc is not here: nothing of CUDA is compiled or tested'
else
	@CUDACXX=$(NVCC) cmake --preset cuda
	@$(BUILT) cuda-check -j $(JOBS)
	@$(call tested,cuda-check,build-cuda)
endif

test-mpi:  ## runs over several processes, with Open MPI
test-torch:  ## TorchScript models and their tutorial, in a build with torch
test-tsan:  ## all tests under the thread sanitizer (TSAN_OPTIONS=ignore_noninstrumented_modules=1 from the preset)

# libFuzzer for the byte format; the other readers are more than clang 14 compiles, and have a driver of their own.
fuzz: setup  ## a million inputs to every reader of files (FUZZ_RUNS=10000 for a short one)
	@cmake --preset fuzz
	@$(BUILT) fuzz -j $(JOBS) --target record_fuzz
	@mkdir -p build-fuzz/corpus
	@build-fuzz/bin/record_fuzz -runs=$(FUZZ_RUNS) -max_len=4096 -artifact_prefix=build-fuzz/ build-fuzz/corpus
	@cmake --preset asan-core
	@$(BUILT) asan-core -j $(JOBS) --target fedep_fuzz
	@cd build-asan-core && for target in $$(bin/fedep_fuzz list); do \
	  bin/fedep_fuzz $$target -runs=$(FUZZ_RUNS) ../test/fuzz/seed/$$target || exit 1; \
	done

crash: setup  ## every call that changes a run's files fails or kills once, 900 power cuts, two starts at once
	@cmake --preset release
	@$(BUILT) release -j $(JOBS) --target fedep crash_at
	@python3 -B test/crash/crash_test.py build/bin/fedep build/test/libcrash_at.so --all

ranks: setup  ## every recipe over 1 to 7 ranks, ranks killed at 50 instants and in their calls (docs/cluster.md)
	@cmake --preset mpi
	@$(BUILT) mpi -j $(JOBS)
	@python3 -B test/mpi_test.py build-mpi/bin/fedep build-mpi/test/libcrash_at.so --all --cycles 50

# In a copy of the working tree, build-mutants/tree.
mutants: setup  ## plant single faults and name those that no test of their folder notices (MUTANTS='round/*' for some)
	@test/mutants/plant.py --jobs $(JOBS) '$(or $(MUTANTS),*)'

# Tests that need real data skip where there is none.
data: setup  ## unpack the data sets beside the checkout, if there are some, into build/data
	@if [ -x ../shared/data/unpack ]; then tools/unpack_data >/dev/null; fi

format:  ## rewrite all C++ files as .clang-format says
	@tools/format

format-check: setup  ## name the files that `make format` would change
	@tools/format --check

check-layers:  ## name every include that the layers forbid
	@tools/check_layers.py

header-check: build  ## compile every header alone
	@$(BUILT) release -j $(JOBS) --target header_check

sbom: program  ## build/sbom.json: the packages that the program is made of, with their versions (CycloneDX)
	@tools/sbom build >build/sbom.json.part && mv build/sbom.json.part build/sbom.json
	@echo build/sbom.json

bench: build  ## the micro benchmarks
	@build/bin/fedep_bench_micro

clean:  ## remove everything built
	@rm -rf build build-*
