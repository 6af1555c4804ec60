// Labels of pixels that spread to their neighbours, on the CPU.
#pragma once

#include "families/labels/picture_grid.h"

namespace polyop {

/// The pixels whose labels may spread, in the order in which they got them.
class GrowingLabels {
 public:
  /// A pixel without a label has one below 1. `queue` has a place for each pixel.
  GrowingLabels(const PictureGrid& grid, int32_t* labels, int32_t* queue)
      : grid_(grid), labels_(labels), queue_(queue) {}

  void Add(int64_t pixel) { queue_[count_++] = static_cast<int32_t>(pixel); }

  /// Gives each pixel's label, first come first served, to its neighbours without one that enters(pixel, label) lets
  /// in, and theirs to theirs, until none is left. Pixels that gave theirs to nobody may spread another time.
  template <class Enters>
  void Spread(const Enters& enters) {
    int64_t stay = 0, count = count_;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pixel = queue_[i], before = count;
      const int32_t label = labels_[pixel];
      grid_.ForEachBeside(pixel, [&](int64_t neighbour) __attribute__((always_inline)) {
        if (labels_[neighbour] > 0 || !enters(neighbour, label)) return;
        labels_[neighbour] = label;
        queue_[count++] = static_cast<int32_t>(neighbour);
      });
      if (count == before) queue_[stay++] = static_cast<int32_t>(pixel);
    }
    count_ = stay;
  }

 private:
  const PictureGrid grid_;
  int32_t* const labels_;
  int32_t* const queue_;
  int64_t count_ = 0;
};

}  // namespace polyop
