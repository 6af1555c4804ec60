// SPDX-License-Identifier: Apache-2.0
// Shared by the patterns of greedy suppression in loops: the boxes, the rule of suppression, and the kernel.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/pattern.h"

namespace polyop {

inline constexpr const char* kUnknownRule = "its IoU threshold is not recognized";

/// How boxes suppress others.
struct SuppressionRule {
  double threshold = 0;
  int64_t offset = 0;          // added to widths and heights
  bool removes_empty = false;  // the second of two boxes without area is suppressed, because their IoU is NaN

  /// Adds it to the match's attributes and parameters.
  void AddTo(PatternMatch* match) const;
};

/// Returns true unless both extents are known, and different.
bool MayBeEqual(int64_t a, int64_t b);
/// Returns a number for an unknown extent, which several inputs of a match have.
int64_t SymbolOf(int64_t extent);
/// Returns "Less" for "Greater" and so on: the comparison with exchanged operands; "" for other types.
std::string_view Exchanged(std::string_view comparison);
/// Returns the inputs of a node, and what its subgraphs read.
std::vector<const GraphValue*> ReadBy(const GraphNode& node);
/// Returns the nodes and those of their subgraphs.
std::vector<const GraphNode*> WithInner(const std::vector<const GraphNode*>& nodes);
/// Returns the nodes between `inputs` and `outputs`; nothing if these depend on more than the inputs, constants and
/// sizes.
std::optional<std::vector<const GraphNode*>> NodesBetween(const std::vector<const GraphValue*>& inputs,
                                                          const std::vector<const GraphValue*>& outputs);

/// Returns the nearest tensor of `count` boxes that the loop reads, except those that `other` and sizes depend on; null
/// if there is none. Columns of a box are its corners, optionally followed by its score and class.
const GraphValue* BoxesOf(const GraphNode& loop, int64_t count, const GraphValue* other);
/// Returns the value before casts and reshapes.
const GraphValue* NumberItself(const GraphValue* value);
/// Returns true if the value is the number of boxes, for any number of boxes.
bool IsLength(const Graph& graph, const GraphValue* steps, int64_t count);
/// Returns the numbers that a loop compares counts with, except 0 and 1.
std::set<int64_t> ComparedLengths(const GraphNode& loop);
/// Returns true for the number of steps of a loop without a limit.
bool IsUnlimited(const GraphValue* steps);
/// Returns the first tensor that a Scan slices, and the number of its slices.
std::pair<const GraphValue*, int64_t> ScannedBy(const GraphNode& scan);

/// Returns the rule, from the only comparison of a quotient with a number; nothing if there is no such comparison.
std::optional<SuppressionRule> RuleOf(const std::vector<const GraphNode*>& nodes);

// ---- In sessions ----------------------------------------------------------------------------------------------------

/// Returns true for the types of boxes and scores that the kernel computes: f32, and f16 in f32 as ONNX Runtime's CPU
/// provider does.
bool IsSuppressed(std::optional<DType> dtype);
/// Returns the elements of an f32 or f16 tensor; those of f16 are converted into `memory`. As in an AnyTensor, inputs
/// are not written through it.
float* FloatsOf(const AnyTensor& tensor, std::vector<float>* memory);

/// The kernel of suppression.
class Suppression {
 public:
  /// Returns null if polyop has no kernel for these boxes.
  static std::unique_ptr<Suppression> Make(const PatternMatch& match, const GraphValue* boxes);

  /// Gives the indices of the kept boxes with scores above the threshold, by descending score. `order` selects some
  /// boxes; then scores are null, and the indices are positions in it.
  Status Run(const AnyTensor& boxes, float* scores, const std::vector<int64_t>& order, const Context* context,
             std::vector<int64_t>* kept) const;

 private:
  std::unique_ptr<StandardKernel> suppress_;
  float offset_ = 0;
  bool removes_empty_ = false;
};

/// Fills an input with random boxes, many of which overlap and some of which are equal. proper: no box is reversed or
/// without area. crowded: most boxes overlap.
void DrawBoxes(std::mt19937& random, const AnyTensor& boxes, bool proper = false, bool crowded = false);

}  // namespace polyop
