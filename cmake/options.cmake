# What a build of operators may be told, polyop's own and an author's.
set(POLYOP_HWY_TARGETS "AVX2;AVX3" CACHE STRING
    "x86 instruction sets to compile kernels for, beside the baseline SSE4; AVX3 is AVX-512")
set(POLYOP_HWY_BASELINE "x86-64-v2" CACHE STRING "The least processor, by its name for -march")
set(POLYOP_SANITIZE "" CACHE STRING "Sanitizers to build with: 'address,undefined,float-cast-overflow' or 'thread'")
option(POLYOP_CUDA "Build CUDA kernels, for ONNX Runtime, PyTorch and TensorRT" OFF)
option(POLYOP_CUDA_TOGETHER "Compile several operators' CUDA kernels as one file: all of them faster, one slower" OFF)
option(POLYOP_BUILD_ONNXRUNTIME "Build the ONNX Runtime custom-op library" ON)
option(POLYOP_BUILD_TENSORRT "Build the TensorRT plugin library, where the headers of CUDA and TensorRT are found" ON)
option(POLYOP_BUILD_TORCH "Build the PyTorch library, where PyTorch is found" ON)
option(POLYOP_BUILD_OPENVINO "Build the OpenVINO library, where its Python package is found" ON)
