// SPDX-License-Identifier: Apache-2.0
// Runs random models of one node, generated from the definitions, in ONNX Runtime. Results equal those of a direct
// call, and invalid calls end in an error. Runs kCalls models of each operator, which
// POLYOP_CALLS_FACTOR multiplies, and continues with others for POLYOP_FUZZ_SECONDS.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>

#include "cli/base/failure.h"
#include "cli/base/runtime.h"
#include "onnx/onnx.pb.h"
#include "testing/random_call.h"

namespace polyop::cli {
namespace {

using testing::HostTensor;
using testing::RandomCall;

int ElementType(DType dtype) {
  switch (dtype) {
    case DType::kF32: return onnx::TensorProto::FLOAT;
    case DType::kF16: return onnx::TensorProto::FLOAT16;
    case DType::kBF16: return onnx::TensorProto::BFLOAT16;
    case DType::kF64: return onnx::TensorProto::DOUBLE;
    case DType::kI8: return onnx::TensorProto::INT8;
    case DType::kU8: return onnx::TensorProto::UINT8;
    case DType::kI16: return onnx::TensorProto::INT16;
    case DType::kI32: return onnx::TensorProto::INT32;
    case DType::kI64: return onnx::TensorProto::INT64;
    case DType::kBool: break;
  }
  return onnx::TensorProto::BOOL;
}

void WriteAttribute(const AttrValue& value, onnx::AttributeProto* proto) {
  switch (value.type) {
    case AttrType::kInt:
      proto->set_type(onnx::AttributeProto::INT);
      proto->set_i(value.ints[0]);
      break;
    case AttrType::kFloat:
      proto->set_type(onnx::AttributeProto::FLOAT);
      proto->set_f(static_cast<float>(value.floats[0]));
      break;
    case AttrType::kString:
      proto->set_type(onnx::AttributeProto::STRING);
      proto->set_s(value.text);
      break;
    case AttrType::kInts:
      proto->set_type(onnx::AttributeProto::INTS);
      for (int64_t v : value.ints) proto->add_ints(v);
      break;
    case AttrType::kFloats:
      proto->set_type(onnx::AttributeProto::FLOATS);
      for (double v : value.floats) proto->add_floats(static_cast<float>(v));
      break;
  }
}

bool IsPreset(const NodeName& name, std::string_view attribute) {
  for (const NodeName::Pair& preset : name.presets) {
    if (preset.first != nullptr && attribute == preset.first) return true;
  }
  return false;
}

// Sets the attributes that the node's name presets.
void ApplyPresets(const NodeName& name, RandomCall& call) {
  for (const NodeName::Pair& preset : name.presets) {
    if (preset.first == nullptr) continue;
    char* end = nullptr;
    const int64_t number = std::strtol(preset.second, &end, 10);
    const AttrValue value = *end == 0 ? AttrValue::Int(number) : AttrValue::String(preset.second);
    ASSERT_TRUE(polyop::SetAttribute(*call.op, call.params.get(), preset.first, value).ok());
  }
}

// `known`: 0 declares neither shape nor rank of the inputs, 1 the shapes, others the ranks.
onnx::ModelProto MakeModel(const RandomCall& call, const NodeName& name, uint32_t known) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  if (!name.domain().empty()) {
    onnx::OperatorSetIdProto* opset = model.add_opset_import();
    opset->set_domain(std::string(name.domain()));
    opset->set_version(1);
  }
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("random");
  onnx::NodeProto* node = graph->add_node();
  node->set_domain(std::string(name.domain()));
  node->set_op_type(std::string(name.op_type()));
  for (const AttrInfo& info : call.op->attributes) {
    const char* written = info.spec.name;
    if (IsPreset(name, written)) continue;
    for (const NodeName::Pair& rename : name.renames) {
      if (rename.first != nullptr && std::string_view(rename.first) == info.spec.name) written = rename.second;
    }
    const AttrValue value = info.get(info.spec, call.params.get());
    const bool empty = value.type == AttrType::kInts ? value.ints.empty() : value.floats.empty();
    if ((value.type == AttrType::kInts || value.type == AttrType::kFloats) && empty) continue;
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name(written);
    WriteAttribute(value, attribute);
  }
  size_t used = call.inputs.size();
  while (used > 0 && !call.inputs[used - 1].present()) --used;
  for (size_t i = 0; i < used; ++i) {
    const HostTensor& t = call.inputs[i];
    const std::string input = t.present() ? "in" + std::to_string(i) : "";
    node->add_input(input);
    if (!t.present()) continue;
    onnx::ValueInfoProto* value = graph->add_input();
    value->set_name(input);
    onnx::TypeProto::Tensor* type = value->mutable_type()->mutable_tensor_type();
    type->set_elem_type(ElementType(t.dtype()));
    if (known == 0) continue;
    type->mutable_shape();
    for (int d = 0; d < t.shape().rank(); ++d) {
      auto* dim = type->mutable_shape()->add_dim();
      known == 1 ? dim->set_dim_value(t.shape()[d]) : dim->set_dim_param("d" + std::to_string(i) + std::to_string(d));
    }
  }
  const Signature& signature = *call.op->signatures[0].signature;
  for (int o = 0; o < signature.num_outputs(); ++o) {
    if (signature.output(o).optional && !call.optional_outputs) continue;
    const std::string output = "out" + std::to_string(o);
    node->add_output(output);
    graph->add_output()->set_name(output);
  }
  return model;
}

Array ToArray(const HostTensor& t) {
  Array array{t.dtype(), {t.shape().begin(), t.shape().end()}, {}};
  const auto* bytes = t.data<uint8_t>();
  array.bytes.assign(bytes, bytes + static_cast<size_t>(t.size()) * SizeOf(t.dtype()));
  return array;
}

class RandomModels : public ::testing::TestWithParam<const Op*> {};

TEST_P(RandomModels, MatchDirectCalls) {
  using Clock = std::chrono::steady_clock;
  const uint32_t kCalls = testing::CallsEach(10);
  const Op& op = *GetParam();
  const auto end = Clock::now() + std::chrono::duration<double>(testing::SecondsEach(0));
  int accepted = 0, rejected = 0, without_ranks = 0;
  for (uint32_t seed = 0; seed < kCalls || Clock::now() < end; ++seed) {
    std::mt19937 rng(seed);
    const testing::Draw draw = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    // Three of four calls are valid, if a limited number of draws finds a valid one.
    RandomCall call =
        seed % 4 == 0 ? testing::MakeRandomCall(op, draw) : testing::MakeValidCall(op, draw, testing::CallKind{}, 100);
    const NodeName& name = op.nodes[draw(static_cast<uint32_t>(op.nodes.size()))];
    ApplyPresets(name, call);
    const uint32_t known = draw(3);
    std::vector<HostTensor> want;
    const Status direct = testing::RunOnce(call, &want);
    if (direct.message().find("larger than the test allows") != std::string::npos) continue;
    SCOPED_TRACE(Concat("seed ", seed, ", ", name.name, ": ", call.Text()));
    std::vector<Array> inputs, got;
    for (const HostTensor& t : call.inputs) {
      if (t.present()) inputs.push_back(ToArray(t));
    }
    SessionOptions options;
    options.threads = 1;
    options.model = MakeModel(call, name, known).SerializeAsString();
    std::string failure;
    try {
      got = Session("random.onnx", options).Run(inputs);
    } catch (const Failure& e) {
      failure = e.what();
      ASSERT_FALSE(failure.empty());
    }
    if (!direct.ok()) {
      ++rejected;
      EXPECT_FALSE(failure.empty()) << "a direct call fails with: " << direct.message();
      continue;
    }
    // Without ranks ONNX Runtime cannot infer the type of some outputs, and reports that.
    if (failure.find("must state the ranks") != std::string::npos) {
      ++without_ranks;
      continue;
    }
    ++accepted;
    ASSERT_EQ(failure, "");
    size_t next = 0;
    for (const HostTensor& t : want) {
      if (!t.present()) continue;
      ASSERT_LT(next, got.size());
      const Array expected = ToArray(t), &given = got[next++];
      EXPECT_EQ(given.dtype, expected.dtype);
      EXPECT_EQ(ShapeText(given.shape), ShapeText(expected.shape));
      EXPECT_TRUE(given.bytes == expected.bytes) << "an output differs";
    }
    if (HasFailure()) return;
  }
  std::printf("%d models ran, %d were rejected as the direct call is, %d lacked ranks\n", accepted, rejected,
              without_ranks);
  EXPECT_GE(accepted * 2, static_cast<int>(kCalls)) << "too few models are valid";
}

INSTANTIATE_TEST_SUITE_P(Operators, RandomModels, ::testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace polyop::cli
