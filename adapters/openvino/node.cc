// SPDX-License-Identifier: Apache-2.0
#include "adapters/openvino/node.h"

#include <openvino/op/constant.hpp>

#include "adapters/openvino/attributes.h"
#include "adapters/openvino/dimension_domain.h"
#include "adapters/openvino/element_types.h"
#include "adapters/openvino/node_call.h"
#include "core/call.h"
#include "core/library.h"
#include "core/unload.h"

namespace polyop::openvino {
namespace {

// Converts an output's extents. A negative extent is an error, as in a call.
Status ToShape(const TensorSpec& spec, const Dims<Extent>& dims, ov::PartialShape* shape) {
  *shape = ov::PartialShape(std::vector<ov::Dimension>());
  Shape numbers;
  for (int d = 0; d < dims.rank; ++d) {
    const Extent& extent = dims.dim[static_cast<size_t>(d)];
    numbers.push_back(extent.known ? extent.value : 0);
    POLYOP_RETURN_IF_ERROR(CheckOutput(spec, numbers));
    shape->push_back(extent.ToOpenVino());
  }
  return Status::Ok();
}

}  // namespace

Record::Record(const polyop::Op& o)
    : op(o), name(o.name), type(name.c_str(), LibraryName(), &ov::op::Op::get_type_info_static()) {
  type.hash();
}

namespace {

using RecordList = std::vector<std::unique_ptr<Record>>;
RecordList* records = nullptr;  // see core/unload.h for its lifetime
__attribute__((destructor)) void FreeRecords() {
  if (!ProcessEnds()) delete records;
}

}  // namespace

const std::vector<std::unique_ptr<Record>>& Records() {
  static const bool created = [] {
    auto all = std::make_unique<RecordList>();
    for (const polyop::Op* op : AllOps()) all->push_back(std::make_unique<Record>(*op));
    records = all.release();
    return true;
  }();
  (void)created;
  return *records;
}

Node::Node(const Record& record) : record_(record), form_{record.name, {}}, params_(record.op.DefaultParams()) {}

Node::Node(const Record& record, NodeForm form, std::shared_ptr<const void> params, const ov::OutputVector& arguments)
    : ov::op::Op(arguments), record_(record), form_(std::move(form)), params_(std::move(params)) {
  constructor_validate_and_infer_types();
}

std::shared_ptr<ov::Node> Node::clone_with_new_inputs(const ov::OutputVector& arguments) const {
  return std::make_shared<Node>(record_, form_, params_, arguments);
}

bool Node::visit_attributes(ov::AttributeVisitor& visitor) {
  visitor.on_attribute("polyop_node", form_.name);
  visitor.on_attribute("polyop_present", form_.present);
  std::map<std::string, std::string> texts;
  bool changed = false;
  for (const AttrInfo& info : record_.op.attributes) {
    const std::string before = TextOf(info.get(info.spec, params_.get()));
    std::string& text = texts[info.spec.name] = before;
    visitor.on_attribute(info.spec.name, text);
    changed = changed || text != before;
  }
  if (!changed) return true;
  TextAttributes source(record_.op, texts);
  Params params;
  const Status status = record_.op.MakeParams(NodeName(), source, &params);
  if (!status.ok()) OPENVINO_THROW(form_.name, ": ", status.message());
  params_ = std::move(params);
  return true;
}

void Node::validate_and_infer_types() {
  const Status status = Infer();
  if (!status.ok()) OPENVINO_THROW(form_.name, ": ", status.message());
}

Node::Known Node::ReadArguments() const {
  Known known;
  size_t argument = 0;
  for (const int64_t present : form_.present) {
    KnownInput& input = known.inputs.emplace_back();
    AnyTensor& tensor = known.tensors.emplace_back();
    ov::PartialShape& shape = known.shapes.emplace_back();
    if (present == 0 || argument >= get_input_size()) continue;
    input.present = tensor.present = true;
    input.dtype = FromOpenVino(get_input_element_type(argument));
    shape = get_input_partial_shape(argument);
    if (shape.rank().is_static()) input.rank = static_cast<int>(shape.rank().get_length());
    known.has_ranks = known.has_ranks && input.rank.has_value();
    known.is_static = known.is_static && input.dtype && shape.is_static();
    if (input.dtype) tensor.dtype = *input.dtype;
    if (shape.is_static()) {
      for (const ov::Dimension& d : shape) tensor.shape.push_back(d.get_length());
      const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(get_input_node_shared_ptr(argument));
      if (constant != nullptr) tensor.data = const_cast<void*>(constant->get_data_ptr());
    }
    ++argument;
  }
  return known;
}

Status Node::Infer() {
  if (form_.present.empty()) form_.present.assign(get_input_size(), 1);
  Known known = ReadArguments();
  POLYOP_RETURN_IF_ERROR(CheckCount(*record_.op.signatures[0].signature, known.inputs.size()));
  const Kernel* kernel = FindKernel(record_.op, known.inputs);
  if (kernel == nullptr) return record_.op.FindKernel(Device::kCpu, known.tensors, &kernel);
  Widening widening;
  widening.Apply(record_.op, *kernel, known.tensors);
  if (known.is_static) POLYOP_RETURN_IF_ERROR(record_.op.check_inputs(params_.get(), known.tensors));
  return SetOutputs(known, *kernel);
}

Status Node::SetOutputs(const Known& known, const Kernel& kernel) {
  const OpSignature& resolved = record_.op.signatures[static_cast<size_t>(kernel.signature)];
  const Signature& signature = *resolved.signature;
  set_output_size(static_cast<size_t>(signature.num_outputs()));
  DimensionDomain domain(known.tensors);
  ShapeEvaluator<DimensionDomain> evaluator(resolved, record_.op, params_.get(), domain);
  if (known.has_ranks) {
    std::vector<Dims<Extent>> extents(known.inputs.size());
    for (size_t i = 0; i < extents.size(); ++i) {
      extents[i].present = known.inputs[i].present;
      if (!extents[i].present) continue;
      if (*known.inputs[i].rank > kMaxRank) {
        return InvalidArgument("'", SpecOf(signature, i).name, "': expected at most ", kMaxRank, " dimensions, got ",
                               *known.inputs[i].rank);
      }
      for (const ov::Dimension& d : known.shapes[i]) extents[i].push_back(Extent::Of(d));
    }
    POLYOP_RETURN_IF_ERROR(evaluator.Bind(extents));
  }
  for (int o = 0; o < signature.num_outputs(); ++o) {
    const size_t index = static_cast<size_t>(o);
    ov::PartialShape shape = ov::PartialShape::dynamic();
    Dims<Extent> dims;
    const Status status = known.has_ranks ? evaluator.Output(o, &dims) : Status::Ok();
    if (!status.ok() && (domain.problem() != nullptr || !signature.output(o).optional)) return status;
    if (known.has_ranks && status.ok()) {
      POLYOP_RETURN_IF_ERROR(evaluator.WithOperands(ToShape(signature.output(o), dims, &shape), o));
    }
    set_output_type(index, ToOpenVino(kernel.outputs[index]), shape);
  }
  return Status::Ok();
}

bool Node::evaluate(ov::TensorVector& outputs, const ov::TensorVector& inputs) const {
  std::vector<bool> requested(outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) requested[o] = !get_output_target_inputs(o).empty();
  const Status status = CallNode(record_.op, params_.get(), form_.present, inputs, requested, outputs);
  if (!status.ok()) OPENVINO_THROW(form_.name, ": ", status.message());
  return true;
}

}  // namespace polyop::openvino
