// SPDX-License-Identifier: Apache-2.0
// The maximum of many scores that change one at a time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace polyop {

/// A tournament tree over slots: each node holds the better of its two children. Among equal scores that is the one of
/// the lower index, and a NaN never wins against a number. Set() updates the path towards the root until it no longer
/// changes.
class Tournament {
 public:
  struct Node {
    float score;
    int32_t slot;
  };

  static int64_t NodesFor(int64_t count) { return 2 * Leaves(count); }
  /// Requires: `nodes` has space for NodesFor(count) nodes. `index[slot]` breaks ties between equal scores.
  Tournament(Node* nodes, const float* scores, const int32_t* index, int64_t count)
      : nodes_(nodes), index_(index), leaves_(Leaves(count)) {
    for (int64_t i = 0; i < leaves_; ++i) {
      nodes_[leaves_ + i] = i < count ? Node{scores[i], static_cast<int32_t>(i)} : Node{kRemoved, -1};
    }
    for (int64_t node = leaves_ - 1; node > 0; --node) nodes_[node] = Winner(node);
  }

  /// Returns the slot of the best score; -1 if all scores are NaN.
  int64_t Best() const { return std::isnan(nodes_[1].score) ? -1 : nodes_[1].slot; }

  void Set(int64_t slot, float score) {
    int64_t node = leaves_ + slot;
    nodes_[node].score = score;
    while ((node /= 2) > 0) {
      const Node before = nodes_[node];
      nodes_[node] = Winner(node);
      if (before.slot != slot && before.slot == nodes_[node].slot) return;
    }
  }

 private:
  static constexpr float kRemoved = std::numeric_limits<float>::quiet_NaN();

  static int64_t Leaves(int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count < 2 ? 2 : count)));
  }
  Node Winner(int64_t node) const {
    const Node a = nodes_[2 * node], b = nodes_[2 * node + 1];
    if (a.score == b.score) return index_[a.slot] < index_[b.slot] ? a : b;
    return a.score > b.score || std::isnan(b.score) ? a : b;
  }

  Node* nodes_;
  const int32_t* index_;
  int64_t leaves_;
};

}  // namespace polyop
