// SPDX-License-Identifier: Apache-2.0
// Extents that follow from integers which the graph computes from shapes, as exporters write them for dynamic sizes:
// Reshape(x, Concat(Shape(x)[0], 4, -1)). Runtimes know only those that they can fold.
#include <algorithm>
#include <utility>

#include "core/pattern.h"

namespace polyop {
namespace {

using Integers = std::vector<int64_t>;  // negative ones are unknown, and equal if they are below kUnknownExtent

class Extents {
 public:
  void Add(const GraphNode& node) {
    AddElements(node);
    AddShapes(node);
  }

 private:
  // Returns the elements of a vector or a scalar of integers.
  static std::optional<Integers> Elements(const GraphValue* value) {
    if (value == nullptr || value->rank() > 1) return std::nullopt;
    if (value->integers.has_value()) return value->integers;
    if (value->known.dtype != DType::kI64 || value->known.constant == nullptr) return std::nullopt;
    return value->known.Values<int64_t>();
  }

  static void Know(const GraphValue* value, Integers elements) {
    const_cast<GraphValue*>(value)->integers = std::move(elements);
  }

  static void Set(const GraphValue* value, const Shape& shape) {
    if (value == nullptr || shape.too_long()) return;
    std::optional<Shape>& known = const_cast<GraphValue*>(value)->known.shape;
    if (known.has_value() && known->rank() != shape.rank()) return;
    if (!known.has_value()) known = shape;
    for (int d = 0; d < shape.rank(); ++d) {
      // A name that the runtime made up for one tensor says less than one that several have.
      if ((*known)[d] < 0 && shape[d] != kUnknownExtent) (*known)[d] = shape[d];
    }
  }

  void AddElements(const GraphNode& node) {
    const GraphValue* const output = node.outputs.empty() ? nullptr : node.outputs[0];
    if (node.type == "Shape" && node.input(0) != nullptr && node.input(0)->shape() != nullptr) {
      const auto shape = node.input(0)->shape()->span();
      const auto rank = static_cast<int64_t>(shape.size());
      const auto position = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
      const int64_t first = position(node.Int("start", 0)), end = position(node.Int("end", rank));
      if (first <= end) Know(output, Integers(shape.begin() + first, shape.begin() + end));
      return;
    }
    if (node.type == "Size" && node.input(0) != nullptr && node.input(0)->rank() == 1) {
      return Know(output, {(*node.input(0)->shape())[0]});
    }
    if (node.Is({"Cast", "Identity", "Unsqueeze", "Squeeze"})) {
      if (const auto same = Elements(node.input(0))) Know(output, *same);
      return;
    }
    if (node.type == "Concat") {
      Integers all;
      for (const GraphValue* const part : node.inputs) {
        const auto elements = Elements(part);
        if (!elements.has_value()) return;
        all.insert(all.end(), elements->begin(), elements->end());
      }
      Know(output, all);
      return;
    }
    if (!node.Is({"Gather", "Slice", "Mul"})) return;
    const auto elements = Elements(node.input(0)), other = Elements(node.input(1));
    if (!elements.has_value() || !other.has_value()) return;
    const auto count = static_cast<int64_t>(elements->size());
    Integers chosen;
    if (node.type == "Gather") {
      for (const int64_t index : *other) {
        const int64_t i = index < 0 ? index + count : index;
        if (i < 0 || i >= count) return;
        chosen.push_back((*elements)[static_cast<size_t>(i)]);
      }
    } else if (node.type == "Slice") {
      const auto ends = Elements(node.input(2)), steps = Elements(node.input(4));
      if (!ends.has_value() || other->size() != 1 || ends->size() != 1 ||
          (node.input(4) != nullptr && steps != Integers{1}))
        return;
      const auto position = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + count : i, 0, count); };
      for (int64_t i = position((*other)[0]); i < position((*ends)[0]); ++i)
        chosen.push_back((*elements)[static_cast<size_t>(i)]);
    } else if (elements->size() == 1 && other->size() == 1) {
      const int64_t a = (*elements)[0], b = (*other)[0];
      chosen = {a == 1 ? b : b == 1 ? a : a >= 0 && b >= 0 ? a * b : kUnknownExtent};
    } else {
      return;
    }
    Know(output, chosen);
  }

  void AddShapes(const GraphNode& node) const {
    const Shape* const shape = node.input(0) != nullptr ? node.input(0)->shape() : nullptr;
    if (shape == nullptr || node.outputs.empty()) return;
    Shape result;
    if (node.type == "Reshape") {
      const auto target = Elements(node.input(1));
      if (!target.has_value() || node.Int("allowzero", 0) != 0) return;
      for (size_t d = 0; d < target->size(); ++d) {
        const int64_t extent = (*target)[d];
        result.push_back(extent == 0 && static_cast<int>(d) < shape->rank() ? (*shape)[static_cast<int>(d)] : extent);
      }
      Balance(*shape, &result);
    } else if (node.type == "ConstantOfShape") {
      const auto target = Elements(node.input(0));
      if (!target.has_value()) return;
      for (const int64_t extent : *target) result.push_back(extent);
    } else if (node.type == "Transpose") {
      AttrValue perm;
      if (!node.attributes->Get("perm", &perm) || perm.ints.size() != static_cast<size_t>(shape->rank())) return;
      for (const int64_t d : perm.ints) result.push_back((*shape)[static_cast<int>(d)]);
    } else if (node.type == "GridSample") {
      const Shape* const grid = node.input(1) != nullptr ? node.input(1)->shape() : nullptr;
      if (grid == nullptr || grid->rank() != 4 || shape->rank() != 4) return;
      result = {(*shape)[0], (*shape)[1], (*grid)[1], (*grid)[2]};
    } else {
      return;
    }
    Set(node.outputs[0], result);
  }

  // Computes the one unknown extent of a reshaped tensor, if the others are known up to those that both shapes have.
  static void Balance(const Shape& from, Shape* to) {
    Integers open(from.begin(), from.end());
    int unknown = -1;
    int64_t product = 1, rest = 1;
    for (int d = 0; d < to->rank(); ++d) {
      const auto same = std::find(open.begin(), open.end(), (*to)[d]);
      if ((*to)[d] >= 0) {
        product *= (*to)[d];
      } else if ((*to)[d] < kUnknownExtent && same != open.end()) {
        open.erase(same);
      } else if (unknown < 0) {
        unknown = d;
      } else {
        return;
      }
    }
    if (unknown < 0 || product == 0) return;
    for (const int64_t extent : open) {
      if (extent < 0) return;
      rest *= extent;
    }
    if (rest % product == 0) (*to)[unknown] = rest / product;
  }
};

}  // namespace

void FindExtents(Graph* graph) {
  Extents extents;
  for (const GraphNode& node : graph->nodes) extents.Add(node);
}

}  // namespace polyop
