// The inner product of gathered columns with packed weights: what is left of a convolution when its input has
// been sampled. Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_KERNELS_CPU_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_KERNELS_CPU_GEMM_INL_H_
#undef POLYOP_KERNELS_CPU_GEMM_INL_H_
#else
#define POLYOP_KERNELS_CPU_GEMM_INL_H_
#endif

#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Rows that one call of the micro-kernel works on.
constexpr int64_t kGemmRows = 6;
/// Vectors of outputs that it works on: rows x vectors accumulators fill the registers (24 of 32, or 12 of 16).
constexpr int kGemmVectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

using GemmTag = hn::ScalableTag<float>;
inline int64_t GemmPanel() { return kGemmVectors * static_cast<int64_t>(hn::Lanes(GemmTag())); }
inline int64_t GemmPanels(int64_t outputs) { return (outputs + GemmPanel() - 1) / GemmPanel(); }

/// Packs the weights of one panel for GemmTile: outputs [first, first + panel) of `outputs`, [depth][panel]; outputs
/// beyond the last are 0. `fill(o, to, stride)` writes the `depth` weights of output o to to[k * stride]. `to` has
/// depth * panel floats.
template <class Fill>
void PackPanel(int64_t first, int64_t outputs, int64_t depth, const Fill& fill, float* to,
               int64_t panel = GemmPanel()) {
  for (int64_t o = first; o < first + panel; ++o, ++to) {
    if (o < outputs) {
      fill(o, to, panel);
    } else {
      for (int64_t k = 0; k < depth; ++k) to[k * panel] = 0;
    }
  }
}

/// sum(r)[v] += element(r, k) * weights[k][v] over k in [0, depth), for kGemmRows rows and a panel of kVectors vectors.
template <int kVectors = kGemmVectors, class Element, class Sum>
HWY_INLINE void GemmMicro(const Element& element, int64_t depth, const float* weights, const Sum& sum) {
  const GemmTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<GemmTag> acc[kGemmRows][kVectors];
  for (int r = 0; r < kGemmRows; ++r) {
    for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::LoadU(d, sum(r) + v * lanes);
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

/// Of a panel's weights so many fit in the L1 cache, to be read from there for every six rows: 32 KiB.
constexpr int64_t kGemmDepthBlock = 128;

/// sums[r][o] += sum over k of rows[r][place[k]] * weight(o, k), for row_count rows (a multiple of kGemmRows) and all
/// panels of packed weights: `depth` of the panels' weights, from `packed` on in the first one, where panels are
/// panel_stride floats apart. sum_stride is at least GemmPanels(outputs) * GemmPanel().
inline void AddGemmTile(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* place, int64_t depth,
                        const float* packed, int64_t panel_stride, int64_t outputs, float* sums, int64_t sum_stride) {
  const int64_t panel = GemmPanel();
  for (int64_t p = 0; p < GemmPanels(outputs); ++p) {
    for (int64_t first = 0; first < depth; first += kGemmDepthBlock) {
      const int64_t size = std::min(kGemmDepthBlock, depth - first);
      for (int64_t r = 0; r < row_count; r += kGemmRows) {
        const float* const from = rows + r * row_stride;
        float* const to = sums + r * sum_stride + p * panel;
        GemmMicro([=](int row, int64_t k) { return from[place[first + k] + row * row_stride]; }, size,
                  packed + p * panel_stride + first * panel, [=](int row) { return to + row * sum_stride; });
      }
    }
  }
}

/// The same of all weights of the panels, with sums that begin at 0.
inline void GemmTile(const float* rows, int64_t row_count, int64_t row_stride, const int32_t* place, int64_t depth,
                     const float* packed, int64_t outputs, float* sums, int64_t sum_stride) {
  std::fill_n(sums, row_count * sum_stride, 0.0f);
  AddGemmTile(rows, row_count, row_stride, place, depth, packed, depth * GemmPanel(), outputs, sums, sum_stride);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
