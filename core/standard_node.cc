// SPDX-License-Identifier: Apache-2.0
#include "core/standard_node.h"

#include <numeric>

#include "core/call.h"
#include "core/node_resolution.h"
#include "core/reference.h"

namespace polyop {
namespace {

std::vector<StandardOperator>& Registered() {
  static std::vector<StandardOperator> operators;
  return operators;
}

const KnownTensor& At(std::span<const KnownTensor> tensors, size_t i) {
  static const KnownTensor absent;
  return i < tensors.size() ? tensors[i] : absent;
}

// Passes a call's outputs to the node's, and keeps the others until the call ends.
class MappedOutputs : public OutputSource {
 public:
  MappedOutputs(std::span<const int> map, OutputSource& node) : map_(map), node_(node) {}
  bool Requested(int index) override {
    const int output = map_[static_cast<size_t>(index)];
    return output >= 0 && node_.Requested(output);
  }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    if (Requested(index)) return node_.Allocate(map_[static_cast<size_t>(index)], dtype, shape, data);
    if (unused_.empty()) unused_.resize(map_.size());
    return unused_[static_cast<size_t>(index)].Allocate(0, dtype, shape, data);
  }

 private:
  std::span<const int> map_;
  OutputSource& node_;
  std::vector<ScratchOutput> unused_;
};

// Returns true if the operator has a kernel for the node's types, all of which are known.
bool HasKernel(const Op& op, const StandardNode& node, std::span<const int> inputs, std::span<const int> outputs) {
  std::vector<KnownInput> known;
  for (const int i : inputs) {
    const KnownTensor& tensor = node.input(static_cast<size_t>(i));
    if (tensor.present && !tensor.dtype.has_value()) return false;
    known.push_back({tensor.present, tensor.dtype, tensor.rank() < 0 ? std::nullopt : std::optional(tensor.rank())});
  }
  const Kernel* const kernel = op.FindKernel(Device::kCpu, known);
  if (kernel == nullptr) return false;
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] < 0) continue;
    const KnownTensor& tensor = node.output(static_cast<size_t>(outputs[o]));
    if (tensor.present && tensor.dtype.has_value() && tensor.dtype != kernel->outputs[o]) return false;
  }
  return true;
}

std::vector<int> FirstIntegers(size_t count) {
  std::vector<int> integers(count);
  std::iota(integers.begin(), integers.end(), 0);
  return integers;
}

AnyTensor Typical(const KnownTensor& known) {
  AnyTensor tensor;
  tensor.present = known.present;
  tensor.dtype = known.dtype.value_or(DType::kF32);
  for (int d = 0; d < known.rank(); ++d) {
    const int64_t extent = (*known.shape)[d];
    tensor.shape.push_back(extent != kUnknownExtent ? extent : d == 0 ? 1 : 32);
  }
  return tensor;
}

// Returns the name with the defaults that its standard operator had in this version; nullopt if none is equal.
std::optional<NodeName> VersionOf(const NodeName& node, int since) {
  const NodeName::Standard* found = nullptr;
  for (const NodeName::Standard& version : node.standards) {
    if (version.since != 0 && version.since <= since) found = &version;
  }
  if (found == nullptr) return std::nullopt;
  return found->preset.first == nullptr ? node : node.Preset(found->preset.first, found->preset.second);
}

}  // namespace

double KnownTensor::TypicalElements() const {
  if (!shape.has_value()) return 1e9;
  const AnyTensor typical = Typical(*this);
  double elements = 1;
  for (const int64_t extent : typical.shape.span()) elements *= static_cast<double>(extent);
  return elements;
}

const KnownTensor& StandardNode::input(size_t i) const { return At(inputs, i); }
const KnownTensor& StandardNode::output(size_t i) const { return At(outputs, i); }

bool StandardNode::Has(const char* attribute) const {
  AttrValue value;
  return attributes.Get(attribute, &value);
}

int64_t StandardNode::Int(const char* attribute, int64_t otherwise) const {
  AttrValue value;
  return attributes.Get(attribute, &value) && value.type == AttrType::kInt ? value.ints[0] : otherwise;
}

double StandardNode::Float(const char* attribute, double otherwise) const {
  AttrValue value;
  return attributes.Get(attribute, &value) && value.type == AttrType::kFloat ? value.floats[0] : otherwise;
}

std::string StandardNode::Text(const char* attribute, const char* otherwise) const {
  AttrValue value;
  return attributes.Get(attribute, &value) && value.type == AttrType::kString ? value.text : otherwise;
}

