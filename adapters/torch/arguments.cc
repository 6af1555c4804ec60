// SPDX-License-Identifier: Apache-2.0
#include "adapters/torch/arguments.h"

#include <torch/csrc/stable/stableivalue_conversions.h>

#include <string>
#include <utility>

namespace polyop::torch_adapter {
namespace {

using torch::stable::Tensor;
using torch::stable::detail::to;

// Takes a string. In PyTorch 2.10 to 2.13, to<std::string> leaks a copy of the text.
std::string TakeString(StableIValue value) {
  const auto handle = to<StringHandle>(value);
  size_t length = 0;
  const char* data = nullptr;
  const bool read = torch_string_length(handle, &length) == AOTI_TORCH_SUCCESS &&
                    torch_string_c_str(handle, &data) == AOTI_TORCH_SUCCESS;
  std::string text = read ? std::string(data, length) : std::string();
  STD_TORCH_CHECK(torch_delete_string(handle) == AOTI_TORCH_SUCCESS && read, "polyop: a string could not be read");
  return text;
}

std::optional<AttrValue> TakeAttribute(const AttrInfo& info, StableIValue value) {
  if (info.spec.num_choices() > 0 || info.type == AttrType::kString) return AttrValue::String(TakeString(value));
  switch (info.type) {
    case AttrType::kInt: return AttrValue::Int(to<int64_t>(value));
    case AttrType::kInts: return AttrValue::Ints(to<std::vector<int64_t>>(value));
    case AttrType::kFloats: return AttrValue::Floats(to<std::vector<double>>(value));
    default: break;
  }
  if (!info.spec.infinite) return AttrValue::Float(to<double>(value));
  const auto number = to<std::optional<double>>(value);  // a schema cannot write an infinite default
  return number ? std::optional(AttrValue::Float(*number)) : std::nullopt;
}

}  // namespace

Arguments TakeArguments(const Op& op, const StableIValue* stack) {
  Arguments arguments;
  const Signature& signature = *op.signatures[0].signature;
  for (int i = 0; i < signature.num_inputs(); ++i) {
    const TensorSpec& spec = signature.input(i);
    const StableIValue value = *stack++;
    if (spec.variadic) {
      for (Tensor& t : to<std::vector<Tensor>>(value)) arguments.inputs.emplace_back(std::move(t));
    } else if (spec.optional) {
      arguments.inputs.push_back(to<std::optional<Tensor>>(value));
    } else {
      arguments.inputs.emplace_back(to<Tensor>(value));
    }
  }
  for (const AttrInfo& info : op.attributes) arguments.attributes.push_back(TakeAttribute(info, *stack++));
  return arguments;
}

}  // namespace polyop::torch_adapter
