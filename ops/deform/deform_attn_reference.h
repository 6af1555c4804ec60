// SPDX-License-Identifier: Apache-2.0
// Deformable attention in double precision, sample by sample: for reference kernels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/deform/attn_levels.h"

namespace polyop::reference {

/// Adds to sum[d] `weight` times the bilinear sample at (y, x) of a level of head m of image n, padded with zeros.
inline void AddAttnSample(const Tensor<const double, 4>& value, int64_t n, int64_t m, const AttnLevel& level, double y,
                          double x, double weight, double* sum) {
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  if (level.height == 0 || level.width == 0) return;  // even a NaN weight adds nothing there
  if (!(x > -1 && x < static_cast<double>(level.width) && y > -1 && y < static_cast<double>(level.height))) return;
  const auto pixel = [&](int64_t row, int64_t column, int64_t d) {
    if (row < 0 || row >= level.height || column < 0 || column >= level.width) return 0.0;
    return value[((n * spatial + level.start + row * level.width + column) * heads + m) * depth + d];
  };
  const auto left = static_cast<int64_t>(std::floor(x)), top = static_cast<int64_t>(std::floor(y));
  const double dx = x - std::floor(x), dy = y - std::floor(y);
  for (int64_t d = 0; d < depth; ++d) {
    const double upper = (1 - dx) * pixel(top, left, d) + dx * pixel(top, left + 1, d);
    const double lower = (1 - dx) * pixel(top + 1, left, d) + dx * pixel(top + 1, left + 1, d);
    sum[d] += weight * ((1 - dy) * upper + dy * lower);
  }
}

/// The gradient of a sample with respect to its position, in pixels, and its weight.
struct AttnSampleGrad {
  double x = 0, y = 0, weight = 0;
};

/// Returns the gradients of AddAttnSample for the gradient `grad` [depth] of the sum, and adds those of the values to
/// `grad_value`, which has the layout of `value`, unless it is null.
inline AttnSampleGrad AddAttnSampleBackward(const Tensor<const double, 4>& value, int64_t n, int64_t m,
                                            const AttnLevel& level, double y, double x, double weight,
                                            const double* grad, double* grad_value) {
  const int64_t spatial = value.dim(1), heads = value.dim(2), depth = value.dim(3);
  AttnSampleGrad result;
  if (level.height == 0 || level.width == 0) return result;
  if (!(x > -1 && x < static_cast<double>(level.width) && y > -1 && y < static_cast<double>(level.height))) {
    return result;
  }
  const auto left = static_cast<int64_t>(std::floor(x)), top = static_cast<int64_t>(std::floor(y));
  const double dx = x - std::floor(x), dy = y - std::floor(y);
  for (int64_t row = std::max<int64_t>(top, 0); row <= std::min(top + 1, level.height - 1); ++row) {
    for (int64_t column = std::max<int64_t>(left, 0); column <= std::min(left + 1, level.width - 1); ++column) {
      const double in_row = row == top ? 1 - dy : dy, in_column = column == left ? 1 - dx : dx;
      const int64_t at = ((n * spatial + level.start + row * level.width + column) * heads + m) * depth;
      double dot = 0;
      for (int64_t d = 0; d < depth; ++d) {
        dot += grad[d] * value[at + d];
        const double share = weight * in_row * in_column;
        if (grad_value != nullptr && share != 0) grad_value[at + d] += share * grad[d];
      }
      result.weight += in_row * in_column * dot;
      result.x += weight * in_row * (column == left ? -dot : dot);
      result.y += weight * in_column * (row == top ? -dot : dot);
    }
  }
  return result;
}

/// Computes output[N, Q, M, D] with given weights [N, Q, M, L, P] at normalised locations: 0 to 1 across a level.
inline Status DeformAttnAtLocations(const Tensor<const double, 4>& value, const Tensor<const int64_t, 2>& shapes,
                                    const Tensor<const int64_t, 1>& starts, const Tensor<const double, 6>& locations,
                                    const Tensor<const double, 5>& weights, double* output) {
  const int64_t heads = value.dim(2), depth = value.dim(3), queries = locations.dim(1);
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points;
  std::vector<AttnLevel> levels(static_cast<size_t>(starts.dim(0)));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    double* const sum = output + pair * depth;
    for (int64_t d = 0; d < depth; ++d) sum[d] = 0;
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / points)];
      const int64_t at = pair * samples + s;
      const double x = locations[2 * at] * static_cast<double>(level.width) - 0.5;
      const double y = locations[2 * at + 1] * static_cast<double>(level.height) - 0.5;
      AddAttnSample(value, pair / heads / queries, pair % heads, level, y, x, weights[at], sum);
    }
  }
  return Status::Ok();
}

/// The gradients of DeformAttnAtLocations. Those that are not requested are null.
inline Status DeformAttnAtLocationsBackward(const double* grad_output, const Tensor<const double, 4>& value,
                                            const Tensor<const int64_t, 2>& shapes,
                                            const Tensor<const int64_t, 1>& starts,
                                            const Tensor<const double, 6>& locations,
                                            const Tensor<const double, 5>& weights, double* grad_value,
                                            double* grad_locations, double* grad_weights) {
  const int64_t heads = value.dim(2), depth = value.dim(3), queries = locations.dim(1);
  const int64_t points = locations.dim(4), samples = locations.dim(3) * points;
  std::vector<AttnLevel> levels(static_cast<size_t>(starts.dim(0)));
  POLYOP_RETURN_IF_ERROR(ReadLevels(shapes, starts, value.dim(1), levels.data()));
  if (grad_value != nullptr) std::fill_n(grad_value, value.size(), 0.0);
  for (int64_t pair = 0; pair < value.dim(0) * queries * heads; ++pair) {
    for (int64_t s = 0; s < samples; ++s) {
      const AttnLevel& level = levels[static_cast<size_t>(s / points)];
      const int64_t at = pair * samples + s;
      const double width = static_cast<double>(level.width), height = static_cast<double>(level.height);
      const double x = locations[2 * at] * width - 0.5, y = locations[2 * at + 1] * height - 0.5;
      const AttnSampleGrad grad = AddAttnSampleBackward(value, pair / heads / queries, pair % heads, level, y, x,
                                                        weights[at], grad_output + pair * depth, grad_value);
      if (grad_weights != nullptr) grad_weights[at] = grad.weight;
      if (grad_locations == nullptr) continue;
      grad_locations[2 * at] = grad.x * width;
      grad_locations[2 * at + 1] = grad.y * height;
    }
  }
  return Status::Ok();
}

/// Sets `weights` to the softmax of `samples` logits.
inline void AttnSoftmax(const double* logits, int64_t samples, std::vector<double>& weights) {
  double max_logit = -INFINITY, sum = 0;
  for (int64_t s = 0; s < samples; ++s) max_logit = std::fmax(max_logit, logits[s]);
  for (int64_t s = 0; s < samples; ++s) sum += std::exp(logits[s] - max_logit);
  weights.resize(static_cast<size_t>(samples));
  for (int64_t s = 0; s < samples; ++s) weights[static_cast<size_t>(s)] = std::exp(logits[s] - max_logit) / sum;
}

/// Changes the gradients of a softmax's results to those of its logits.
inline void AttnSoftmaxBackward(const std::vector<double>& weights, double* grad) {
  double mean = 0;
  for (size_t s = 0; s < weights.size(); ++s) mean += weights[s] * grad[s];
  for (size_t s = 0; s < weights.size(); ++s) grad[s] = weights[s] * (grad[s] - mean);
}

}  // namespace polyop::reference
