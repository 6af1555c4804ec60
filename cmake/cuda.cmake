# SPDX-License-Identifier: Apache-2.0
# CUDA: the operators' .cu files are compiled for every GPU since Turing, with PTX for future ones.
if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120 CACHE STRING
      "GPUs to compile for; the last also gets PTX")
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  message(FATAL_ERROR "Expected CUDA 12.8 or newer (C++20, sm_120), got ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
# As on the CPU, multiplications and additions are fused only explicitly. A kernel that calls a function of the CPU is
# an error: nvcc only warns, and the kernel jumps anywhere.
string(APPEND CMAKE_CUDA_FLAGS
  " --expt-relaxed-constexpr --extended-lambda --fmad=false -Werror cross-execution-space-call")
# The runtime is linked statically and loads the driver on first use, so the libraries load without a driver.
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
