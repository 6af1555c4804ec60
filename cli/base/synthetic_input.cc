// SPDX-License-Identifier: Apache-2.0
#include "cli/base/synthetic_input.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <vector>

#include "adapters/synthetic_rows.h"
#include "cli/base/model.h"
#include "cli/base/operators.h"
#include "core/elements.h"

namespace polyop::cli {
namespace {

// Inputs of ONNX's operators whose values decide a shape or name an axis, and a value that the node accepts: sizes and
// counts of 1, axis 0, no padding, a Reshape that keeps the extents of its input.
struct ShapeInput {
  std::string_view type;
  int input;
  double value;
};
constexpr ShapeInput kShapeInputs[] = {
    {"ConstantOfShape", 0, 1},
    {"CumSum", 1, 0},
    {"Expand", 1, 1},
    {"Loop", 0, 1},
    {"NonMaxSuppression", 2, 1},
    {"OneHot", 1, 4},
    {"Pad", 1, 0},
    {"Pad", 3, 0},
    {"Range", 0, 0},
    {"Range", 1, 1},
    {"Range", 2, 1},
    {"ReduceL1", 1, 0},
    {"ReduceL2", 1, 0},
    {"ReduceMax", 1, 0},
    {"ReduceMean", 1, 0},
    {"ReduceMin", 1, 0},
    {"ReduceProd", 1, 0},
    {"ReduceSum", 1, 0},
    {"Reshape", 1, 0},
    {"Resize", 2, 1},
    {"Resize", 3, 1},
    {"Slice", 1, 0},
    {"Slice", 2, 1},
    {"Slice", 3, 0},
    {"Slice", 4, 1},
    {"Squeeze", 1, 0},
    {"Tile", 1, 1},
    {"TopK", 1, 1},
    {"Unsqueeze", 1, 0},
    {"Upsample", 1, 1},
};

// Returns the value for an input of a node that decides a shape, or nullopt for other inputs.
std::optional<double> ShapeValue(const onnx::NodeProto& node, int input) {
  if (IsStandard(node)) {
    for (const ShapeInput& s : kShapeInputs) {
      if (s.input == input && node.op_type() == s.type) return s.value;
    }
    return std::nullopt;
  }
  const OperatorInfo* op = ResolveNode(node);
  if (op == nullptr) return std::nullopt;
  const std::vector<int>& deciding = op->deciding_inputs;
  const bool decides = std::find(deciding.begin(), deciding.end(), input) != deciding.end();
  return decides ? std::optional<double>(1) : std::nullopt;
}

std::optional<double> ShapeValue(const onnx::ModelProto& model, const std::string& name) {
  std::optional<double> found;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    for (int i = 0; i < node.input_size() && !found; ++i) {
      if (node.input(i) == name) found = ShapeValue(node, i);
    }
  });
  return found;
}

// Returns the role of an input of a node, as core/input_role.h states it, or "".
std::string RoleOf(const onnx::NodeProto& node, int input) {
  if (const OperatorInfo* op = ResolveNode(node)) {
    const auto last = static_cast<int>(op->input_roles.size()) - 1;
    return last < 0 ? "" : op->input_roles[static_cast<size_t>(std::min(input, last))];
  }
  if (!IsStandardDomain(node.domain())) return "";
  if (node.op_type() == "RoiAlign") return input == 1 ? "boxes" : input == 2 ? "batch_index" : "";
  if (node.op_type() == "NonMaxSuppression") return input == 0 ? "boxes" : input == 1 ? "probability" : "";
  return "";
}

// Returns true if the node passes the elements of its first input on.
bool PassesOn(const onnx::NodeProto& node) {
  constexpr std::string_view kTypes[] = {"Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"};
  return IsStandardDomain(node.domain()) && node.output_size() == 1 &&
         std::find(std::begin(kTypes), std::end(kTypes), node.op_type()) != std::end(kTypes);
}

// Returns the role that the first node that has one gives a tensor. Visits nodes in the model's order, in which the
// reader of a tensor follows its producer.
std::string RoleOf(const onnx::ModelProto& model, const std::string& name) {
  std::set<std::string> same = {name};
  std::string role;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    for (int i = 0; i < node.input_size() && role.empty(); ++i) {
      if (!same.contains(node.input(i))) continue;
      role = RoleOf(node, i);
      if (i == 0 && PassesOn(node)) same.insert(node.output(0));
    }
  });
  return role;
}

// Returns the FNV-1a hash, which is the same on every machine, unlike std::hash.
uint32_t SeedOf(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace

SyntheticInput FillSyntheticInput(const onnx::ModelProto& model, const std::string& name, int integer_bound,
                                  Array* array) {
  const int64_t count = array->size();
  if (const std::optional<double> value = ShapeValue(model, name)) {
    for (int64_t i = 0; i < count; ++i) array->set(i, *value);
    return {"all " + std::to_string(static_cast<int>(*value)), false};
  }
  const std::string role = RoleOf(model, name);
  const int columns = polyop_draw_rows(role.c_str(), 0, integer_bound, 0, nullptr);
  const int64_t last = array->shape.empty() ? 1 : array->shape.back();
  if (columns == 1 || (columns > 0 && columns == last)) {
    std::vector<double> values(static_cast<size_t>(count));
    polyop_draw_rows(role.c_str(), count / columns, integer_bound, SeedOf(name), values.data());
    for (int64_t i = 0; i < count; ++i) array->set(i, values[static_cast<size_t>(i)]);
    const bool has_indices = role == "batch_index" || role.find("rois") != std::string::npos;
    return {"random " + role, has_indices};
  }
  std::mt19937 rng(SeedOf(name));
  if (IsReal(array->dtype)) {
    for (int64_t i = 0; i < count; ++i) array->set(i, static_cast<double>(rng() >> 8) * 0x1p-24);
    return {"random", false};
  }
  if (array->dtype == DType::kBool) {
    for (int64_t i = 0; i < count; ++i) array->set(i, static_cast<double>(rng() >> 31));
    return {"random", false};
  }
  const bool bytes = array->dtype == DType::kU8 && integer_bound == kIntegerBound;  // usually an image
  const auto bound = static_cast<uint32_t>(bytes ? 256 : integer_bound);
  for (int64_t i = 0; i < count; ++i) array->set(i, static_cast<double>(rng() % bound));
  return {bound == 1 ? "zeros" : "random 0 to " + std::to_string(bound - 1), true};
}

}  // namespace polyop::cli
