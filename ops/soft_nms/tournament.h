// The best of many scores that change one after the other.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace polyop {

/// A tree over places whose nodes name the better of two: of equal scores that of the lower index, and never one whose
/// score is NaN beside a number. A change costs a path towards the root, as far as it makes a difference there.
class Tournament {
 public:
  struct Node {
    float score;
    int32_t place;
  };

  static int64_t NodesFor(int64_t count) { return 2 * Leaves(count); }
  /// `nodes`: room for NodesFor(count). `index`, of each place, is read where scores are equal.
  Tournament(Node* nodes, const float* scores, const int32_t* index, int64_t count)
      : nodes_(nodes), index_(index), leaves_(Leaves(count)) {
    for (int64_t i = 0; i < leaves_; ++i) {
      nodes_[leaves_ + i] = i < count ? Node{scores[i], static_cast<int32_t>(i)} : Node{kGone, -1};
    }
    for (int64_t node = leaves_ - 1; node > 0; --node) nodes_[node] = Winner(node);
  }

  /// The best place; -1 if all scores are NaN.
  int64_t Best() const { return std::isnan(nodes_[1].score) ? -1 : nodes_[1].place; }

  void Set(int64_t place, float score) {
    int64_t node = leaves_ + place;
    nodes_[node].score = score;
    while ((node /= 2) > 0) {
      const Node before = nodes_[node];
      nodes_[node] = Winner(node);
      if (before.place != place && before.place == nodes_[node].place) return;
    }
  }

 private:
  static constexpr float kGone = std::numeric_limits<float>::quiet_NaN();

  static int64_t Leaves(int64_t count) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count < 2 ? 2 : count)));
  }
  Node Winner(int64_t node) const {
    const Node a = nodes_[2 * node], b = nodes_[2 * node + 1];
    if (a.score == b.score) return index_[a.place] < index_[b.place] ? a : b;
    return a.score > b.score || std::isnan(b.score) ? a : b;
  }

  Node* nodes_;
  const int32_t* index_;
  int64_t leaves_;
};

}  // namespace polyop
