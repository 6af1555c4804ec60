// SPDX-License-Identifier: Apache-2.0
// lib<library>_tvm_ffi.so: one function of tvm-ffi's ABI calls every operator through the C interface:
//   call(operator, attributes, input…) -> output, or a list of outputs
// Tensors are those of any framework, by DLPack. Outputs come from the allocator that the caller's framework names, or
// else from the system's memory. The calling thread does all work.
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "adapters/c/polyop.h"
#include "platform/exported.h"
#include "platform/memory.h"

namespace polyop::tvm_ffi {
namespace {

namespace ffi = ::tvm::ffi;

// The element types, in the order of polyop.h.
constexpr DLDataType kTypes[] = {{kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLBfloat, 16, 1}, {kDLFloat, 64, 1},
                                 {kDLInt, 8, 1},    {kDLUInt, 8, 1},   {kDLInt, 16, 1},    {kDLInt, 32, 1},
                                 {kDLInt, 64, 1},   {kDLBool, 8, 1}};
static_assert(std::size(kTypes) == POLYOP_BOOL + 1);

polyop_tensor View(int number, const DLTensor& tensor) {
  if (tensor.device.device_type != kDLCPU) {
    TVM_FFI_THROW(ValueError) << "input " << number << ": expected memory of the CPU, got that of device type "
                              << static_cast<int>(tensor.device.device_type) << ", number " << tensor.device.device_id;
  }
  if (!ffi::IsContiguous(tensor)) {
    TVM_FFI_THROW(ValueError) << "input " << number << ": expected contiguous elements, got strides";
  }
  const auto* const type = std::ranges::find_if(kTypes, [&](const DLDataType& known) { return known == tensor.dtype; });
  if (type == std::end(kTypes)) {
    TVM_FFI_THROW(TypeError) << "input " << number << ": unsupported element type "
                             << ffi::DLDataTypeToString(tensor.dtype);
  }
  return {static_cast<const char*>(tensor.data) + tensor.byte_offset, static_cast<int32_t>(type - kTypes), tensor.ndim,
          tensor.shape};
}

// The attributes of a call, as the C interface reads them.
class Attributes {
 public:
  explicit Attributes(const ffi::Map<ffi::String, ffi::Any>& map) {
    for (const auto& [name, value] : map) Add(texts_.emplace_back(name).c_str(), value);
  }
  const std::vector<polyop_attribute>& attributes() const { return attributes_; }

 private:
  void Add(const char* name, const ffi::Any& value) {
    if (const auto integer = value.as<int64_t>()) {
      attributes_.push_back({name, POLYOP_INT, 1, &ints_.emplace_back(1, *integer)[0]});
    } else if (const auto real = value.as<double>()) {
      attributes_.push_back({name, POLYOP_FLOAT, 1, &floats_.emplace_back(1, *real)[0]});
    } else if (const auto text = value.as<ffi::String>()) {
      attributes_.push_back({name, POLYOP_TEXT, 0, texts_.emplace_back(*text).c_str()});
    } else if (const auto integers = value.try_cast<ffi::Array<int64_t>>()) {
      const auto& list = ints_.emplace_back(integers->begin(), integers->end());
      attributes_.push_back({name, POLYOP_INTS, static_cast<int64_t>(list.size()), list.data()});
    } else if (const auto reals = value.try_cast<ffi::Array<double>>()) {
      const auto& list = floats_.emplace_back(reals->begin(), reals->end());
      attributes_.push_back({name, POLYOP_FLOATS, static_cast<int64_t>(list.size()), list.data()});
    } else {
      TVM_FFI_THROW(TypeError) << "attribute '" << name << "': expected a number, a text or a list of numbers, got "
                               << value.GetTypeKey();
    }
  }

  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::vector<polyop_attribute> attributes_;
};

struct SystemMemory {
  void AllocData(DLTensor* tensor) {
    tensor->data = AllocateAligned(ffi::GetDataSize(*tensor));
    if (tensor->data == nullptr) throw std::bad_alloc();
  }
  void FreeData(DLTensor* tensor) { FreeAligned(tensor->data); }
};

class Outputs {
 public:
  polyop_outputs outputs() {
    return {this, [](void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape) -> void* {
              return static_cast<Outputs*>(self)->Allocate(static_cast<size_t>(output), type, rank, shape);
            }};
  }
  void RethrowError() const {
    if (error_) std::rethrow_exception(error_);
  }
  const std::vector<ffi::Tensor>& tensors() const { return tensors_; }

 private:
  void* Allocate(size_t output, int32_t type, int32_t rank, const int64_t* shape) {
    try {
      const ffi::ShapeView extents(shape, static_cast<size_t>(rank));
      constexpr DLDevice kCpu{kDLCPU, 0};
      if (tensors_.size() <= output) tensors_.resize(output + 1);
      tensors_[output] = TVMFFIEnvGetDLPackManagedTensorAllocator() != nullptr
                             ? ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, extents, kTypes[type], kCpu)
                             : ffi::Tensor::FromNDAlloc(SystemMemory(), extents, kTypes[type], kCpu);
      return tensors_[output].data_ptr();
    } catch (...) {  // no exception can pass through C
      error_ = std::current_exception();
      return nullptr;
    }
  }

  std::vector<ffi::Tensor> tensors_;
  std::exception_ptr error_;
};

void CallPacked(ffi::PackedArgs args, ffi::Any* result) {
  if (args.size() < 2) TVM_FFI_THROW(TypeError) << "expected an operator's name and its attributes";
  const auto name = args[0].cast<ffi::String>();
  const Attributes attributes(args[1].cast<ffi::Map<ffi::String, ffi::Any>>());
  std::vector<polyop_tensor> inputs;
  for (int i = 2; i < args.size(); ++i) {
    const auto tensor = args[i].cast<ffi::Optional<DLTensor*>>();
    inputs.push_back(tensor.has_value() ? View(i - 2, **tensor) : polyop_tensor{nullptr, 0, -1, nullptr});
  }
  Outputs outputs;
  const polyop_outputs allocator = outputs.outputs();
  const char* const error = polyop_call(name.c_str(), static_cast<int32_t>(inputs.size()), inputs.data(),
                                        static_cast<int32_t>(attributes.attributes().size()),
                                        attributes.attributes().data(), &allocator, nullptr);
  outputs.RethrowError();
  if (error != nullptr) TVM_FFI_THROW(ValueError) << error;
  if (outputs.tensors().size() == 1) {
    *result = outputs.tensors()[0];
  } else {
    *result = ffi::Array<ffi::Tensor>(outputs.tensors().begin(), outputs.tensors().end());
  }
}

}  // namespace
}  // namespace polyop::tvm_ffi

extern "C" POLYOP_EXPORTED int __tvm_ffi_call(void*, const TVMFFIAny* args, int32_t count, TVMFFIAny* result) {
  TVM_FFI_SAFE_CALL_BEGIN();
  polyop::tvm_ffi::CallPacked(::tvm::ffi::PackedArgs(reinterpret_cast<const ::tvm::ffi::AnyView*>(args), count),
                              reinterpret_cast<::tvm::ffi::Any*>(result));
  TVM_FFI_SAFE_CALL_END();
}
