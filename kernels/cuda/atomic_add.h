// SPDX-License-Identifier: Apache-2.0
// Sums that many GPU threads add to. The order of the additions, and thus the last bits of a sum, differ from run to
// run, so a kernel with atomic additions is registered by POLYOP_ATOMIC_CUDA_KERNELS:
//
//   return SumAtomically(cuda, images, channels, pixels, output.data(), [&](const ChannelSums& sums) {
//     return ForEach(cuda, count * sums.count, [=] POLYOP_DEVICE(int64_t i) {
//       … AtomicAdd(sums.Plane(image, channel) + pixel, value);
//     });
//   });
//
// Tests then compare its results in both orders of threads within the tolerance, and PyTorch's adapter does not call it
// if deterministic algorithms are required.
#pragma once

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/tensor.h"
#include "core/thread_order.h"
#include "kernels/cuda/cuda.h"

/// Like POLYOP_CUDA_KERNELS, for kernels whose results depend on the order of AtomicAdd.
#define POLYOP_ATOMIC_CUDA_KERNELS(OP, FUNCTION, ...)                                    \
  [[maybe_unused]] static const ::polyop::SumsInThreadOrder OP##_atomic_sums{OP::kName}; \
  POLYOP_CUDA_KERNELS(OP, FUNCTION, __VA_ARGS__)

namespace polyop {

/// Adds to memory that other threads add to.
POLYOP_DEVICE inline void AtomicAdd(float* at, float value) {
#ifdef __CUDACC__
  atomicAdd(at, value);
#else
  *at += value;
#endif
}

/// Sums [outer, count, inner] of the channels [first, first + count) of a tensor [outer, channels, inner].
struct ChannelSums {
  float* data;
  int64_t first, count, inner;

  POLYOP_HD bool Has(int64_t channel) const { return channel >= first && channel < first + count; }
  /// Returns the `inner` sums of a channel of the tensor. Requires: Has(channel).
  POLYOP_HD float* Plane(int64_t outer, int64_t channel) const {
    return data + (outer * count + (channel - first)) * inner;
  }
};

/// Default maximum number of sums of SumAtomically in scratch memory, 64 MiB.
inline constexpr int64_t kMaxScratchSums = int64_t{1} << 24;

/// Sets `count` sums to 0.
inline Status ClearSums(const CudaContext& cuda, float* sums, int64_t count) {
  return ForEach(cuda, count, [=] POLYOP_DEVICE(int64_t i) { sums[i] = 0; });
}

/// Rounds sums of [outer, sums.count, sums.inner] to their channels of `to`, [outer, channels, sums.inner].
template <class T>
Status RoundSums(const CudaContext& cuda, int64_t outer, int64_t channels, const ChannelSums& sums, T* to) {
  const Divider by_plane(sums.count * sums.inner);
  return ForEach(cuda, outer * sums.count * sums.inner, [=] POLYOP_DEVICE(int64_t i) {
    int64_t rest;
    const int64_t o = by_plane.Split(i, &rest);
    to[(o * channels + sums.first) * sums.inner + rest] = FromFloat<T>(sums.data[i]);
  });
}

/// Computes the tensor `to` of shape [outer, channels, inner] as float sums that begin at 0, rounded once: calls
/// add(sums), which launches kernels that add to them. Sums of f32 are in the tensor itself. For other types they are
/// in scratch, and `add` is called for as many channels at a time as fit into `max_sums`: at least one. Requires:
/// `add` allocates no scratch.
template <class T, class Add>
Status SumAtomically(const CudaContext& cuda, int64_t outer, int64_t channels, int64_t inner, T* to, const Add& add,
                     int64_t max_sums = kMaxScratchSums) {
  const int64_t total = outer * channels * inner;
  if (total == 0) return cuda.Check();
  if constexpr (std::is_same_v<T, float>) {
    POLYOP_RETURN_IF_ERROR(ClearSums(cuda, to, total));
    return add(ChannelSums{to, 0, channels, inner});
  } else {
    // The size of the scratch must not shrink when extents grow.
    const int64_t one = outer * inner, at_once = std::clamp<int64_t>(max_sums / one, 1, channels);
    float* const sums = cuda.Allocate<float>(std::min(total, std::max(max_sums, one)));
    for (int64_t first = 0; first < channels; first += at_once) {
      const ChannelSums some{sums, first, std::min(at_once, channels - first), inner};
      POLYOP_RETURN_IF_ERROR(ClearSums(cuda, sums, one * some.count));
      POLYOP_RETURN_IF_ERROR(add(some));
      POLYOP_RETURN_IF_ERROR(RoundSums<T>(cuda, outer, channels, some, to));
    }
    return Status::Ok();
  }
}

/// Computes `to`, if it exists, as SumAtomically does, and other results that need all channels, if `others`: add(sums,
/// with_others) computes these in one of its calls. In a call for others alone, sums.data is null.
template <class T, int kRank, class Add>
Status SumAtomicallyWithOthers(const CudaContext& cuda, int64_t outer, int64_t channels, int64_t inner,
                               const std::optional<Tensor<T, kRank>>& to, bool others, const Add& add) {
  if (to) {
    POLYOP_RETURN_IF_ERROR(SumAtomically(cuda, outer, channels, inner, to->data(), [&](const ChannelSums& sums) {
      const bool with_others = others && sums.count == channels;
      if (with_others) others = false;
      return add(sums, with_others);
    }));
  }
  return others ? add(ChannelSums{nullptr, 0, channels, inner}, true) : cuda.Check();
}

}  // namespace polyop
