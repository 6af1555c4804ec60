set(POLYOP_TARGET aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
