// SPDX-License-Identifier: Apache-2.0
// Tests every operator through the handlers, as XLA calls them, without JAX and without a GPU: CUDA kernels are
// emulated on the CPU. Links all operators.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/call.h"
#include "core/cuda_context.h"
#include "core/thread_order.h"
#include "testing/gpu.h"
#include "testing/random_call.h"
#include "xla/ffi/api/c_api.h"

extern "C" XLA_FFI_Error* polyop_jax(XLA_FFI_CallFrame* frame);
extern "C" XLA_FFI_Error* polyop_jax_cuda(XLA_FFI_CallFrame* frame);

struct XLA_FFI_Error {
  std::string message;
};
// What XLA knows of a call: its memory, and how much of it the handler has not returned.
struct XLA_FFI_ExecutionContext {
  polyop::testing::TestGpu* gpu = nullptr;
  bool out_of_memory = false;
  int blocks = 0;
};

namespace polyop::jax {
namespace {

using testing::HostTensor;
using testing::RandomCall;
using testing::TestGpu;

XLA_FFI_Error* CreateError(XLA_FFI_Error_Create_Args* args) { return new XLA_FFI_Error{args->message}; }
void GetMessage(XLA_FFI_Error_GetMessage_Args* args) { args->message = args->error->message.c_str(); }
void DestroyError(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }
XLA_FFI_Error* GetStream(XLA_FFI_Stream_Get_Args* args) {
  args->stream = nullptr;
  return nullptr;
}
XLA_FFI_Error* AllocateMemory(XLA_FFI_DeviceMemory_Allocate_Args* args) {
  if (args->ctx->out_of_memory) return new XLA_FFI_Error{"no memory"};
  if (args->alignment > 16) return new XLA_FFI_Error{"unsupported alignment"};  // as XLA does
  args->data = args->ctx->gpu->Allocate(args->size);
  ++args->ctx->blocks;
  return nullptr;
}
XLA_FFI_Error* FreeMemory(XLA_FFI_DeviceMemory_Free_Args* args) {
  --args->ctx->blocks;
  return nullptr;
}
XLA_FFI_Error* NoThreads(XLA_FFI_ThreadPool_NumThreads_Args*) { return new XLA_FFI_Error{"no thread pool"}; }

XLA_FFI_Api FakeApi() {
  XLA_FFI_Api api = {};
  api.XLA_FFI_Error_Create = CreateError;
  api.XLA_FFI_Error_GetMessage = GetMessage;
  api.XLA_FFI_Error_Destroy = DestroyError;
  api.XLA_FFI_Stream_Get = GetStream;
  api.XLA_FFI_DeviceMemory_Allocate = AllocateMemory;
  api.XLA_FFI_DeviceMemory_Free = FreeMemory;
  api.XLA_FFI_ThreadPool_NumThreads = NoThreads;
  return api;
}

XLA_FFI_DataType TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return XLA_FFI_DataType_F32;
    case DType::kF16: return XLA_FFI_DataType_F16;
    case DType::kBF16: return XLA_FFI_DataType_BF16;
    case DType::kF64: return XLA_FFI_DataType_F64;
    case DType::kI8: return XLA_FFI_DataType_S8;
    case DType::kU8: return XLA_FFI_DataType_U8;
    case DType::kI16: return XLA_FFI_DataType_S16;
    case DType::kI32: return XLA_FFI_DataType_S32;
    case DType::kI64: return XLA_FFI_DataType_S64;
    default: return XLA_FFI_DataType_PRED;
  }
}

// A call with XLA's structures. It owns all that they point to.
class Frame {
 public:
  // With `halves`, JAX has no 64-bit integers.
  Frame(const RandomCall& call, bool on_gpu, bool halves)
      : call_(call), op_(*call.op), on_gpu_(on_gpu), halves_(halves), gpu_(size_t{1} << 30) {
    context_.gpu = &gpu_;
  }

