// SPDX-License-Identifier: Apache-2.0
// Finds the points within balls on the GPU.
#pragma once

#include "ops/points/ball_rule.h"
#include "ops/points/tiles_cuda.h"

namespace polyop {

/// State of a tiled search (ops/points/tiles_cuda.h) for the first points within a ball.
struct BallState {
  float at[3];
  float reach;  // upper bound of the squared distance, in float, of points inside
  int64_t begin, count;
  int32_t* found;  // rows relative to the query's first one

  template <class T>
  POLYOP_HD void Start(const BallRule& rule, const T* centre, int64_t first_row) {
    for (int a = 0; a < 3; ++a) at[a] = ToFloat(centre[a]);
    reach = rule.max < 1e38 ? static_cast<float>(rule.max * (1 + 1e-6)) : INFINITY;
    begin = first_row;
    count = 0;
  }
  /// Appends the point's row, up to `max_points` rows.
  POLYOP_HD void Offer(const BallRule& rule, const float* point, int64_t row, int64_t max_points) {
    if (count == max_points || SurelyBeyond(at, point, reach) || !rule.Holds(SquaredDistance(at, point))) return;
    found[count++] = static_cast<int32_t>(row - begin);
  }
};

/// Finds indices as MMCV returns them: if there are fewer than `samples`, the first one is repeated. `clouds.Of(q)`
/// returns the range of a query's points.
template <class T, class Clouds>
struct RepeatingFirstSearch {
  using State = BallState;

  const T* centres;
  Clouds clouds;
  BallRule rule;
  int64_t samples;
  int32_t none;  // the first index if no point is inside
  int32_t* idx;

  POLYOP_HD PointRange Start(int64_t q, State& state) const {
    const PointRange range = clouds.Of(q);
    state.Start(rule, centres + 3 * q, range.begin);
    state.found = idx + q * samples;
    return range;
  }
  POLYOP_HD void Offer(State& state, const float* point, int64_t row) const { state.Offer(rule, point, row, samples); }
  POLYOP_HD void Finish(State& state, int64_t) const {
    const int32_t first = state.count > 0 ? state.found[0] : 0;
    for (int64_t k = state.count; k < samples; ++k) state.found[k] = first;
    if (state.count == 0) state.found[0] = none;
  }
};

/// Finds the same with one warp per query (ForTilesByWarp).
template <class T, class Clouds>
struct RepeatingFirstWarpSearch {
  using State = BallState;

  RepeatingFirstSearch<T, Clouds> search;

  POLYOP_DEVICE PointRange Start(int64_t q, State& state) const { return search.Start(q, state); }
  POLYOP_DEVICE void Offer(State& state, const float* points, int count, int64_t first_row) const {
    const uint32_t inside = Ballot([&](int lane) {
      const float* const point = points + 3 * lane;
      return lane < count && !SurelyBeyond(state.at, point, state.reach) &&
             search.rule.Holds(SquaredDistance(state.at, point));
    });
    ForLanes([&](int lane) {
      const int64_t at = state.count + PopCount(inside & ((uint32_t{1} << lane) - 1));
      if ((inside >> lane & 1) == 0 || at >= search.samples) return;
      state.found[at] = static_cast<int32_t>(first_row + lane - state.begin);
    });
    const int64_t found = state.count + PopCount(inside);
    state.count = found < search.samples ? found : search.samples;
  }
  POLYOP_DEVICE bool IsComplete(const State& state) const { return state.count == search.samples; }
  POLYOP_DEVICE void Finish(State& state, int64_t) const {
    const int32_t first = state.count > 0 ? state.found[0] : 0;
    ForLanes([&](int lane) {
      for (int64_t k = state.count + lane; k < search.samples; k += kWarpLanes) {
        state.found[k] = k == 0 ? search.none : first;
      }
    });
  }
};

}  // namespace polyop
