# SPDX-License-Identifier: Apache-2.0
# Libraries of operators, one for each runtime: polyop's own, and those that users build with the SDK.

# polyop_build_library(NAME DIRECTORY…): builds libNAME_onnxruntime.so, libNAME_torch.so, libNAME_openvino.so and
# libNAME_tensorrt.so with the operators that are folders of these directories. Each is built if its runtime's headers
# are found.
function(polyop_build_library name)
  polyop_add_operators(${name} ${ARGN})

  # The library's name, version, rooms and differentiable operators, linked with its operators.
  get_property(differentiable GLOBAL PROPERTY ${name}_differentiable)
  get_property(rooms GLOBAL PROPERTY ${name}_room_of)
  configure_file("${POLYOP_ROOT}/cmake/library.cc.in" "${PROJECT_BINARY_DIR}/libraries/${name}.cc" @ONLY)
  add_library(${name}_library OBJECT "${PROJECT_BINARY_DIR}/libraries/${name}.cc")
  target_link_libraries(${name}_library PUBLIC polyop_kernels)
  if(POLYOP_BY_ZIG AND NOT WIN32 AND NOT APPLE AND NOT POLYOP_WASM) # see cmake/toolchains/zig.cmake
    target_compile_definitions(${name}_library PRIVATE POLYOP_FINALIZES)
    if(NOT POLYOP_LIBC STREQUAL "musl")
      set(memory "${POLYOP_ROOT}/cmake/portable/memory.c")
      set_source_files_properties("${memory}" PROPERTIES COMPILE_OPTIONS -fno-builtin)
      target_sources(${name}_library PRIVATE "${memory}")
    endif()
    if(POLYOP_LIBSTDCXX)
      target_sources(${name}_library PRIVATE "${POLYOP_ROOT}/cmake/portable/libstdcxx.cc")
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY ${name}_objects ${name}_library)

  set(built "")
  foreach(runtime IN ITEMS onnxruntime torch openvino tensorrt)
    if(TARGET polyop_${runtime}_links) # adapters/<runtime>/CMakeLists.txt found its dependencies
      add_library(${name}_${runtime} SHARED)
      target_link_libraries(${name}_${runtime} PRIVATE polyop_${runtime}_adapter polyop_${runtime}_links)
      if(runtime STREQUAL "tensorrt")
        polyop_link_cuda_kernels(${name}_${runtime} ${name})
      else()
        polyop_link_operators(${name}_${runtime} ${name})
      endif()
      if(runtime MATCHES "^(onnxruntime|torch)$") # the C interface is part of the former
        polyop_link_gradients(${name}_${runtime} ${name})
      endif()
      if(WIN32) # a DLL exports what POLYOP_EXPORTED marks
        set_target_properties(${name}_${runtime} PROPERTIES PREFIX "")
      elseif(APPLE) # the same; zig's linker ignores lists of exported symbols
        target_link_options(${name}_${runtime} PRIVATE -Wl,-dead_strip)
      else()
        polyop_export_only(${name}_${runtime} "${POLYOP_ROOT}/adapters/${runtime}/exports.map")
        set_target_properties(${name}_${runtime} PROPERTIES SKIP_BUILD_RPATH ON)
      endif()
      set_target_properties(${name}_${runtime} PROPERTIES LINKER_LANGUAGE CXX)
      install(TARGETS ${name}_${runtime} RUNTIME DESTINATION "${POLYOP_INSTALL_ROOT}lib" COMPONENT libraries
        LIBRARY DESTINATION "${POLYOP_INSTALL_ROOT}lib" COMPONENT libraries)
      list(APPEND built ${runtime})
    endif()
  endforeach()
  if(built)
    list(JOIN built ", " built)
    message(STATUS "Building libraries of ${name}: ${built}")
  endif()
endfunction()

# polyop_export_only(TARGET MAP): the library exports the symbols of a version script and not those of the C++ runtime.
# Windows and macOS have no such scripts.
function(polyop_export_only target map)
  if(NOT WIN32 AND NOT APPLE)
    target_link_options(${target} PRIVATE -Wl,--gc-sections "-Wl,--version-script=${map}")
    set_target_properties(${target} PROPERTIES LINK_DEPENDS "${map}")
  endif()
