// SPDX-License-Identifier: Apache-2.0
// The levels of deformable attention's samples, on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/context.h"
#include "ops/deform/attn_levels.h"

namespace polyop {

/// The level of each sample of a query and head, as a structure of arrays for vectors of samples. All levels have the
/// same number of samples; those of a level are consecutive.
class SampleLevels {
 public:
  SampleLevels(const Context& context, int64_t levels, int64_t points)
      : points_(points),
        samples_(levels * points),
        levels_(context.Allocate<AttnLevel>(levels)),
        numbers_(context.Allocate<int32_t>(3 * pitch())) {}

  /// Reads 'spatial_shapes' and, if given, 'level_start_index': the arguments of ReadLevels. Returns an error if memory
  /// is exhausted.
  template <class... Tensors>
  Status Read(int64_t spatial, const Tensors&... tensors) const {
    if (!levels_ || !numbers_) return Internal("out of memory: ", levels_.size(), " levels");
    POLYOP_RETURN_IF_ERROR(ReadLevels(tensors..., spatial, levels_.data()));
    Spread();
    return Status::Ok();
  }
  /// Puts all samples into one level. Requires: it fits.
  Status Set(const AttnLevel& level) const {
    if (!levels_ || !numbers_) return Internal("out of memory: ", samples_, " samples");
    levels_[0] = level;
    Spread();
    return Status::Ok();
  }

  int64_t samples() const { return samples_; }
  /// Extents and first pixel of each sample's level. Padded by a vector of samples of a level without pixels.
  const int32_t* heights() const { return numbers_.data(); }
  const int32_t* widths() const { return numbers_.data() + pitch(); }
  const int32_t* starts() const { return numbers_.data() + 2 * pitch(); }

 private:
  static constexpr int64_t kMaxLanes = 16;
  int64_t pitch() const { return samples_ + kMaxLanes; }

  void Spread() const {
    std::fill_n(numbers_.data(), numbers_.size(), 0);
    for (int64_t s = 0; s < samples_; ++s) {
      const AttnLevel& level = levels_[s / points_];
      if (level.height == 0 || level.width == 0) continue;  // the other extent may exceed int32_t
      numbers_[s] = static_cast<int32_t>(level.height);
      numbers_[s + pitch()] = static_cast<int32_t>(level.width);
      numbers_[s + 2 * pitch()] = static_cast<int32_t>(level.start);
    }
  }

  const int64_t points_, samples_;
  const Scratch<AttnLevel> levels_;
  const Scratch<int32_t> numbers_;
};

}  // namespace polyop
