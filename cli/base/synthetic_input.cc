// SPDX-License-Identifier: Apache-2.0
#include "cli/base/synthetic_input.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <string_view>
#include <vector>

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

// Returns the number of columns of a role, or 1 for roles of single elements.
int64_t ColumnsOf(std::string_view role) {
  struct Columns {
    std::string_view role;
    int64_t count;
  };
  constexpr Columns kColumns[] = {{"boxes", 4},  {"rotated_boxes", 5}, {"boxes3d", 7},      {"quadrilaterals", 8},
                                  {"rois", 5},   {"rotated_rois", 6},  {"bezier_rois", 17}, {"batch_index", 1},
                                  {"points", 1}, {"decay_rates", 1},   {"step_sizes", 1}};
  for (const Columns& known : kColumns) {
    if (known.role == role) return known.count;
  }
  return 0;
}

// Draws rows of a role. Coordinates are below 64, a usual size of feature maps.
class RowDrawer {
 public:
  RowDrawer(std::mt19937& rng, int integer_bound) : rng_(rng), integer_bound_(integer_bound) {}

  std::vector<double> Draw(std::string_view role) {
    row_.clear();
    if (role == "rois" || role == "rotated_rois" || role == "bezier_rois" || role == "batch_index") AddIndex();
    if (role == "boxes" || role == "rois") AddBox();
    if (role == "rotated_boxes" || role == "rotated_rois") AddRotatedBox();
    if (role == "bezier_rois") Add(16, 0, 64);
    if (role == "points") Add(1, 0, 8);
    if (role == "decay_rates") Add(1, -4, 0);
    if (role == "step_sizes") Add(1, 0, 0.5);
    if (role == "boxes3d") {
      Add(3, 0, 8);
      Add(3, 1, 4);
      Add(1, -kPi, kPi);
    }
    if (role == "quadrilaterals") {
      AddBox();
      const double x1 = row_[0], y1 = row_[1], x2 = row_[2], y2 = row_[3];
      row_ = {x1, y1, x2, y1, x2, y2, x1, y2};
    }
    return row_;
  }

 private:
  static constexpr double kPi = 3.14159265358979323846;

  void Add(int count, double from, double to) {
    for (int i = 0; i < count; ++i) row_.push_back(from + (to - from) * static_cast<double>(rng_() >> 8) * 0x1p-24);
  }
  void AddIndex() { row_.push_back(static_cast<double>(rng_() % static_cast<uint32_t>(integer_bound_))); }
  void AddBox() {
    Add(2, 0, 32);
    const double x = row_[row_.size() - 2], y = row_[row_.size() - 1];
    Add(1, x + 1, x + 33);
    Add(1, y + 1, y + 33);
  }
  void AddRotatedBox() {
    Add(2, 16, 48);
    Add(2, 1, 33);
    Add(1, -kPi / 2, kPi / 2);
  }

  std::mt19937& rng_;
  int integer_bound_;
  std::vector<double> row_;
};

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
  std::mt19937 rng(SeedOf(name));
  const std::string role = RoleOf(model, name);
  const int64_t columns = ColumnsOf(role);
  const int64_t last = array->shape.empty() ? 1 : array->shape.back();
  if (columns > 0 && (columns == 1 || columns == last)) {
    RowDrawer drawer(rng, integer_bound);
    for (int64_t i = 0; i < count; i += columns) {
      const std::vector<double> row = drawer.Draw(role);
      for (int64_t c = 0; c < columns; ++c) array->set(i + c, row[static_cast<size_t>(c)]);
    }
    const bool has_indices = role == "batch_index" || role.find("rois") != std::string::npos;
    return {"random " + role, has_indices};
  }
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
