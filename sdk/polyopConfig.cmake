# SPDX-License-Identifier: Apache-2.0
# find_package(polyop CONFIG):
#
#   polyop_add_library(my_ops OPERATORS ops)   your own operators, each a folder of ops/
#   polyop::onnxruntime                        polyop's operators, for a program that links ONNX Runtime
#   polyop::c                                  polyop's operators, for a program without a runtime: polyop/polyop.h
cmake_path(SET POLYOP_PREFIX NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../..")
set(POLYOP_SDK "${POLYOP_PREFIX}/share/polyop/sdk")

if(NOT TARGET polyop::onnxruntime AND EXISTS "${POLYOP_PREFIX}/lib/libpolyop_onnxruntime.so")
  add_library(polyop::onnxruntime SHARED IMPORTED)
  set_target_properties(polyop::onnxruntime PROPERTIES
    IMPORTED_LOCATION "${POLYOP_PREFIX}/lib/libpolyop_onnxruntime.so"
    IMPORTED_SONAME libpolyop_onnxruntime.so
    INTERFACE_INCLUDE_DIRECTORIES "${POLYOP_PREFIX}/include")
  add_library(polyop::c ALIAS polyop::onnxruntime) # the same library; it does not need ONNX Runtime
endif()

# polyop_add_library(NAME OPERATORS DIRECTORY…): builds libNAME_onnxruntime.so, libNAME_torch.so, libNAME_openvino.so
# and libNAME_tensorrt.so, each if the headers of its runtime are found, with the operators that are folders of these
# directories. The directories must be called `ops`, because files are included as "ops/<operator>/<operator>.h". The
# targets are NAME_onnxruntime and so on. They are installed into lib/, or by scikit-build-core into lib/ of the Python
# package NAME.
function(polyop_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPERATORS")
  if(NOT arg_OPERATORS OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "polyop_add_library: expected polyop_add_library(NAME OPERATORS DIRECTORY…)")
  endif()
  if(NOT name MATCHES "^[a-z][a-z0-9_]*$" OR name STREQUAL "polyop")
    message(FATAL_ERROR "polyop_add_library: expected a name in lower_case_words other than polyop, got '${name}'")
  endif()
  if(TARGET polyop_core)
    message(FATAL_ERROR "polyop_add_library(${name}): expected one library per project. OPERATORS may name several "
                        "directories.")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "C" IN_LIST languages OR NOT "CXX" IN_LIST languages)
    message(FATAL_ERROR "polyop_add_library(${name}) needs the languages C and CXX: project(… LANGUAGES C CXX)")
  endif()
  set(POLYOP_LIBRARY ${name})
  set(POLYOP_OPERATORS "")
  foreach(directory IN LISTS arg_OPERATORS)
    cmake_path(ABSOLUTE_PATH directory BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    cmake_path(GET directory FILENAME last)
    if(NOT IS_DIRECTORY "${directory}" OR NOT last STREQUAL "ops")
      message(FATAL_ERROR "polyop_add_library(${name}): expected a directory called ops, got ${directory}")
    endif()
    list(APPEND POLYOP_OPERATORS "${directory}")
  endforeach()
  add_subdirectory("${POLYOP_SDK}" "${CMAKE_CURRENT_BINARY_DIR}/polyop")
endfunction()
