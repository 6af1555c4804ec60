// SPDX-License-Identifier: Apache-2.0
// lib<library>_executorch.so: registers every operator with ExecuTorch, as <library>::<operator>.out. A kernel's
// arguments are those of PyTorch's schema: inputs, attributes, outputs.
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/operator_registry.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "adapters/c/polyop.h"
#include "core/guard.h"
#include "core/status.h"
#include "platform/exported.h"

namespace polyop::executorch {
namespace {

namespace et = ::executorch::runtime;
using ::executorch::aten::ScalarType;
using ::executorch::aten::SizesType;
using EtTensor = ::executorch::aten::Tensor;

// The element types, in the order of polyop.h.
constexpr ScalarType kTypes[] = {ScalarType::Float, ScalarType::Half, ScalarType::BFloat16, ScalarType::Double,
                                 ScalarType::Char,  ScalarType::Byte, ScalarType::Short,    ScalarType::Int,
                                 ScalarType::Long,  ScalarType::Bool};
static_assert(std::size(kTypes) == POLYOP_BOOL + 1);

struct Operator {
  std::string name, registered_name;
  std::vector<bool> variadic;           // of each input
  std::vector<std::string> attributes;  // their names
};

std::deque<Operator>& Operators() {
  static std::deque<Operator> operators;
  return operators;
}

// The inputs of a call. Shapes of 64 bits live here.
class Inputs {
 public:
  Status Add(const EtTensor& tensor) {
    const auto* const type = std::ranges::find(kTypes, tensor.scalar_type());
    const std::string name = Concat("input ", static_cast<int64_t>(tensors_.size()));
    if (type == std::end(kTypes)) return InvalidArgument(name, ": unsupported element type");
    if (!et::is_contiguous_dim_order(tensor.dim_order().data(), tensor.dim_order().size())) {
      return InvalidArgument(name, ": expected contiguous elements in the order of the dimensions");
    }
    const auto& shape = shapes_.emplace_back(tensor.sizes().begin(), tensor.sizes().end());
    tensors_.push_back({tensor.const_data_ptr(), static_cast<int32_t>(type - kTypes),
                        static_cast<int32_t>(shape.size()), shape.data()});
    return Status::Ok();
  }
  void LeaveOut() { tensors_.push_back({nullptr, 0, -1, nullptr}); }
  const std::vector<polyop_tensor>& tensors() const { return tensors_; }

 private:
  std::vector<polyop_tensor> tensors_;
  std::deque<std::vector<int64_t>> shapes_;
};

class Attributes {
 public:
  void Add(const std::string& name, const et::EValue& value) {
    if (value.isNone()) return;
    if (value.isInt()) Add(name, POLYOP_INT, ints_, {value.toInt()});
    if (value.isBool()) Add(name, POLYOP_INT, ints_, {value.toBool() ? 1 : 0});
    if (value.isDouble()) Add(name, POLYOP_FLOAT, floats_, {value.toDouble()});
    if (value.isIntList()) Add(name, POLYOP_INTS, ints_, {value.toIntList().begin(), value.toIntList().end()});
    if (value.isDoubleList()) {
      Add(name, POLYOP_FLOATS, floats_, {value.toDoubleList().begin(), value.toDoubleList().end()});
    }
    if (value.isString()) {
      const std::string& text = texts_.emplace_back(value.toString().data(), value.toString().size());
      attributes_.push_back({name.c_str(), POLYOP_TEXT, 0, text.c_str()});
    }
  }
  const std::vector<polyop_attribute>& attributes() const { return attributes_; }

 private:
  template <class T>
  void Add(const std::string& name, int32_t kind, std::deque<std::vector<T>>& lists, std::vector<T> values) {
    const auto& kept = lists.emplace_back(std::move(values));
    attributes_.push_back({name.c_str(), kind, static_cast<int64_t>(kept.size()), kept.data()});
  }

