// A bound on scratch memory that would grow with the number of images.
#pragma once

#include <algorithm>
#include <cstdint>

namespace polyop {

/// Returns how many of `count` items, each of which needs `bytes` of scratch memory, are processed together: as many as
/// kBytes hold, but at least one.
constexpr int64_t ItemsAtOnce(int64_t count, int64_t bytes) {
  constexpr int64_t kBytes = int64_t{64} << 20;
  return std::min(count, std::max<int64_t>(kBytes / std::max<int64_t>(bytes, 1), 1));
}

}  // namespace polyop
