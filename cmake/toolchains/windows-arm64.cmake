# SPDX-License-Identifier: Apache-2.0
set(POLYOP_TARGET windows-arm64)
set(POLYOP_SYSTEM Windows)
set(POLYOP_PROCESSOR aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
