# SPDX-License-Identifier: Apache-2.0
# Dependencies of the CLI only: command line, JSON, images, .npz files, and the ONNX file format.
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)

# polyop_library(TARGET NAME HEADER): an imported target for a library without a CMake package.
function(polyop_library target name header)
  find_library(${target}_LIBRARY ${name} REQUIRED)
  find_path(${target}_INCLUDE ${header} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION "${${target}_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${${target}_INCLUDE}")
endfunction()
polyop_library(polyop_turbojpeg turbojpeg turbojpeg.h)
polyop_library(polyop_minizip minizip minizip/unzip.h)

# The Python package onnx contains the definition of the ONNX file format, which is compiled to onnx/onnx.pb.h.
if(NOT POLYOP_ONNX_PROTO)
  include(python)
  polyop_python_package(onnx_package onnx)
  find_file(POLYOP_ONNX_PROTO onnx-ml.proto PATHS "${onnx_package}" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
            DOC "onnx-ml.proto of the Python package onnx")
endif()
if(NOT EXISTS "${POLYOP_ONNX_PROTO}")
  message(FATAL_ERROR "onnx-ml.proto was not found with ${Python_EXECUTABLE}. Run tools/setup_python.sh, "
                      "or `pip install onnx`, or set POLYOP_ONNX_PROTO.")
endif()

set(generated "${PROJECT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated}/onnx")
# The copy has the name of the generated header.
configure_file("${POLYOP_ONNX_PROTO}" "${generated}/onnx/onnx.proto" COPYONLY)
add_custom_command(
  OUTPUT "${generated}/onnx/onnx.pb.cc" "${generated}/onnx/onnx.pb.h"
  COMMAND protobuf::protoc "--cpp_out=${generated}" "-I${generated}" onnx/onnx.proto
  DEPENDS "${generated}/onnx/onnx.proto" VERBATIM)
add_library(polyop_onnx_proto OBJECT "${generated}/onnx/onnx.pb.cc" "${generated}/onnx/onnx.pb.h")
target_include_directories(polyop_onnx_proto SYSTEM PUBLIC "${generated}")
target_link_libraries(polyop_onnx_proto PUBLIC protobuf::libprotobuf)
target_compile_options(polyop_onnx_proto PRIVATE -w)
