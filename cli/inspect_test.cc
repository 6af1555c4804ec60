// SPDX-License-Identifier: Apache-2.0
// Tests `inspect` on damaged models, which ends with a Failure or a report.
#include <gtest/gtest.h>

#include <random>

#include "cli/base/damage.h"
#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/process.h"
#include "cli/commands.h"
#include "onnx/onnx.pb.h"

namespace polyop::cli {
namespace {

void AddValue(onnx::ValueInfoProto* value, const std::string& name) {
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::FLOAT);
  type->mutable_shape()->add_dim()->set_dim_param("N");
  type->mutable_shape()->add_dim()->set_dim_value(4);
}

void AddNode(onnx::GraphProto* graph, const std::string& domain, const std::string& type) {
  onnx::NodeProto* node = graph->add_node();
  node->set_domain(domain);
  node->set_op_type(type);
  node->set_name(type + "_1");
  node->add_input("x");
  node->add_input("weights");
  node->add_output(type);
  onnx::AttributeProto* level = node->add_attribute();
  level->set_name("level");
  level->set_type(onnx::AttributeProto::INT);
  level->set_i(3);
  onnx::AttributeProto* sizes = node->add_attribute();
  sizes->set_name("sizes");
  sizes->set_type(onnx::AttributeProto::FLOATS);
  for (float size : {1.0f, 2.5f, 4.0f}) sizes->add_floats(size);
}

// Returns a model with nodes of polyop, of ONNX, of a function and of no provider, an initializer, metadata and a
// subgraph.
std::vector<uint8_t> GoodModel() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.set_producer_name("inspect_test");
  for (const char* domain : {"", "custom", "mmcv", "own"}) {
    auto* opset = model.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(17);
  }
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("graph");
  AddValue(graph->add_input(), "x");
  AddValue(graph->add_output(), "my_add");
  onnx::TensorProto* weights = graph->add_initializer();
  weights->set_name("weights");
  weights->set_data_type(onnx::TensorProto::FLOAT);
  weights->add_dims(2);
  weights->add_dims(4);
  weights->set_raw_data(std::string(32, 'w'));
  AddNode(graph, "custom", "my_add");
  AddNode(graph, "mmcv", "MMCVRoiAlign");
  AddNode(graph, "nobody", "Quux");
  AddNode(graph, "own", "Twice");
  AddNode(graph, "", "If");
  onnx::AttributeProto* branch = graph->mutable_node(4)->add_attribute();
  branch->set_name("then_branch");
  branch->set_type(onnx::AttributeProto::GRAPH);
  AddNode(branch->mutable_g(), "mmcv", "SoftNonMaxSuppression");
  onnx::FunctionProto* function = model.add_functions();
  function->set_domain("own");
  function->set_name("Twice");
  function->add_node()->set_op_type("Add");
  auto* call = graph->mutable_node(0)->add_metadata_props();
  call->set_key("pkg.torch.onnx.fx_node");
  call->set_value("%a : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %y), kwargs = {})");
  auto* translated = graph->mutable_node(1)->add_metadata_props();
  translated->set_key("polyop.pytorch_operator");
  translated->set_value("aten::cummax");
  auto* entry = model.add_metadata_props();
  entry->set_key("polyop.input");
  entry->set_value("rgb");
  const std::string bytes = model.SerializeAsString();
  return {bytes.begin(), bytes.end()};
}

int InspectBytes(const std::vector<uint8_t>& bytes, bool json) {
  const TemporaryFolder folder;
  InspectOptions options;
  options.model = folder.File("model.onnx");
  options.verbose = true;
  options.session.onnxruntime = "none";  // a damaged model does not reach it
  options.json = json;
  WriteFile(options.model, bytes.data(), bytes.size());
  return Inspect(options);
}

TEST(Inspect, DescribesAGoodModel) {
  ::testing::internal::CaptureStdout();
  EXPECT_EQ(InspectBytes(GoodModel(), false), kNotProvided);
  const std::string text = ::testing::internal::GetCapturedStdout();
  for (const char* part : {"custom::my_add", "nobody::Quux", "own::Twice", "SoftNonMaxSuppression", "sizes",
                           "aten::add.Tensor", "aten::cummax"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Inspect, RejectsOrDescribesDamagedModels) {
  const std::vector<uint8_t> good = GoodModel();
  std::mt19937 rng(1);
  int refused = 0, answered = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const std::vector<uint8_t> bad = Damaged(good, rng);
    ::testing::internal::CaptureStdout();
    try {
      const int code = InspectBytes(bad, trial % 2 == 0);
      EXPECT_TRUE(code == kOk || code == kBadFile || code == kNotProvided) << code;
      ++answered;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), kBadFile) << failure.what();
      ++refused;
    }
    (void)::testing::internal::GetCapturedStdout();
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace polyop::cli
