// SPDX-License-Identifier: Apache-2.0
// The operators whose CUDA kernels add up numbers in the order in which threads arrive.
#pragma once

#include <string_view>

namespace polyop {

/// Marks an operator whose CUDA kernels add floats atomically: the last bits of its sums differ from run to run. Only
/// static objects are created, next to the registration of the kernels (kernels/cuda/atomic_add.h). They form a list in
/// this library, which needs no memory and is constant after static initialisation.
class SumsInThreadOrder {
 public:
  explicit SumsInThreadOrder(std::string_view op) : op_(op), next_(first_) { first_ = this; }
  SumsInThreadOrder(const SumsInThreadOrder&) = delete;
  SumsInThreadOrder& operator=(const SumsInThreadOrder&) = delete;

  /// Returns true if the operator of this name is marked.
  static bool Marks(std::string_view op) {
    for (const SumsInThreadOrder* mark = first_; mark != nullptr; mark = mark->next_) {
      if (mark->op_ == op) return true;
    }
    return false;
  }

 private:
  static inline constinit const SumsInThreadOrder* first_ = nullptr;

  const std::string_view op_;
  const SumsInThreadOrder* const next_;
};

}  // namespace polyop
