// SPDX-License-Identifier: Apache-2.0
// by_hand::ScaledGather with ONNX Runtime's C++ API and without polyop, for one runtime, one element type and one
// thread: y[k] = x[index[k]] * scale[k], with optional scales. BY_HAND_CUDA adds the CUDA provider, on its stream, with
// the kernel of by_hand_cuda.cu.
#include <string>
#include <vector>

#define ORT_API_MANUAL_INIT
#include "onnxruntime_cxx_api.h"
#undef ORT_API_MANUAL_INIT

namespace {

// The tensors of a call, whose shapes have been checked.
struct Call {
  int64_t rows, columns, count;
  const float *x, *scale;  // scale may be null
  const int64_t* index;
  float* y;
};

[[noreturn]] void Fail(const std::string& message) {
  throw Ort::Exception("ScaledGather: " + message, ORT_INVALID_ARGUMENT);
}

Call ReadCall(const Ort::KernelContext& context) {
  const Ort::ConstValue x = context.GetInput(0), index = context.GetInput(1);
  const std::vector<int64_t> x_shape = x.GetTensorTypeAndShapeInfo().GetShape();
  const std::vector<int64_t> index_shape = index.GetTensorTypeAndShapeInfo().GetShape();
  if (x_shape.size() != 2) Fail("'x': expected rank 2, got " + std::to_string(x_shape.size()));
  if (index_shape.size() != 1) Fail("'index': expected rank 1, got " + std::to_string(index_shape.size()));
  Call call{x_shape[0], x_shape[1], index_shape[0], x.GetTensorData<float>(), nullptr, index.GetTensorData<int64_t>(),
            nullptr};
  if (context.GetInputCount() > 2) {
    const Ort::ConstValue scale = context.GetInput(2);
    if (scale != nullptr) {
      if (scale.GetTensorTypeAndShapeInfo().GetShape() != index_shape) Fail("'scale': expected the shape of 'index'");
      call.scale = scale.GetTensorData<float>();
    }
  }
  call.y = context.GetOutput(0, {call.count, call.columns}).GetTensorMutableData<float>();
  return call;
}

void ComputeOnCpu(const Call& call, const Ort::KernelContext&) {
  for (int64_t k = 0; k < call.count; ++k) {
    const int64_t row = call.index[k];
    if (row < 0 || row >= call.rows) {
      Fail("'index'[" + std::to_string(k) + "]: expected an index in [0, " + std::to_string(call.rows) + "), got " +
           std::to_string(row));
    }
    for (int64_t c = 0; c < call.columns; ++c) {
      call.y[k * call.columns + c] = call.x[row * call.columns + c] * (call.scale ? call.scale[k] : 1.0f);
    }
  }
}

template <void (*kCompute)(const Call&, const Ort::KernelContext&)>
struct ScaledGatherKernel {
  OrtStatusPtr ComputeV2(OrtKernelContext* raw) {
    try {
      const Ort::KernelContext context(raw);
      kCompute(ReadCall(context), context);
      return nullptr;
    } catch (const Ort::Exception& e) {
      return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
    } catch (const std::exception& e) {
      return Ort::GetApi().CreateStatus(ORT_FAIL, e.what());
    }
  }
};

template <class Kernel, bool kCuda>
struct ScaledGatherOp : Ort::CustomOpBase<ScaledGatherOp<Kernel, kCuda>, Kernel, /*WithStatus=*/true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo*, void** kernel) const {
    *kernel = new Kernel;
    return nullptr;
  }
  const char* GetName() const { return "ScaledGather"; }
  const char* GetExecutionProviderType() const { return kCuda ? "CUDAExecutionProvider" : "CPUExecutionProvider"; }
  size_t GetInputTypeCount() const { return 3; }
  ONNXTensorElementDataType GetInputType(size_t i) const {
    return i == 1 ? ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 : ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  OrtCustomOpInputOutputCharacteristic GetInputCharacteristic(size_t i) const {
    return i == 2 ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
  }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  OrtCustomOpInputOutputCharacteristic GetOutputCharacteristic(size_t) const { return INPUT_OUTPUT_REQUIRED; }

  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    const Ort::ShapeInferContext::Shape x = context.GetInputShape(0), index = context.GetInputShape(1);
    if (x.size() != 2 || index.size() != 1) return Ort::Status("expected x [N, C], index [K]", ORT_INVALID_ARGUMENT);
    return context.SetOutputShape(0, {index[0], x[1]}, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  }
};

}  // namespace

#ifdef BY_HAND_CUDA
// An index out of range gives 0. Returns null, or CUDA's message.
extern "C" const char* LaunchScaledGather(const float* x, const int64_t* index, const float* scale, float* y,
                                          int64_t rows, int64_t columns, int64_t count, void* stream);

namespace {

void ComputeOnGpu(const Call& call, const Ort::KernelContext& context) {
  const char* const error = LaunchScaledGather(call.x, call.index, call.scale, call.y, call.rows, call.columns,
                                               call.count, context.GetGPUComputeStream());
  if (error != nullptr) Fail(error);
}

}  // namespace
#endif

extern "C" __attribute__((visibility("default")))
OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static const ScaledGatherOp<ScaledGatherKernel<ComputeOnCpu>, false> op;
#ifdef BY_HAND_CUDA
  static const ScaledGatherOp<ScaledGatherKernel<ComputeOnGpu>, true> gpu_op;
#endif
  static Ort::CustomOpDomain domain{"by_hand"};
  try {
    domain.Add(&op);
#ifdef BY_HAND_CUDA
    domain.Add(&gpu_op);
#endif
    Ort::UnownedSessionOptions(options).Add(domain);
  } catch (const Ort::Exception& e) {
    return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
  }
  return nullptr;
}
