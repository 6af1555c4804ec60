// SPDX-License-Identifier: Apache-2.0
// Groups of images, or of other items, that share scratch memory whose size would grow with their number.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyop {

/// `count` items, each of which needs some scratch memory. As many are processed together as kBytes hold, but at least
/// one.
class ItemGroups {
 public:
  static constexpr double kBytes = 64 << 20;

  /// `bytes_each` is a double, because without items the extents of one may overflow an integer.
  ItemGroups(int64_t count, double bytes_each)
      : count_(count), size_(std::max<int64_t>(static_cast<int64_t>(kBytes / std::max(bytes_each, 1.0)), 1)) {}

  /// Returns the number of items of a group; the last one may have fewer.
  int64_t at_once() const { return std::min(count_, size_); }
  /// Calls body(first, size) for each group.
  template <class Body>
  void ForEach(const Body& body) const {
    for (int64_t first = 0; first < count_; first += size_) body(first, std::min(size_, count_ - first));
  }

 private:
  int64_t count_, size_;
};

}  // namespace polyop
