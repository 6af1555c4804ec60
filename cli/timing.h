// SPDX-License-Identifier: Apache-2.0
// Times of runs.
#pragma once

#include <chrono>
#include <vector>

namespace polyop::cli {

/// How often a model runs.
struct Timing {
  int warmup = 0;      // runs before those that are timed
  int repeat = 1;      // timed runs, at least
  double seconds = 0;  // further runs until their times have this sum
};

/// Returns the seconds since `start`.
double SecondsSince(std::chrono::steady_clock::time_point start);

/// Returns the least of the ascending times that `percent` % of the times do not exceed. Requires: not empty.
double Percentile(const std::vector<double>& ascending, double percent);

/// Calls `run`, which runs the model, and returns the seconds of every timed run, in order.
template <class Function>
std::vector<double> TimeRuns(const Timing& timing, const Function& run) {
  for (int i = 0; i < timing.warmup; ++i) run();
  std::vector<double> seconds;
  for (double sum = 0; static_cast<int>(seconds.size()) < timing.repeat || sum < timing.seconds;) {
    const auto start = std::chrono::steady_clock::now();
    run();
    seconds.push_back(SecondsSince(start));
    sum += seconds.back();
  }
  return seconds;
}

}  // namespace polyop::cli
