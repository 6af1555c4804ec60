# SPDX-License-Identifier: Apache-2.0
# Every target installs what it needs and skips what is current. The scripts are in tools/; each answers --help.
.DEFAULT_GOAL := help
.PHONY: help setup build demo quick test test-rest test-all test-openmmlab bench gpu fuzz lint format docs site wheel wheels cuda-wheel deb wasm test-aarch64 test-systems test-windows clean

help: ## list the targets
	@echo "polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO"
	@echo
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install system packages, .venv, and dependencies that stable distributions lack
	@tools/setup.sh

build: ## build the libraries and the program, and link them into .venv
	@tools/setup.sh
	@tools/build.sh release

demo: ## enlarge a photo with SRCNN and suppress boxes with NMS and soft-NMS
	@tools/demo.sh

quick: ## build and test what the changes since the last commit, on this branch, or since SINCE=commit affect
	@tools/quick.sh $(SINCE)

test: ## run all C++ tests and each Python area once
	@tools/test.sh

test-rest: ## run what `make test` leaves out: CUDA, sanitizers, every node in every runtime, pages, examples
	@tools/test.sh rest

test-all: ## run both, every operator under the sanitizers, and the long tests: models, wheels
	@tools/test.sh all

test-openmmlab: ## run, train and export OpenMMLab's models with mmcv-lite and polyop; takes an hour
	@tools/test_openmmlab.sh

bench: ## benchmark every operator against its rivals; ARGS='--only nms'
	@tools/bench.sh $(ARGS)

gpu: ## run all GPU tests, compute-sanitizer and benchmarks on a machine with a GPU; writes gpu-report.txt
	@tools/setup.sh
	@tools/gpu.sh

fuzz: ## run random calls and libFuzzer, SECONDS_EACH=60 for each operator; needs clang
	@SECONDS_EACH=$(SECONDS_EACH) tools/fuzz.sh

lint: ## check format, words and spelling, and run the linters; changes nothing
	@tools/lint.sh

format: ## format C++ and Python
	@tools/lint.sh --fix

docs: ## generate the operators' pages from their definitions
	@tools/docs.sh

site: ## build the documentation as a site into build/site
	@tools/site.sh

wheel: ## build a wheel for this machine into dist/
	@tools/wheel.sh

wheels: ## build portable wheels into dist/: Linux on x86-64 and aarch64, Windows, macOS
	@tools/wheels.sh

cuda-wheel: ## build polyop-cuda13 or -cuda12, the libraries with CUDA kernels, into dist/; needs nvcc
	@tools/cuda_wheel.sh

deb: ## build a Debian package for systems like this one into dist/: program, library, SDK
	@tools/deb.sh

wasm: ## compile operators for WebAssembly and write the npm package into build/wasm/package
	@tools/wasm.sh

test-aarch64: ## run C++ tests, ONNX Runtime and the program for aarch64 under qemu
	@tools/test_aarch64.sh

test-systems: ## compile the library for musl, riscv64 and Windows on Arm, and run a C program with it
	@tools/test_systems.sh

test-windows: ## run the libraries, the program and C++ tests for Windows under wine
	@tools/test_windows.sh

clean: ## remove build, dist and the linked libraries; keep .venv and .deps
	rm -rf build dist python/polyop/lib
