// SPDX-License-Identifier: Apache-2.0
#include "cli/timing.h"

#include <algorithm>
#include <cmath>

namespace polyop::cli {

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double Percentile(const std::vector<double>& ascending, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(ascending.size()));
  return ascending[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace polyop::cli