  // Returns an error message, or an empty text and the outputs.
  std::string Run(std::vector<HostTensor>* outputs) {
    AddAttributes();
    AddInputs();
    AddOutputs();
    XLA_FFI_CallFrame frame = {};
    frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
    frame.api = &api_;
    frame.ctx = &context_;
    frame.stage = XLA_FFI_ExecutionStage_EXECUTE;
    std::vector<XLA_FFI_ArgType> arg_types(args_.size(), XLA_FFI_ArgType_BUFFER);
    std::vector<XLA_FFI_RetType> ret_types(rets_.size(), XLA_FFI_RetType_BUFFER);
    std::vector<void*> args(args_.begin(), args_.end()), rets(rets_.begin(), rets_.end());
    frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, static_cast<int64_t>(args.size()), arg_types.data(), args.data()};
    frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, static_cast<int64_t>(rets.size()), ret_types.data(), rets.data()};
    frame.attrs = {XLA_FFI_Attrs_STRUCT_SIZE, nullptr,       static_cast<int64_t>(names_.size()),
                   attribute_types_.data(),   names_.data(), attributes_.data()};
    const std::unique_ptr<XLA_FFI_Error> error((on_gpu_ ? polyop_jax_cuda : polyop_jax)(&frame));
    EXPECT_EQ(context_.blocks, 0) << "scratch memory is not returned";
    if (error != nullptr) return error->message;
    Read(outputs);
    return {};
  }

  XLA_FFI_ExecutionContext& context() { return context_; }
  // Passes the number of rows of all inputs as a tensor.
  void CutTo(double rows) { rows_ = HostTensor::Of<int64_t>({}, {rows}); }
  // Passes the inputs whose values determine shapes as complex numbers, which polyop lacks.
  void MakeHostInputsComplex() { complex_host_inputs_ = true; }

 private:
  XLA_FFI_Buffer* AddBuffer(DType dtype, const Shape& shape, void* data) {
    std::vector<int64_t>& dims = shapes_.emplace_back(shape.begin(), shape.end());
    XLA_FFI_DataType type = TypeOf(dtype);
    if (halves_ && dtype == DType::kI64) {
      type = XLA_FFI_DataType_U32;
      dims.push_back(2);
    }
    return &buffers_.emplace_back(XLA_FFI_Buffer{XLA_FFI_Buffer_STRUCT_SIZE, nullptr, type, data,
                                                 static_cast<int64_t>(dims.size()), dims.data()});
  }

  void* MemoryOf(const HostTensor& tensor, bool upload) {
    if (!on_gpu_) return const_cast<char*>(tensor.data<char>());
    void* there = nullptr;
    const Status status = upload ? gpu_.Upload(tensor.view(), &there) : gpu_.AllocateFor(tensor.view(), &there);
    EXPECT_TRUE(status.ok()) << status.message();
    return there;
  }

  void AddAttribute(const std::string& name, XLA_FFI_AttrType type, void* value) {
    const std::string& kept = texts_.emplace_back(name);
    names_.push_back(&spans_.emplace_back(XLA_FFI_ByteSpan{kept.data(), kept.size()}));
    attribute_types_.push_back(type);
    attributes_.push_back(value);
  }
  void AddText(const std::string& name, const std::string& text) {
    const std::string& kept = texts_.emplace_back(text);
    AddAttribute(name, XLA_FFI_AttrType_STRING, &spans_.emplace_back(XLA_FFI_ByteSpan{kept.data(), kept.size()}));
  }
  void AddNumbers(const std::string& name, XLA_FFI_DataType type, void* data, size_t count, bool list) {
    if (list) {
      AddAttribute(name, XLA_FFI_AttrType_ARRAY, &arrays_.emplace_back(XLA_FFI_Array{type, count, data}));
    } else {
      AddAttribute(name, XLA_FFI_AttrType_SCALAR, &scalars_.emplace_back(XLA_FFI_Scalar{type, data}));
    }
  }

  void AddAttributes() {
    for (const AttrInfo& info : op_.attributes) {
      const AttrValue value = info.get(info.spec, call_.params.get());
      const bool list = info.type == AttrType::kInts || info.type == AttrType::kFloats;
      if (info.type == AttrType::kString) {
        AddText(info.spec.name, ToString(value));
      } else if (info.type == AttrType::kFloat || info.type == AttrType::kFloats) {
        std::vector<double>& floats = floats_.emplace_back(value.floats.begin(), value.floats.end());
        AddNumbers(info.spec.name, XLA_FFI_DataType_F64, floats.data(), floats.size(), list);
      } else {
        std::vector<int64_t>& ints = ints_.emplace_back(value.ints.begin(), value.ints.end());
        AddNumbers(info.spec.name, XLA_FFI_DataType_S64, ints.data(), ints.size(), list);
      }
    }
    AddText("polyop_operator", std::string(op_.name));
  }

  void AddInputs() {
    std::string letters;
    for (size_t i = 0; i < call_.inputs.size(); ++i) {
      const HostTensor& input = call_.inputs[i];
      if (!input.present()) {
        letters += '0';
        continue;
      }
      const bool value = op_.signatures.size() == 1 &&
                         i < static_cast<size_t>(op_.signatures[0].signature->num_inputs()) &&
                         op_.signatures[0].needs_value(static_cast<int>(i));
      letters += value ? 'h' : rows_.present() ? 'c' : '1';
      args_.push_back(AddBuffer(input.dtype(), input.shape(), MemoryOf(input, true)));
      if (value && complex_host_inputs_) args_.back()->dtype = XLA_FFI_DataType_C64;
    }
    if (rows_.present()) args_.push_back(AddBuffer(DType::kI64, {}, MemoryOf(rows_, true)));
    AddText("polyop_inputs", letters);
  }

  // XLA knows the upper bounds of the outputs' shapes.
  void AddOutputs() {
    struct AllOutputs : OutputSource {
      bool Requested(int) override { return true; }
      Status Allocate(int, DType, const Shape&, void**) override { return Status::Ok(); }
    } all;
    std::vector<AnyTensor> views;
    for (const HostTensor& input : call_.inputs) views.push_back(input.view());
    ASSERT_TRUE(Prepare(op_, on_gpu_ ? GpuDevice() : Device::kCpu, call_.params.get(), views, all, &prepared_).ok());
    std::vector<int64_t>& found = ints_.emplace_back();
    for (int o = 0; o < prepared_.num_outputs; ++o) {
      const auto at = static_cast<size_t>(o);
      const Shape& declared = prepared_.outputs[at].shape;
      for (int d = 0; d < declared.rank(); ++d) {
        if (declared[d] == kFound && found.empty()) found = {o, d};
      }
      AddOutput(prepared_.outputs[at].dtype, prepared_.max_shapes[at]);
    }
    if (!found.empty()) AddOutput(DType::kI64, {});
    AddNumbers("polyop_found", XLA_FFI_DataType_S64, found.data(), found.size(), true);
  }
  void AddOutput(DType dtype, const Shape& shape) {
    const HostTensor& output = outputs_.emplace_back(dtype, shape);
    rets_.push_back(AddBuffer(dtype, shape, MemoryOf(output, false)));
  }

  void Read(std::vector<HostTensor>* outputs) {
    for (size_t o = 0; on_gpu_ && o < outputs_.size(); ++o) {
      ASSERT_TRUE(gpu_.Download(outputs_[o].view(), rets_[o]->data).ok());
    }
    const double count = outputs_.back().size() == 1 ? outputs_.back().at(0) : 0;
    for (size_t o = 0; o < static_cast<size_t>(prepared_.num_outputs); ++o) {
      Shape shape = prepared_.outputs[o].shape;
      for (int d = 0; d < shape.rank(); ++d) {
        if (shape[d] == kFound) shape[d] = static_cast<int64_t>(count);
      }
      HostTensor& output = outputs->emplace_back(outputs_[o].dtype(), shape);
      ASSERT_LE(output.size(), outputs_[o].size());
      const size_t bytes = static_cast<size_t>(output.size()) * SizeOf(output.dtype());
      std::copy_n(outputs_[o].data<char>(), bytes, output.data<char>());
    }
  }

  const RandomCall& call_;
  const Op& op_;
  const bool on_gpu_, halves_;
  bool complex_host_inputs_ = false;
  TestGpu gpu_;
  XLA_FFI_Api api_ = FakeApi();
  XLA_FFI_ExecutionContext context_;
  PreparedCall prepared_;
  HostTensor rows_;
  std::deque<std::vector<int64_t>> shapes_, ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::string> texts_;
  std::deque<XLA_FFI_ByteSpan> spans_;
  std::deque<XLA_FFI_Array> arrays_;
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Buffer> buffers_;
  std::deque<HostTensor> outputs_;
  std::vector<XLA_FFI_Buffer*> args_, rets_;
  std::vector<XLA_FFI_ByteSpan*> names_;
  std::vector<XLA_FFI_AttrType> attribute_types_;
  std::vector<void*> attributes_;
};

