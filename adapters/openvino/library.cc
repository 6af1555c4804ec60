// SPDX-License-Identifier: Apache-2.0
// The entry point of libpolyop_openvino.so for ov::Core::add_extension.
#include <algorithm>
#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/convert.hpp>
#include <span>
#include <string_view>

#include "adapters/openvino/attributes.h"
#include "adapters/openvino/node.h"
#include "core/library.h"
#include "core/node_resolution.h"

namespace polyop::openvino {
namespace {

// Creates nodes for OpenVINO's reader of IR files.
class Extension : public ov::BaseOpExtension {
 public:
  explicit Extension(const Record& record) : record_(record) {}
  const ov::DiscreteTypeInfo& get_type_info() const override { return record_.type; }
  ov::OutputVector create(const ov::OutputVector& inputs, ov::AttributeVisitor& visitor) const override {
    const auto node = std::make_shared<Node>(record_);
    node->set_arguments(inputs);
    if (node->visit_attributes(visitor)) node->constructor_validate_and_infer_types();
    return node->outputs();
  }
  std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

 private:
  const Record& record_;
};

// The CPU plugin converts i64 outputs of its own nodes to i32, but not those of custom nodes, whose consumers expect
// i32.
ov::Output<ov::Node> ForConsumers(const ov::Output<ov::Node>& output) {
  if (output.get_element_type() != ov::element::i64) return output;
  const auto narrow = std::make_shared<ov::op::v0::Convert>(output, ov::element::i32);
  return std::make_shared<ov::op::v0::Convert>(narrow, ov::element::i64);
}

// Operators of ONNX that OpenVINO's reader lacks. It reads them as the nodes of polyop that mirror them.
constexpr std::string_view kLacking[] = {"DeformConv"};

bool ReplacesStandard(const NodeName& node) {
  return node.standards[0].since > 0 &&
         std::find(std::begin(kLacking), std::end(kLacking), node.op_type()) != std::end(kLacking);
}

const Record& RecordOf(const polyop::Op& op) {
  return **std::find_if(Records().begin(), Records().end(), [&](const auto& record) { return &record->op == &op; });
}

ov::OutputVector FromOnnx(std::span<const NodeCandidate> candidates, const ov::frontend::NodeContext& context) {
  OnnxAttributes attributes(context);
  NodeCandidate candidate;
  Params params;
  Status status = ResolveNode(candidates, attributes, &candidate);
  if (status.ok()) status = candidate.op->MakeParams(*candidate.node, attributes, &params);
  NodeForm form{Concat(candidates[0].node->label(), " (node '", context.get_name(), "')"), {}};
  if (!status.ok()) OPENVINO_THROW(form.name, ": ", status.message());
  ov::OutputVector arguments;
  for (size_t i = 0; i < context.get_input_size(); ++i) {
    const ov::Output<ov::Node> input = context.get_input(static_cast<int>(i));
    const bool given = std::string_view(input.get_node()->get_type_name()) != "NullNode";
    form.present.push_back(given ? 1 : 0);
    if (given) arguments.push_back(input);
  }
  while (!form.present.empty() && form.present.back() == 0) form.present.pop_back();
  const auto node = std::make_shared<Node>(RecordOf(*candidate.op), std::move(form), std::move(params), arguments);
  ov::OutputVector outputs = node->outputs();
  std::transform(outputs.begin(), outputs.end(), outputs.begin(), ForConsumers);
  return outputs;
}

std::vector<ov::Extension::Ptr> Extensions() {
  const Status status = CheckRegistry();
  if (!status.ok()) OPENVINO_THROW("polyop: ", status.message());
  std::vector<ov::Extension::Ptr> extensions;
  for (const auto& record : Records()) extensions.push_back(std::make_shared<Extension>(*record));
  const auto add = [&](const std::vector<NodeCandidate>& candidates, std::string_view domain) {
    extensions.push_back(std::make_shared<ov::frontend::onnx::ConversionExtension>(
        std::string(candidates[0].node->op_type()), std::string(domain),
        [candidates](const ov::frontend::NodeContext& context) { return FromOnnx(candidates, context); }));
  };
  for (const auto& candidates : CandidatesByName(AllOps())) {
    add(candidates, candidates[0].node->domain());
    if (ReplacesStandard(*candidates[0].node)) add(candidates, "");
  }
  if (std::string_view(LibraryName()) == "polyop") {
    for (const auto& candidates : CandidatesByPluginName(AllOps())) add(candidates, kPluginDomain);
  }
  return extensions;
}

}  // namespace
}  // namespace polyop::openvino

OPENVINO_CREATE_EXTENSIONS(polyop::openvino::Extensions())
