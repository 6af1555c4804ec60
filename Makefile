# Every target does its own set-up and is quick when nothing changed. The work is in tools/.
.DEFAULT_GOAL := help
.PHONY: help setup build demo quick test test-all test-openmmlab bench gpu fuzz lint format docs site wheel wheels cuda-wheel deb test-aarch64 clean

help: ## show this list
	@echo "polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## system packages, .venv, and dependencies that stable distributions lack
	@tools/setup.sh

build: ## build the library and the program, and make both usable from .venv
	@tools/setup.sh
	@tools/build.sh release

demo: ## enlarge a real photo, suppress boxes on a picture; writes pictures and prints numbers
	@tools/demo.sh

quick: ## build and test what changed since the last commit, or on this branch, or SINCE=commit
	@tools/quick.sh $(SINCE)

test: ## C++ and Python tests; some operators under AddressSanitizer, too
	@tools/test.sh

test-all: ## the same, every operator under the sanitizers, and the tests that take long: models, wheels
	@tools/test.sh all

test-openmmlab: ## OpenMMLab's models with mmcv-lite and polyop: found, trained, exported; takes an hour
	@tools/test_openmmlab.sh

bench: ## every operator beside its rivals; ARGS='--only nms'. Over sizes: bench/growth.py
	@tools/bench.sh $(ARGS)

gpu: ## on a machine with a GPU: every GPU test, compute-sanitizer, benchmarks; one report
	@tools/setup.sh
	@tools/gpu.sh

fuzz: ## random calls of every operator and libFuzzer, SECONDS_EACH= (60) for each; needs clang
	@SECONDS_EACH=$(SECONDS_EACH) tools/fuzz.sh

lint: ## clang-format, clang-tidy and ruff, without changing anything
	@tools/lint.sh

format: ## format C++ and Python
	@tools/lint.sh --fix

docs: ## write the tables of operators from their definitions
	@tools/docs.sh

site: ## the documentation as a site, into build/site
	@tools/site.sh

wheel: ## build a wheel for this machine into dist/
	@tools/wheel.sh

wheels: ## portable wheels for x86-64 and aarch64 into dist/, by zig: glibc 2.28 and newer
	@tools/wheels.sh

cuda-wheel: ## polyop-cuda13 or -cuda12, the libraries with CUDA kernels, into dist/: needs nvcc; long
	@tools/cuda_wheel.sh

deb: ## a Debian package for systems like this one into dist/: program, library, SDK
	@tools/deb.sh

test-aarch64: ## C++ tests, ONNX Runtime and the program for aarch64, run by qemu
	@tools/test_aarch64.sh

clean: ## remove what was built; .venv and .deps stay
	rm -rf build dist python/polyop/lib
