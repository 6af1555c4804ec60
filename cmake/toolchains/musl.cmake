# SPDX-License-Identifier: Apache-2.0
set(POLYOP_TARGET musl)
set(POLYOP_SYSTEM Linux)
set(POLYOP_PROCESSOR x86_64)
set(POLYOP_LIBC musl)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
