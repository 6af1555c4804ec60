# SPDX-License-Identifier: Apache-2.0
# WebAssembly with vectors of 128 bits, which browsers and Node have had since 2021 (Safari since 2023).
set(POLYOP_TARGET wasm)
set(POLYOP_SYSTEM Generic)
set(POLYOP_PROCESSOR wasm32)
set(POLYOP_WASM ON)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
# Headers of this system's nlohmann-json, for the catalogue, which the module does not contain.
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
