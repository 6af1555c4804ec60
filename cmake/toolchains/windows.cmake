# SPDX-License-Identifier: Apache-2.0
set(POLYOP_TARGET windows)
set(POLYOP_SYSTEM Windows)
set(POLYOP_PROCESSOR x86_64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