class JaxHandler : public ::testing::TestWithParam<const Op*> {};

TEST_P(JaxHandler, EqualsADirectCall) {
  const Op& op = *GetParam();
  for (const bool on_gpu : {false, true}) {
    if (on_gpu && !testing::HasGpuKernels(op)) continue;
    int compared = 0;
    for (uint32_t seed = 0; seed < 500 && compared < testing::Rounds(6); ++seed) {
      std::mt19937 rng(seed);
      const RandomCall call =
          testing::MakeRandomCall(op, [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); }, {});
      std::vector<HostTensor> want, got;
      testing::RunOptions options;
      options.device = on_gpu ? GpuDevice() : Device::kCpu;
      options.max_elements = 1 << 16;
      options.requested_outputs = 99;
      std::vector<HostTensor> on_cpu;
      if (!RunOnce(call, &on_cpu).ok()) continue;
      if (!testing::RunOp(op, call.params.get(), call.inputs, &want, options).ok()) continue;
      ASSERT_EQ(Frame(call, on_gpu, seed % 2 == 0).Run(&got), "") << call.Text();
      ASSERT_GE(got.size(), want.size());
      for (size_t o = 0; o < want.size(); ++o) {
        if (!want[o].present()) continue;  // a gradient that the call does not request
        EXPECT_EQ(got[o].shape(), want[o].shape()) << call.Text();
        if (on_gpu && GpuDevice() == Device::kCuda && SumsInThreadOrder::Marks(op.name)) {
          testing::ExpectNear(got[o], want[o], {1e-2, 1e-2}, Concat("output ", o, ": ", call.Text()));
          continue;  // of atomic additions, the last bits differ from run to run
        }
        EXPECT_TRUE(got[o].SameBytes(want[o])) << "output " << o << ", GPU " << on_gpu << ": " << call.Text();
      }
      if (HasFailure()) return;
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(All, JaxHandler, ::testing::ValuesIn(AllOps()),
                         [](const auto& info) { return std::string(info.param->name); });

RandomCall AnyCall(const char* name) {
  std::mt19937 rng(7);
  return testing::MakeValidCall(*FindOp(name), [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); }, {}, 200);
}

TEST(JaxHandlerRows, AreThoseThatWereFound) {
  const std::vector<double> boxes = {0, 0, 10, 10, 1, 1, 11, 11, 20, 20, 30, 30, 40, 40, 50, 50};
  struct NoAttributes : AttrSource {
    bool Get(const char*, AttrValue*) override { return false; }
  } none;
  RandomCall call;
  call.op = FindOp("nms");
  ASSERT_TRUE(call.op->MakeParams(NodeName(), none, &call.params).ok());
  call.inputs = {HostTensor::Of<float>({4, 4}, boxes), HostTensor::Of<float>({4}, {0.8, 0.9, 0.7, 1})};
  for (const bool on_gpu : {false, true}) {
    Frame frame(call, on_gpu, true);
    frame.CutTo(3);
    std::vector<HostTensor> outputs;
    ASSERT_EQ(frame.Run(&outputs), "");
    ASSERT_GE(outputs[0].size(), 1);
    for (int64_t i = 0; i < outputs[0].size(); ++i) EXPECT_LT(outputs[0].at(i), 3);
    std::vector<HostTensor> whole;
    ASSERT_EQ(Frame(call, on_gpu, true).Run(&whole), "");
    EXPECT_EQ(whole[0].at(0), 3);
  }
}

TEST(JaxHandlerErrors, OutOfDeviceMemory) {
  const RandomCall call = AnyCall("nms");
  Frame frame(call, true, true);
  frame.context().out_of_memory = true;
  std::vector<HostTensor> outputs;
  EXPECT_NE(frame.Run(&outputs).find("out of device memory"), std::string::npos);
}

TEST(JaxHandlerErrors, AnElementTypeThatPolyopLacks) {
  const RandomCall call = AnyCall("dynamic_resize");  // its scales are on the host, also for a kernel on a GPU
  for (const bool on_gpu : {false, true}) {
    Frame frame(call, on_gpu, false);
    frame.MakeHostInputsComplex();
    std::vector<HostTensor> outputs;
    EXPECT_NE(frame.Run(&outputs).find("type"), std::string::npos);
  }
}

}  // namespace
}  // namespace polyop::jax
