# SPDX-License-Identifier: Apache-2.0
# Options of builds of operators, for polyop's own library and for user-built libraries.
set(POLYOP_HWY_TARGETS "AVX2;AVX3" CACHE STRING
    "x86 instruction sets to compile kernels for, in addition to the baseline SSE4: AVX2, AVX3 (AVX-512), none, or native, the best of this machine")
set(POLYOP_HWY_BASELINE "x86-64-v2" CACHE STRING "The minimum x86 processor, as a value of -march")
set(POLYOP_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined,float-cast-overflow' or 'thread'")
option(POLYOP_CUDA "Build CUDA kernels, for ONNX Runtime, PyTorch and TensorRT" OFF)
option(POLYOP_CUDA_TOGETHER
  "Compile CUDA kernels of several operators as one file: full builds are faster, incremental ones slower" OFF)
option(POLYOP_BUILD_ONNXRUNTIME "Build the ONNX Runtime custom-op library" ON)
option(POLYOP_BUILD_TENSORRT "Build the TensorRT plugin library, if the headers of CUDA and TensorRT are found" ON)
option(POLYOP_BUILD_TORCH "Build the PyTorch library, if PyTorch is found" ON)
option(POLYOP_BUILD_JAX "Build the JAX library, if jaxlib is found" ON)
option(POLYOP_STATIC
  "Define polyop::static and polyop::executorch, for a program that adds this folder by add_subdirectory" OFF)
option(POLYOP_BUILD_EXECUTORCH "Build the ExecuTorch library, if its Python package is found" ON)
option(POLYOP_BUILD_TVM_FFI "Build the tvm-ffi library, if its Python package is found" ON)
option(POLYOP_BUILD_OPENVINO "Build the OpenVINO library, if its Python package is found" ON)
set(POLYOP_OPENVINO_LIBRARY "" CACHE FILEPATH "The OpenVINO library to install, if another build tree has built it")
if(POLYOP_STATIC)
  foreach(part IN ITEMS CLI TESTS ONNXRUNTIME TENSORRT TORCH OPENVINO)
    set(POLYOP_BUILD_${part} OFF)
  endforeach()
endif()
