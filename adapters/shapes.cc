// SPDX-License-Identifier: Apache-2.0
#include "adapters/shapes.h"

#include <cstdlib>
#include <map>
#include <vector>

#include "adapters/tree_domain.h"
#include "core/call.h"
#include "core/guard.h"
#include "core/library.h"
#include "core/shape_eval.h"

namespace polyop {
namespace {

std::optional<DType> ParseDType(std::string_view name) {
  for (int type = 0; type < kNumDTypes; ++type) {
    if (NameOf(static_cast<DType>(type)) == name) return static_cast<DType>(type);
  }
  return std::nullopt;
}

// Reads a real number. JSON has neither infinities nor NaN, so these are texts.
double Real(const Json& json) {
  return json.is_string() ? std::strtod(json.get_ref<const std::string&>().c_str(), nullptr) : json.get<double>();
}

class JsonAttributes : public AttrSource {
 public:
  JsonAttributes(const Op& op, const Json& values) : op_(op), values_(values) {}
  bool Get(const char* name, AttrValue* value) override {
    const auto found = values_.find(name);
    if (found == values_.end()) return false;
    const AttrInfo& info = *op_.FindAttribute(name);
    if (info.spec.num_choices() > 0 || info.type == AttrType::kString) {
      *value = AttrValue::String(found->get<std::string>());
    } else if (info.type == AttrType::kInt) {
      *value = AttrValue::Int(found->get<int64_t>());
    } else if (info.type == AttrType::kInts) {
      *value = AttrValue::Ints(found->get<std::vector<int64_t>>());
    } else if (info.type == AttrType::kFloat) {
      *value = AttrValue::Float(Real(*found));
    } else {
      std::vector<double> reals;
      for (const Json& item : *found) reals.push_back(Real(item));
      *value = AttrValue::Floats(std::move(reals));
    }
    return true;
  }

 private:
  const Op& op_;
  const Json& values_;
};

// The inputs of a request: types and ranks to select a kernel, and extents for the evaluator.
struct Inputs {
  std::vector<AnyTensor> tensors;
  std::vector<Dims<TreeDim>> dims;
  std::map<int, std::vector<double>> values;
  bool known = true;  // all extents are known
};

TreeDim ExtentOf(const Json& extent, int input, int dimension) {
  if (extent.is_number_integer()) return TreeDomain().Const(extent.get<int64_t>());
  return TreeDomain::Extent(input, dimension, extent.is_string() ? extent.get<std::string>() : "?");
}

Status ReadInputs(const Json& request, Inputs* inputs) {
  for (const Json& input : request.at("inputs")) {
    const int number = static_cast<int>(inputs->tensors.size());
    AnyTensor& tensor = inputs->tensors.emplace_back();
    Dims<TreeDim>& dims = inputs->dims.emplace_back();
    dims.present = tensor.present = !input.is_null();
    if (input.is_null()) continue;
    const std::string name = input.at("name");
    const Json& shape = input.at("shape");
    const std::optional<DType> dtype = ParseDType(input.at("type").get<std::string>());
    if (!dtype) return InvalidArgument("'", name, "': unsupported element type");
    tensor.dtype = *dtype;
    if (input.contains("values")) inputs->values[number] = input["values"].get<std::vector<double>>();
    for (const Json& extent : shape) {
      tensor.shape.push_back(extent.is_number_integer() ? extent.get<int64_t>() : 0);
      inputs->known = inputs->known && extent.is_number_integer();
      if (dims.rank < kMaxRank) dims.push_back(ExtentOf(extent, number, dims.rank));  // a higher rank is an error
    }
  }
  while (!inputs->tensors.empty() && !inputs->tensors.back().present) {
    inputs->tensors.pop_back();
    inputs->dims.pop_back();
  }
  return Status::Ok();
}

// Checks an output if all its extents, or their upper bounds, are numbers.
Status CheckKnown(const TensorSpec& spec, const Dims<TreeDim>& dims) {
  Shape max_shape;
  for (int d = 0; d < dims.rank; ++d) {
    const Json& tree = dims.dim[d].tree;
    const bool found = tree.is_array() && tree[0] == "found";
    const Json& extent = found ? tree[2] : tree;
    if (!extent.is_number_integer()) return Status::Ok();
    max_shape.push_back(extent.get<int64_t>());
  }
  return CheckOutput(spec, max_shape);
}

Status Infer(const Op& op, const Json& request, Json* response) {
  Inputs inputs;
  POLYOP_RETURN_IF_ERROR(ReadInputs(request, &inputs));
  JsonAttributes attributes(op, request.at("attributes"));
  Params params;
  POLYOP_RETURN_IF_ERROR(op.MakeParams(NodeName(), attributes, &params));
  const Kernel* kernel = nullptr;
  const bool cuda = POLYOP_CUDA && request.at("cuda").get<bool>();
  const Device device = DeviceFor(op, cuda ? Device::kCuda : Device::kCpu, inputs.tensors);
  POLYOP_RETURN_IF_ERROR(FindChecked(op, device, inputs.tensors, &kernel));

  const OpSignature& resolved = op.signatures[kernel->signature];
  TreeDomain domain(inputs.values);
  ShapeEvaluator<TreeDomain> evaluator(resolved, op, params.get(), domain);
  POLYOP_RETURN_IF_ERROR(evaluator.Bind(inputs.dims));
  if (inputs.known) POLYOP_RETURN_IF_ERROR(op.check_inputs(params.get(), inputs.tensors));
  Json outputs = Json::array();
  for (int o = 0; o < resolved.signature->num_outputs(); ++o) {
    if (!op.Computes(params.get(), o)) {
      outputs.push_back({{"type", NameOf(kernel->outputs[o])}, {"shape", {0}}});  // as call.cc returns it
      continue;
    }
    Dims<TreeDim> dims;
    POLYOP_RETURN_IF_ERROR(evaluator.Output(o, &dims));
    POLYOP_RETURN_IF_ERROR(evaluator.WithOperands(CheckKnown(resolved.signature->output(o), dims), o));
    Json shape = Json::array();
    for (int d = 0; d < dims.rank; ++d) shape.push_back(dims.dim[d].tree);
    outputs.push_back({{"type", NameOf(kernel->outputs[o])}, {"shape", shape}});
  }
  *response = {{"outputs", outputs}, {"checks", domain.checks()}};
  return Status::Ok();
}

}  // namespace

Device DeviceFor(const Op& op, Device device, std::span<const AnyTensor> inputs) {
  const Kernel* kernel = nullptr;
  const auto none = [&](Device of) { return !op.FindKernel(of, inputs, &kernel).ok(); };
  return none(device) && none(Device::kCpu) && !none(Device::kReference) ? Device::kReference : device;
}

std::string InferShapes(std::string_view text) {
  const Json request = Json::parse(text);
  const std::string name = request.at("operator");
  const Op* op = FindOp(name);
  Json response;
  const Status status = op != nullptr ? Infer(*op, request, &response) : InvalidArgument("unknown operator");
  if (!status.ok()) response = {{"error", Concat(LibraryName(), "::", name, ": ", status.message())}};
  return response.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace polyop

extern "C" const char* polyop_shapes(const char* request) {
  using polyop::Json;
  static thread_local std::string response;
  response = polyop::Guarded([&] { return polyop::InferShapes(request); },
                             [](const char* message) {  // the request is malformed
                               const Json error = {{"error", std::string("polyop_shapes: ") + message}};
                               return error.dump(-1, ' ', false, Json::error_handler_t::replace);
                             });
  return response.c_str();
}
