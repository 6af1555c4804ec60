// SPDX-License-Identifier: Apache-2.0
// Region growing on the CPU: labels of pixels spread to their neighbours in breadth-first order.
#pragma once

#include "ops/text/image_grid.h"

namespace polyop {

/// The queue of pixels whose labels may spread, in the order in which they were labelled.
class RegionGrowing {
 public:
  /// Labels below 1 mean no label. `queue` has room for all pixels.
  RegionGrowing(const ImageGrid& grid, int32_t* labels, int32_t* queue) : grid_(grid), labels_(labels), queue_(queue) {}

  void Add(int64_t pixel) { queue_[count_++] = static_cast<int32_t>(pixel); }

  /// Spreads the labels of queued pixels breadth first to unlabelled neighbours for which enters(pixel, label) is true,
  /// until nothing changes. Pixels that labelled no neighbour stay in the queue for the next call.
  template <class Enters>
  void Spread(const Enters& enters) {
    int64_t stay = 0, count = count_;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t pixel = queue_[i], before = count;
      const int32_t label = labels_[pixel];
      grid_.ForEachNeighbour(pixel, [&](int64_t neighbour) __attribute__((always_inline)) {
        if (labels_[neighbour] > 0 || !enters(neighbour, label)) return;
        labels_[neighbour] = label;
        queue_[count++] = static_cast<int32_t>(neighbour);
      });
      if (count == before) queue_[stay++] = static_cast<int32_t>(pixel);
    }
    count_ = stay;
  }

 private:
  const ImageGrid grid_;
  int32_t* const labels_;
  int32_t* const queue_;
  int64_t count_ = 0;
};

}  // namespace polyop