  std::deque<std::string> texts_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::vector<polyop_attribute> attributes_;
};

// Memory is planned for the upper bound of an output: it gets the size that it has.
void* Allocate(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape) {
  EtTensor& tensor = static_cast<et::EValue**>(self)[output]->toTensor();
  std::vector<SizesType> sizes;
  for (int32_t d = 0; d < rank; ++d) {
    if (shape[d] > std::numeric_limits<SizesType>::max()) return nullptr;
    sizes.push_back(static_cast<SizesType>(shape[d]));
  }
  if (tensor.scalar_type() != kTypes[type]) return nullptr;
  if (et::resize_tensor(tensor, {sizes.data(), sizes.size()}) != et::Error::Ok) return nullptr;
  return tensor.mutable_data_ptr();
}

void Run(void*, int64_t tasks, void (*body)(void*, int64_t), void* argument) {
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) body(argument, task);
  };
  if (!::executorch::extension::parallel_for(0, tasks, 1, run)) run(0, tasks);
}

// Returns an error message, or an empty text.
std::string Call(const Operator& op, et::EValue** stack) {
  Inputs inputs;
  Status status = Status::Ok();
  for (const bool variadic : op.variadic) {
    const et::EValue& value = **stack++;
    if (variadic) {
      for (const EtTensor& tensor : value.toTensorList()) {
        if (status.ok()) status = inputs.Add(tensor);
      }
    } else if (value.isNone()) {
      inputs.LeaveOut();
    } else if (status.ok()) {
      status = inputs.Add(value.toTensor());
    }
  }
  if (!status.ok()) return Concat(op.registered_name, ": ", status.message());
  Attributes attributes;
  for (const std::string& name : op.attributes) attributes.Add(name, **stack++);
  const polyop_outputs outputs = {static_cast<void*>(stack), Allocate};
  const polyop_threads threads = {nullptr, Run};
  const char* const error = polyop_call(op.name.c_str(), static_cast<int32_t>(inputs.tensors().size()),
                                        inputs.tensors().data(), static_cast<int32_t>(attributes.attributes().size()),
                                        attributes.attributes().data(), &outputs, &threads);
  return error == nullptr ? std::string() : error;
}

void CallNumber(size_t number, et::KernelRuntimeContext& context, et::EValue** stack) {
  const std::string error = Guarded([&] { return Call(Operators()[number], stack); },
                                    [](const char* message) { return std::string(message); });
  if (error.empty()) return;
  ET_LOG(Error, "%s", error.c_str());
  context.fail(et::Error::InvalidArgument);
}

// ExecuTorch's kernels are functions without state: each operator has one of these.
constexpr size_t kMaxOperators = 512;
constexpr auto kKernels = []<size_t... kNumbers>(std::index_sequence<kNumbers...>) {
  return std::array<et::OpFunction, sizeof...(kNumbers)>{
      [](et::KernelRuntimeContext& context, et::Span<et::EValue*> stack) {
        CallNumber(kNumbers, context, stack.data());
      }...};
}(std::make_index_sequence<kMaxOperators>());

// Returns an error message, or null.
const char* Register() {
  for (const auto& record : nlohmann::json::parse(polyop_catalogue())) {
    if (record.contains("gradient_of") && !record["gradient_of"].is_null()) continue;
    if (Operators().size() == kMaxOperators) return "the library has more operators than it can register";
    Operator& op = Operators().emplace_back();
    op.name = record["name"];
    op.registered_name = "polyop::" + op.name + ".out";
    for (const auto& input : record["inputs"]) op.variadic.push_back(input["variadic"]);
    for (const auto& attribute : record["attributes"]) op.attributes.push_back(attribute["name"]);
  }
  std::vector<et::Kernel> kernels;
  for (size_t i = 0; i < Operators().size(); ++i) {
    kernels.emplace_back(Operators()[i].registered_name.c_str(), kKernels[i]);
  }
  const et::Error error = et::register_kernels({kernels.data(), kernels.size()});
  return error == et::Error::Ok ? nullptr : "ExecuTorch's registry rejects the kernels";
}

}  // namespace
}  // namespace polyop::executorch

/// Registers all operators; later calls do nothing. Returns null, or an error message.
extern "C" POLYOP_EXPORTED const char* polyop_executorch_register() {
  static const char* const error = polyop::Guarded([] { return polyop::executorch::Register(); },
                                                   [](const char*) { return "the library's definitions are invalid"; });
  return error;
}
