# SPDX-License-Identifier: Apache-2.0
set(POLYOP_TARGET aarch64)
set(POLYOP_SYSTEM Linux)
set(POLYOP_PROCESSOR aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
