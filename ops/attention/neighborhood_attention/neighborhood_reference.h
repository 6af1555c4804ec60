// SPDX-License-Identifier: Apache-2.0
// The windows of neighborhood attention, found by comparing positions, and the softmax over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/attention/neighborhood_attention/neighborhood_attention.h"

namespace polyop::reference {

class Windows {
 public:
  Windows(const NeighborhoodAttention& op, const Shape& shape) : shape_(shape) {
    for (int i = 0; i < shape.rank() - 3; ++i) {
      const auto of = [&](const List<int64_t, 3>& list) { return list[list.size() == 1 ? 0 : i]; };
      axes_.push_back({shape[1 + i], of(op.kernel_size), of(op.dilation), of(op.is_causal)});
    }
    scale_ = op.scale > 0 ? op.scale : 1 / std::sqrt(std::max(1.0, static_cast<double>(shape[shape.rank() - 1])));
  }

  /// Returns the rows of keys that row `q` of the queries [batch, ...S, heads] attends to.
  std::vector<int64_t> KeysOf(int64_t q) const {
    const int64_t heads = shape_[shape_.rank() - 2], head = q % heads;
    int64_t position = q / heads;
    std::vector<int64_t> at(axes_.size());
    for (size_t i = axes_.size(); i-- > 0; position /= axes_[i].extent) at[i] = position % axes_[i].extent;
    std::vector<int64_t> rows = {position};  // the batch entry
    for (size_t i = 0; i < axes_.size(); ++i) {
      std::vector<int64_t> next;
      for (const int64_t row : rows) {
        for (const int64_t near : Near(axes_[i], at[i])) next.push_back(row * axes_[i].extent + near);
      }
      rows = next;
    }
    for (int64_t& row : rows) row = row * heads + head;
    return rows;
  }

  std::vector<double> Weights(const double* query, const double* key, const std::vector<int64_t>& keys,
                              int64_t depth) const {
    std::vector<double> weights;
    double most = -INFINITY, sum = 0;
    for (const int64_t row : keys) {
      double product = 0;
      for (int64_t c = 0; c < depth; ++c) product += query[c] * key[row * depth + c];
      weights.push_back(product * scale_);
      most = std::isnan(product) || product * scale_ > most ? product * scale_ : most;
    }
    for (double& weight : weights) sum += weight = std::exp(weight - most);
    for (double& weight : weights) weight /= sum;
    return weights;
  }

  double scale() const { return scale_; }

 private:
  struct Axis {
    int64_t extent, kernel, dilation, causal;
  };

  // Returns the positions that a position attends to, out of those at multiples of the dilation from it.
  static std::vector<int64_t> Near(const Axis& axis, int64_t position) {
    std::vector<int64_t> group;
    size_t own = 0;
    for (int64_t i = position % axis.dilation; i < axis.extent; i += axis.dilation) {
      if (i == position) own = group.size();
      group.push_back(i);
    }
    const size_t kernel = static_cast<size_t>(axis.kernel);
    if (axis.causal != 0) {
      group.resize(own + 1);
      if (group.size() > kernel) group.erase(group.begin(), group.end() - axis.kernel);
      return group;
    }
    const size_t half = kernel / 2, first = own < half ? 0 : std::min(own - half, group.size() - kernel);
    return {group.begin() + static_cast<int64_t>(first), group.begin() + static_cast<int64_t>(first + kernel)};
  }

  Shape shape_;
  std::vector<Axis> axes_;
  double scale_;
};

}  // namespace polyop::reference