std::vector<int64_t> StandardNode::Ints(const char* attribute) const {
  AttrValue value;
  return attributes.Get(attribute, &value) && value.type == AttrType::kInts ? value.ints : std::vector<int64_t>{};
}

std::span<const StandardOperator> StandardOperators() { return Registered(); }

bool AddStandardOperator(const StandardOperator& standard) {
  Registered().push_back(standard);
  return true;
}

std::unique_ptr<OperatorCall> OperatorCall::Make(const StandardNode& node, const char* name,
                                                 const NamedValues& attributes, std::vector<int> inputs,
                                                 std::vector<int> outputs) {
  const Op* const op = FindOp(name);
  if (op == nullptr || !HasKernel(*op, node, inputs, outputs)) return nullptr;
  Params params = op->DefaultParams();
  for (const auto& [attribute, value] : attributes) {
    if (!SetAttribute(*op, params.get(), attribute, value).ok()) return nullptr;
  }
  if (op->check_params != nullptr && !op->check_params(params.get()).ok()) return nullptr;
  return std::unique_ptr<OperatorCall>(new OperatorCall(*op, std::move(params), std::move(inputs), std::move(outputs)));
}

std::unique_ptr<OperatorCall> OperatorCall::Mirror(const StandardNode& node, const char* node_name) {
  for (const Op* const op : AllOps()) {
    for (const NodeName& known : op->nodes) {
      if (std::string_view(known.name) != node_name) continue;
      const std::optional<NodeName> version = VersionOf(known, node.since);
      std::vector<int> inputs = FirstIntegers(node.inputs.size()), outputs = FirstIntegers(node.outputs.size());
      Params params;
      if (!version.has_value() || !HasKernel(*op, node, inputs, outputs) ||
          !op->MakeParams(*version, node.attributes, &params).ok()) {
        return nullptr;
      }
      std::vector<AnyTensor> tensors;
      for (const KnownTensor& input : node.inputs) tensors.push_back(Typical(input));
      if (op->leave_to_standard != nullptr && op->leave_to_standard(params.get(), tensors)) return nullptr;
      outputs.resize(static_cast<size_t>(op->signatures[0].signature->num_outputs()), -1);
      return std::unique_ptr<OperatorCall>(
          new OperatorCall(*op, std::move(params), std::move(inputs), std::move(outputs)));
    }
  }
  return nullptr;
}

std::unique_ptr<OperatorCall> OperatorCall::OfNode(const StandardNode& node, std::string_view name) {
  const size_t colons = name.find("::");
  const std::vector<NodeCandidate> candidates = CandidatesFor(name.substr(0, colons), name.substr(colons + 2));
  NodeCandidate resolved;
  if (candidates.empty() || !ResolveNode(candidates, node.attributes, &resolved).ok()) return nullptr;
  std::vector<int> inputs = FirstIntegers(node.inputs.size()), outputs = FirstIntegers(node.outputs.size());
  Params params;
  if (!HasKernel(*resolved.op, node, inputs, outputs) ||
      !resolved.op->MakeParams(*resolved.node, node.attributes, &params).ok()) {
    return nullptr;
  }
  outputs.resize(static_cast<size_t>(resolved.op->signatures[0].signature->num_outputs()), -1);
  return std::unique_ptr<OperatorCall>(
      new OperatorCall(*resolved.op, std::move(params), std::move(inputs), std::move(outputs)));
}

Status OperatorCall::Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const {
  std::vector<AnyTensor> mapped;
  std::span<const AnyTensor> own = inputs;
  if (!same_inputs_ || inputs.size() != inputs_.size()) {
    for (const int i : inputs_) {
      mapped.push_back(static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : AnyTensor{});
    }
    own = mapped;
  }
  MappedOutputs source(outputs_, outputs);
  if (context == nullptr) return CallReference(op_, params_.get(), own, source);
  return Call(op_, Device::kCpu, params_.get(), own, source, context);
}

bool OperatorCall::AreFirst(const std::vector<int>& inputs) { return inputs == FirstIntegers(inputs.size()); }

Status ScratchOutput::Allocate(int, DType dtype, const Shape& shape, void** data) {
  shape_ = shape;
  data_ = std::make_unique_for_overwrite<std::byte[]>(
      static_cast<size_t>(shape.NumElements().value_or(0)) * SizeOf(dtype) + 64);
  *data = data_.get();
  return Status::Ok();
}

}  // namespace polyop
