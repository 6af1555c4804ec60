// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resize/bicubic_resize.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/quantized-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/widen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// Four source indices and weights of every output pixel of an axis.
struct CubicTable {
  int32_t* index[4];
  float* weight[4];
};

void FillCubicTable(const ResizeAxis& axis, const CubicTable& table) {
  for (int64_t i = 0; i < axis.outputs; ++i) {
    int64_t index[4];
    double weight[4];
    axis.Taps(i, index, weight);
    for (int k = 0; k < 4; ++k) {
      table.index[k][i] = static_cast<int32_t>(index[k]);
      table.weight[k][i] = static_cast<float>(weight[k]);
    }
  }
}

// Interpolates an input row at the output's columns. `to` is padded by a vector.
HWY_INLINE void ResizeRow(const float* row, const CubicTable& table, int64_t outputs, float* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t x = 0; x < outputs; x += lanes) {  // tables are padded by a vector of zeros
    auto sum = hn::Mul(hn::GatherIndex(d, row, hn::LoadU(di, table.index[0] + x)), hn::LoadU(d, table.weight[0] + x));
    for (int k = 1; k < 4; ++k) {
      sum = hn::MulAdd(hn::GatherIndex(d, row, hn::LoadU(di, table.index[k] + x)), hn::LoadU(d, table.weight[k] + x),
                       sum);
    }
    hn::StoreU(sum, d, to + x);
  }
}

template <class T>
HWY_INLINE void BlendRows(const float* const rows[4], const float weights[4], int64_t count, T* to,
                          const Requantize<T>& codes) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto w0 = hn::Set(d, weights[0]), w1 = hn::Set(d, weights[1]);
  const auto w2 = hn::Set(d, weights[2]), w3 = hn::Set(d, weights[3]);
  const auto blend = [&](int64_t x) HWY_ATTR {
    auto sum = hn::Mul(hn::LoadU(d, rows[0] + x), w0);
    sum = hn::MulAdd(hn::LoadU(d, rows[1] + x), w1, sum);
    sum = hn::MulAdd(hn::LoadU(d, rows[2] + x), w2, sum);
    return hn::MulAdd(hn::LoadU(d, rows[3] + x), w3, sum);
  };
  int64_t x = 0;
  for (; x + lanes <= count; x += lanes) StoreFloat(blend(x), d, to + x, codes);
  if (x < count) StoreFloatN(blend(x), d, to + x, static_cast<size_t>(count - x), codes);
}

// Each task keeps the last four rows that it resized horizontally, so that an input row is resized once per task.
template <class T>
Status ResizeAll(const Context& context, Tensor<const T, 4> input, const ResizeAxis& rows, const ResizeAxis& columns,
                 Tensor<T, 4> output, const Requantize<T>& codes) {
  if (rows.inputs > INT32_MAX || columns.inputs > INT32_MAX) {
    return InvalidArgument("'input': expected at most 2147483647 rows and columns, got shape ",
                           ToString(input.shape()));
  }
  constexpr int64_t kPad = 64;
  const int64_t table_size = rows.outputs + columns.outputs + 2 * kPad;
  const Scratch<int32_t> indices = context.Allocate<int32_t>(4 * table_size);
  const Scratch<float> weights = context.Allocate<float>(4 * table_size);
  const int64_t planes = input.dim(0) * input.dim(1), all_rows = planes * rows.outputs;
  const int64_t grain = GrainFor(0.6 * static_cast<double>(columns.outputs));
  const int64_t row_size = columns.outputs + kPad, buffer_size = 4 * row_size + columns.inputs + kPad;
  if (!indices || !weights) return Internal("out of memory: ", 8 * table_size, " weights and their indices");

  std::fill_n(indices.data(), indices.size(), 0);
  std::fill_n(weights.data(), weights.size(), 0.0f);
  CubicTable row_table, column_table;
  for (int k = 0; k < 4; ++k) {
    column_table.index[k] = indices.data() + k * table_size;
    column_table.weight[k] = weights.data() + k * table_size;
    row_table.index[k] = column_table.index[k] + columns.outputs + kPad;
    row_table.weight[k] = column_table.weight[k] + columns.outputs + kPad;
  }
  FillCubicTable(columns, column_table);
  FillCubicTable(rows, row_table);

  const auto resize = [&](float* ring, int64_t begin, int64_t end) HWY_ATTR {
    float* widened = ring + 4 * row_size;
    int64_t held[4] = {-1, -1, -1, -1};  // the row, across all planes, in each slot of the ring
    for (int64_t item = begin; item < end; ++item) {
      const int64_t plane = item / rows.outputs, y = item % rows.outputs;
      const float* sources[4];
      float row_weights[4];
      for (int k = 0; k < 4; ++k) {
        const int64_t source = row_table.index[k][y], id = plane * rows.inputs + source;
        // Four consecutive rows are in different slots; clamped ones repeat a row and share its slot.
        float* slot = ring + (source % 4) * row_size;
        if (held[source % 4] != id) {
          held[source % 4] = id;
          const float* row = AsFloats(input.data() + id * columns.inputs, columns.inputs, widened, codes);
          ResizeRow(row, column_table, columns.outputs, slot);
        }
        sources[k] = slot;
        row_weights[k] = row_table.weight[k][y];
      }
      BlendRows(sources, row_weights, columns.outputs, output.data() + item * columns.outputs, codes);
    }
  };
  if (context.ParallelForWithScratch<float>(all_rows, grain, buffer_size, resize)) return Status::Ok();
  return Internal("out of memory: ", buffer_size, " floats of scratch");
}

template <class T>
Status ResizePlanes(const Context& context, Tensor<const T, 4> input, const ResizeAxis& rows, const ResizeAxis& columns,
                    Tensor<T, 4> output) {
  return ResizeAll<T>(context, input, rows, columns, output, {});
}

Status ResizeCodes(const Context& context, Tensor<const Q8, 4> input, const ResizeAxis& rows, const ResizeAxis& columns,
                   const Requantize<Q8>& codes, Tensor<Q8, 4> output) {
  return ResizeAll<Q8>(context, input, rows, columns, output, codes);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(Resize, ResizePlanes);

template <class T>
Status BicubicResize(const Context& context, Tensor<const T, 4> input, const ResizeAxis& rows,
                     const ResizeAxis& columns, Tensor<T, 4> output) {
  return POLYOP_SIMD(Resize, T)(context, input, rows, columns, output);
}
POLYOP_FOR_FLOATS(BicubicResize);

HWY_EXPORT(ResizeCodes);
Status QuantizedBicubicResize(const Context& context, Tensor<const Q8, 4> input, const ResizeAxis& rows,
                              const ResizeAxis& columns, const Requantize<Q8>& codes, Tensor<Q8, 4> output) {
  return HWY_DYNAMIC_DISPATCH(ResizeCodes)(context, input, rows, columns, codes, output);
}
}  // namespace polyop
#endif
