// by_hand::ScaledGather against ONNX Runtime's C++ API: what one writes without polyop, for one runtime, one element
// type, one device and one thread. y[k] = x[index[k]] * scale[k], the scales optional.
#include <string>
#include <vector>

#define ORT_API_MANUAL_INIT
#include "onnxruntime_cxx_api.h"
#undef ORT_API_MANUAL_INIT

namespace {

struct ScaledGatherKernel {
  OrtStatusPtr ComputeV2(OrtKernelContext* raw) {
    try {
      Compute(Ort::KernelContext(raw));
      return nullptr;
    } catch (const Ort::Exception& e) {
      return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
    } catch (const std::exception& e) {
      return Ort::GetApi().CreateStatus(ORT_FAIL, e.what());
    }
  }

 private:
  [[noreturn]] static void Fail(const std::string& message) {
    throw Ort::Exception("ScaledGather: " + message, ORT_INVALID_ARGUMENT);
  }

  static void Compute(Ort::KernelContext context) {
    const Ort::ConstValue x = context.GetInput(0), index = context.GetInput(1);
    const auto x_info = x.GetTensorTypeAndShapeInfo(), index_info = index.GetTensorTypeAndShapeInfo();
    const std::vector<int64_t> x_shape = x_info.GetShape(), index_shape = index_info.GetShape();
    if (x_shape.size() != 2) Fail("'x' has rank " + std::to_string(x_shape.size()) + ", wanted 2");
    if (index_shape.size() != 1) Fail("'index' has rank " + std::to_string(index_shape.size()) + ", wanted 1");
    const int64_t rows = x_shape[0], columns = x_shape[1], count = index_shape[0];
    const float* scale = nullptr;
    if (context.GetInputCount() > 2) {
      const Ort::ConstValue scales = context.GetInput(2);
      if (scales != nullptr) {
        const std::vector<int64_t> shape = scales.GetTensorTypeAndShapeInfo().GetShape();
        if (shape != index_shape) Fail("'scale' and 'index' differ in shape");
        scale = scales.GetTensorData<float>();
      }
    }
    Ort::UnownedValue y = context.GetOutput(0, {count, columns});
    const float* const from = x.GetTensorData<float>();
    const int64_t* const at = index.GetTensorData<int64_t>();
    float* const to = y.GetTensorMutableData<float>();
    for (int64_t k = 0; k < count; ++k) {
      if (at[k] < 0 || at[k] >= rows) {
        Fail("'index'[" + std::to_string(k) + "] is " + std::to_string(at[k]) + ", wanted below " +
             std::to_string(rows));
      }
      for (int64_t c = 0; c < columns; ++c) to[k * columns + c] = from[at[k] * columns + c] * (scale ? scale[k] : 1.0f);
    }
  }
};

struct ScaledGatherOp : Ort::CustomOpBase<ScaledGatherOp, ScaledGatherKernel, /*WithStatus=*/true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo*, void** kernel) const {
    *kernel = new ScaledGatherKernel;
    return nullptr;
  }
  const char* GetName() const { return "ScaledGather"; }
  const char* GetExecutionProviderType() const { return "CPUExecutionProvider"; }
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
    if (x.size() != 2 || index.size() != 1) return Ort::Status("wanted x [N, C], index [K]", ORT_INVALID_ARGUMENT);
    return context.SetOutputShape(0, {index[0], x[1]}, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) OrtStatus* RegisterCustomOps(OrtSessionOptions* options,
                                                                               const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static const ScaledGatherOp op;
  static Ort::CustomOpDomain domain{"by_hand"};
  try {
    domain.Add(&op);
    Ort::UnownedSessionOptions(options).Add(domain);
  } catch (const Ort::Exception& e) {
    return Ort::GetApi().CreateStatus(e.GetOrtErrorCode(), e.what());
  }
  return nullptr;
}