endfunction()

# polyop_add_entry(TARGET SOURCE…): builds a small shared library that calls libpolyop_onnxruntime.so, which is in the
# same folder.
function(polyop_add_entry target)
  add_library(${target} SHARED ${ARGN})
  target_link_libraries(${target} PRIVATE polyop_onnxruntime)
  target_include_directories(${target} PRIVATE "${POLYOP_ROOT}")
  polyop_self_contained(${target})
  set(own_folder "$ORIGIN")
  if(APPLE)
    set(own_folder "@loader_path")
  endif()
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${own_folder}")
  if(WIN32)
    set_target_properties(${target} PROPERTIES PREFIX "")
  endif()
  install(TARGETS ${target} RUNTIME DESTINATION "${POLYOP_INSTALL_ROOT}lib" COMPONENT libraries
    LIBRARY DESTINATION "${POLYOP_INSTALL_ROOT}lib" COMPONENT libraries)
endfunction()

# polyop_add_static(NAME): defines NAME::static, for programs that contain the operators: the C interface, the catalogue
# and all kernels for the CPU. No archive: a linker would drop the operators, which register themselves.
function(polyop_add_static name)
  add_library(${name}_static INTERFACE)
  add_library(${name}::static ALIAS ${name}_static)
  get_property(objects GLOBAL PROPERTY ${name}_objects)
  get_property(rooms GLOBAL PROPERTY polyop_rooms)
  set(parts polyop_c_adapter polyop_kernels polyop_core)
  if(NOT POLYOP_WASM) # whose definitions are JavaScript (tools/web.py)
    list(APPEND parts polyop_catalogue)
  endif()
  foreach(object IN LISTS objects parts)
    target_sources(${name}_static INTERFACE $<TARGET_OBJECTS:${object}>)
  endforeach()
  target_link_libraries(${name}_static INTERFACE ${rooms} polyop_hwy Threads::Threads)
  target_include_directories(${name}_static INTERFACE "${POLYOP_ROOT}")
  target_compile_features(${name}_static INTERFACE cxx_std_20)
endfunction()

# polyop_link_operators(TARGET NAME): links core, kernels and all operators of the library into a program or shared
# library.
function(polyop_link_operators target name)
  get_property(objects GLOBAL PROPERTY ${name}_objects)
  get_property(cuda GLOBAL PROPERTY ${name}_objects_cuda)
  target_link_libraries(${target} PRIVATE ${objects} ${cuda} polyop_kernels polyop_core)
endfunction()

# polyop_link_gradients(TARGET NAME): links the gradients of the library's operators, too.
function(polyop_link_gradients target name)
  get_property(objects GLOBAL PROPERTY ${name}_gradients)
  get_property(cuda GLOBAL PROPERTY ${name}_gradients_cuda)
  target_link_libraries(${target} PRIVATE ${objects} ${cuda})
endfunction()

# polyop_link_cuda_kernels(TARGET NAME): links the operators' CUDA kernels alone.
function(polyop_link_cuda_kernels target name)
  get_property(cuda GLOBAL PROPERTY ${name}_objects_cuda)
  target_link_libraries(${target} PRIVATE ${name}_library ${cuda} polyop_kernels polyop_core)
endfunction()

# polyop_add_tests_of_all(FOLDER NAME PARTS [TARGET…]): tests with every operator of the library, CUDA kernels too,
# emulated in a build without CUDA. PARTS is objects, or "objects;gradients".
function(polyop_add_tests_of_all folder name parts)
  set(targets ${ARGN})
  foreach(part IN LISTS parts)
    foreach(kind IN ITEMS "" _cuda _emulated)
      get_property(linked GLOBAL PROPERTY ${name}_${part}${kind})
      list(APPEND targets ${linked})
    endforeach()
  endforeach()
  polyop_add_tests(${folder} ${targets})
endfunction()
