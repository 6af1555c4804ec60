# SPDX-License-Identifier: Apache-2.0
set(POLYOP_TARGET macos)
set(POLYOP_SYSTEM Darwin)
set(POLYOP_PROCESSOR aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
