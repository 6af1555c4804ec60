#include "kernels/cuda/cuda.h"
#include "ops/knn_query/knn_query.h"

namespace polyop {
namespace {

constexpr float kNoDistance = 1e5f;
constexpr int kTile = 512;     // points that a block holds at a time
constexpr int kQueries = 128;  // of a block

// Each product and sum rounds by itself, as on the CPU.
POLYOP_HD double Squared(const float* a, const float* b) {
  const double x = static_cast<double>(a[0]) - static_cast<double>(b[0]);
  const double y = static_cast<double>(a[1]) - static_cast<double>(b[1]);
  const double z = static_cast<double>(a[2]) - static_cast<double>(b[2]);
  return x * x + y * y + z * z;
}

// The nearest points of one query so far: a heap with the farthest on top, of points at equal distance the one with the
// higher number. Element h of query q is at h * stride, so that neighbouring threads use neighbouring memory.
struct Nearest {
  double* squared;
  int32_t* index;
  int64_t stride;
  int64_t size = 0;

  POLYOP_HD bool Farther(int64_t a, int64_t b) const {
    const double da = squared[a * stride], db = squared[b * stride];
    return da > db || (da == db && index[a * stride] > index[b * stride]);
  }
  POLYOP_HD void Swap(int64_t a, int64_t b) const {
    const double d = squared[a * stride];
    const int32_t i = index[a * stride];
    squared[a * stride] = squared[b * stride];
    index[a * stride] = index[b * stride];
    squared[b * stride] = d;
    index[b * stride] = i;
  }
  POLYOP_HD void SiftDown(int64_t count) const {
    for (int64_t at = 0, child = 1; child < count; at = child, child = 2 * at + 1) {
      if (child + 1 < count && Farther(child + 1, child)) ++child;
      if (!Farther(child, at)) return;
      Swap(child, at);
    }
  }
  // Points come by rising number.
  POLYOP_HD void Offer(double distance, int32_t point, int64_t most) {
    if (size == most) {
      if (!(distance < squared[0])) return;
      squared[0] = distance;
      index[0] = point;
      return SiftDown(size);
    }
    int64_t at = size++;
    squared[at * stride] = distance;
    index[at * stride] = point;
    for (; at > 0 && Farther(at, (at - 1) / 2); at = (at - 1) / 2) Swap(at, (at - 1) / 2);
  }
  // Nearest first; afterwards it is no heap.
  POLYOP_HD void Sort() const {
    for (int64_t last = size - 1; last > 0; --last) {
      Swap(0, last);
      SiftDown(last);
    }
  }
};

// A query and what is left to search for it.
struct Query {
  float at[3];
  int64_t begin, end;  // rows of xyz
  Nearest nearest;
  float reach;  // a point at a greater squared distance in float is surely not among the nearest
};

// The end of a segment, forced between `before` and `total`: what the CPU refuses reads nothing outside here.
template <class I>
POLYOP_HD int64_t EndOf(const I* ends, int64_t segment, int64_t before, int64_t total) {
  const int64_t end = static_cast<int64_t>(ends[segment]);
  return end < before ? before : end > total ? total : end;
}

// Every query is compared with every point of its cloud, tile by tile through shared memory; in float first, in double
// where that could matter.
template <class K, class I, class J>
Status KnnQueryCuda(const KnnQuery&, const CudaContext& cuda, Tensor<const K, 0>, Tensor<const float, 2> xyz,
                    Tensor<const I, 1> offset, std::optional<Tensor<const float, 2>> new_xyz,
                    std::optional<Tensor<const J, 1>> new_offset, Tensor<int32_t, 2> idx, Tensor<float, 2> dist) {
  const int64_t points = xyz.dim(0), segments = offset.dim(0), queries = idx.dim(0), samples = idx.dim(1);
  const float *from = xyz.data(), *query_points = new_xyz ? new_xyz->data() : xyz.data();
  const I* const ends = offset.data();
  const J* const query_ends = new_offset ? new_offset->data() : nullptr;
  int32_t* const to_idx = idx.data();
  float* const to_dist = dist.data();
  double* const squared = cuda.Allocate<double>(queries * samples);
  int32_t* const index = cuda.Allocate<int32_t>(queries * samples);
  constexpr int64_t kShared = kTile * 3 * 4 + kQueries * 2 * 8 + 64;
  return ForBlocks(cuda, BlocksFor(queries, kQueries), kQueries, kShared, [=] POLYOP_DEVICE(Block& block) {
    float* const tile = block.Shared<float>(kTile * 3);
    int64_t* const begins = block.Shared<int64_t>(kQueries);
    int64_t* const lasts = block.Shared<int64_t>(kQueries);
    int64_t* const range = block.Shared<int64_t>(2);
    Block::Local<Query> mine(block);
    const int64_t first = block.index * kQueries;
    block.ForThreads([&](int t) {
      Query& query = mine[t];
      const int64_t q = first + t;
      query.begin = query.end = 0;
      if (q < queries) {
        int64_t query_end = 0, begin = 0, end = 0;
        for (int64_t s = 0; s < segments; ++s) {  // the segment whose queries end behind q
          begin = end;
          end = EndOf(ends, s, begin, points);
          query_end = query_ends != nullptr ? EndOf(query_ends, s, query_end, queries) : end;
          if (q < query_end) break;
        }
        if (q < query_end) {
          query.begin = begin;
          query.end = end;
        }
        for (int k = 0; k < 3; ++k) query.at[k] = query_points[3 * q + k];
        query.nearest = {squared + q, index + q, queries};
        query.reach = INFINITY;
      }
      begins[t] = query.begin < query.end ? query.begin : points;
      lasts[t] = query.end;
    });
    block.ForThreads([&](int t) {
      if (t != 0) return;
      range[0] = points;
      range[1] = 0;
      for (int i = 0; i < kQueries; ++i) {
        range[0] = begins[i] < range[0] ? begins[i] : range[0];
        range[1] = lasts[i] > range[1] ? lasts[i] : range[1];
      }
    });
    for (int64_t tile_begin = range[0]; tile_begin < range[1]; tile_begin += kTile) {
      const int64_t tile_end = tile_begin + kTile < range[1] ? tile_begin + kTile : range[1];
      block.ForThreads([&](int t) {
        for (int64_t i = t; i < 3 * (tile_end - tile_begin); i += kQueries) tile[i] = from[3 * tile_begin + i];
      });
      block.ForThreads([&](int t) {
        Query& query = mine[t];
        const int64_t begin = query.begin > tile_begin ? query.begin : tile_begin;
        const int64_t end = query.end < tile_end ? query.end : tile_end;
        for (int64_t p = begin; p < end; ++p) {
          const float* const point = tile + 3 * (p - tile_begin);
          const float x = query.at[0] - point[0], y = query.at[1] - point[1], z = query.at[2] - point[2];
          const float rough = x * x + y * y + z * z;
          // Off by less than 5 roundings, and by what underflows; what overflows is left to the doubles.
          if (rough * (1 - 1e-6f) - 1e-37f > query.reach && rough < INFINITY) continue;
          const double exact = Squared(query.at, point);
          if (!std::isfinite(exact)) continue;
          query.nearest.Offer(exact, static_cast<int32_t>(p), samples);
          if (query.nearest.size == samples) {
            query.reach = static_cast<float>(query.nearest.squared[0] * (1 + 1e-7));
          }
        }
      });
    }
    block.ForThreads([&](int t) {
      const int64_t q = first + t;
      if (q >= queries) return;
      const Nearest& nearest = mine[t].nearest;
      nearest.Sort();
      for (int64_t k = 0; k < samples; ++k) {
        const bool has = k < nearest.size;
        to_idx[q * samples + k] = has ? nearest.index[k * nearest.stride] : -1;
        to_dist[q * samples + k] =
            has ? static_cast<float>(std::sqrt(nearest.squared[k * nearest.stride])) : kNoDistance;
      }
    });
  });
}

#define POLYOP_KNN_QUERY(ID, K, I, J) POLYOP_CUDA_KERNEL(KnnQuery, Knn##ID, KnnQueryCuda<K, I, J>)
POLYOP_KNN_QUERY(444, int32_t, int32_t, int32_t);
POLYOP_KNN_QUERY(448, int32_t, int32_t, int64_t);
POLYOP_KNN_QUERY(484, int32_t, int64_t, int32_t);
POLYOP_KNN_QUERY(488, int32_t, int64_t, int64_t);
POLYOP_KNN_QUERY(844, int64_t, int32_t, int32_t);
POLYOP_KNN_QUERY(848, int64_t, int32_t, int64_t);
POLYOP_KNN_QUERY(884, int64_t, int64_t, int32_t);
POLYOP_KNN_QUERY(888, int64_t, int64_t, int64_t);
#undef POLYOP_KNN_QUERY

}  // namespace
}  // namespace polyop
