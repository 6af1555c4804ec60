// SPDX-License-Identifier: Apache-2.0
// The matrix product of gathered rows with packed weights, which is a convolution after its input has been sampled.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_GEMM_INL_H_
#undef POLYOP_KERNELS_CPU_GEMM_INL_H_
#else
#define POLYOP_KERNELS_CPU_GEMM_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Rows per call of the micro-kernel.
constexpr int64_t kGemmRows = 6;
/// Maximum number of vectors of outputs per call: kGemmRows x kGemmVectors accumulators fill the registers (24 of 32,
/// or 12 of 16).
constexpr int kGemmVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

using GemmTag = hn::ScalableTag<float>;

/// Layout of packed weights: one column per output, in panels of `vectors` vectors.
struct GemmColumns {
  int64_t outputs;
  int vectors = 1;  // per panel, chosen to waste few lanes

  explicit GemmColumns(int64_t num_outputs) : outputs(num_outputs) {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(GemmTag()));
    const auto wasted = [&](int v) { return (outputs + v * lanes - 1) / (v * lanes) * v * lanes - outputs; };
    for (int v = 2; v <= kGemmVectors; v *= 2) {
      if (wasted(v) < wasted(vectors) + 2 * lanes) vectors = v;
    }
  }
  int64_t panel() const { return vectors * static_cast<int64_t>(hn::Lanes(GemmTag())); }
  int64_t panels() const { return (outputs + panel() - 1) / panel(); }
  /// Row stride of the accumulators and of the packed weights.
  int64_t stride() const { return panels() * panel(); }
};

/// Packs panel `p` to [depth][panel]; outputs after the last are 0. `fill(o, to, stride)` writes the `depth` weights of
/// output o to to[k * stride]. Requires: `to` has depth * panel() floats.
template <class Fill>
void PackPanel(const GemmColumns& columns, int64_t p, int64_t depth, const Fill& fill, float* to) {
  const int64_t panel = columns.panel();
  for (int64_t o = p * panel; o < (p + 1) * panel; ++o, ++to) {
    if (o < columns.outputs) {
      fill(o, to, panel);
    } else {
      for (int64_t k = 0; k < depth; ++k) to[k * panel] = 0;
    }
  }
}

/// Adds element(r, k) * weights[k][v] to sum(r)[v] for k in [0, depth), for kGemmRows rows and a panel of kVectors
/// vectors. With kFromZero, overwrites the sums instead.
template <int kVectors, bool kFromZero = false, class Element, class Sum>
HWY_INLINE void GemmMicro(const Element& element, int64_t depth, const float* weights, const Sum& sum) {
  const GemmTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<GemmTag> acc[kGemmRows][kVectors];
  for (int r = 0; r < kGemmRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = kFromZero ? hn::Zero(d) : hn::LoadU(d, sum(r) + v * lanes);
  }
  for (int64_t k = 0; k < depth; ++k) {
    hn::Vec<GemmTag> w[kVectors];
    for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(d, weights + v * lanes);
    weights += kVectors * lanes;
    for (int r = 0; r < kGemmRows; ++r) {
      const auto x = hn::Set(d, element(r, k));
      for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(x, w[v], acc[r][v]);
    }
  }
  for (int r = 0; r < kGemmRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(acc[r][v], d, sum(r) + v * lanes);
  }
}

/// Depth of a block of a panel's weights (32 KiB) that stays in the L1 cache while it is read for all rows.
constexpr int64_t kGemmDepthBlock = 128;

// Computes one panel for some rows.
template <int kVectors, bool kFromZero>
HWY_INLINE void AddPanel(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* k_offset,
                         int64_t depth, const float* packed, float* sums, int64_t sum_stride) {
  for (int64_t r = 0; r < row_count; r += kGemmRows) {
    const float* const from = rows + r * row_stride;
    float* const to = sums + r * sum_stride;
    GemmMicro<kVectors, kFromZero>([=](int row, int64_t k) { return from[k_offset[k] + row * row_stride]; }, depth,
                                   packed, [=](int row) { return to + row * sum_stride; });
  }
}

template <int kVectors, bool kFromZero>
HWY_NOINLINE void AddPanels(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* k_offset,
                            int64_t depth, const float* packed, int64_t panel_stride, const GemmColumns& columns,
                            float* sums, int64_t sum_stride) {
  const int64_t panel = columns.panel();
  for (int64_t p = 0; p < columns.panels(); ++p) {
    const float* const weights = packed + p * panel_stride;
    const int64_t size = std::min(kGemmDepthBlock, depth);
    AddPanel<kVectors, kFromZero>(rows, row_count, row_stride, k_offset, size, weights, sums + p * panel, sum_stride);
    for (int64_t first = size; first < depth; first += kGemmDepthBlock) {
      AddPanel<kVectors, false>(rows, row_count, row_stride, k_offset + first, std::min(kGemmDepthBlock, depth - first),
                                weights + first * panel, sums + p * panel, sum_stride);
    }
  }
}

/// Adds the sum over k of rows[r][k_offset[k]] * weight(o, k) to sums[r][o], for row_count rows and all panels of
/// packed weights: `depth` weights per panel, starting at `packed` in the first one; panels are panel_stride floats
/// apart. With kFromZero, overwrites the sums instead. Requires: row_count is a multiple of kGemmRows; sum_stride >=
/// columns.stride().
template <bool kFromZero = false>
void AddGemmTile(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* k_offset, int64_t depth,
                 const float* packed, int64_t panel_stride, const GemmColumns& columns, float* sums,
                 int64_t sum_stride) {
  const auto add = columns.vectors == 1   ? AddPanels<1, kFromZero>
                   : columns.vectors == 2 ? AddPanels<2, kFromZero>
                                          : AddPanels<kGemmVectors, kFromZero>;
  add(rows, row_count, row_stride, k_offset, depth, packed, panel_stride, columns, sums, sum_stride);
}

/// Computes the sums of all weights of the panels.
inline void GemmTile(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* k_offset, int64_t depth,
                     const float* packed, const GemmColumns& columns, float* sums, int64_t sum_stride) {
  AddGemmTile<true>(rows, row_count, row_stride, k_offset, depth, packed, depth * columns.panel(), columns, sums,
                    sum_stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
