// SPDX-License-Identifier: Apache-2.0
#include "ops/resize/bicubic_resize_backward.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/resize/bicubic_resize_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/simd.h"

#ifndef POLYOP_OPS_RESIZE_BICUBIC_RESIZE_BACKWARD_ONCE_
#define POLYOP_OPS_RESIZE_BICUBIC_RESIZE_BACKWARD_ONCE_
namespace polyop {
namespace {

// The output pixels to which each input pixel of an axis contributes, in ascending order: those of input pixel i are
// taps [begin[i], begin[i + 1]).
struct ContributionTable {
  const Scratch<int64_t> begin;
  const Scratch<int32_t> output;
  const Scratch<float> weight;

  ContributionTable(const Context& context, const ResizeAxis& axis)
      : begin(context.Allocate<int64_t>(axis.inputs + 1)),
        output(context.Allocate<int32_t>(4 * axis.outputs)),
        weight(context.Allocate<float>(4 * axis.outputs)) {}

  Status Fill(const ResizeAxis& axis) {
    if (!begin || !output || !weight) return Internal("out of memory: weights of ", axis.outputs, " output pixels");
    std::fill_n(begin.data(), axis.inputs + 1, int64_t{0});
    ForEach(axis, [&](int64_t, int64_t input, float) { ++begin[input + 1]; });
    for (int64_t i = 0; i < axis.inputs; ++i) begin[i + 1] += begin[i];
    ForEach(axis, [&](int64_t o, int64_t input, float w) {
      output[begin[input]] = static_cast<int32_t>(o);
      weight[begin[input]++] = w;
    });
    for (int64_t i = axis.inputs; i > 0; --i) begin[i] = begin[i - 1];
    begin[0] = 0;
    return Status::Ok();
  }

  int64_t Count(int64_t input) const { return begin[input + 1] - begin[input]; }

 private:
  // Calls visit(output, input, weight) for all weights other than 0. Those of a repeated border pixel are summed.
  template <class Visit>
  static void ForEach(const ResizeAxis& axis, const Visit& visit) {
    for (int64_t o = 0; o < axis.outputs; ++o) {
      int64_t index[4];
      double weight[4];
      axis.Taps(o, index, weight);
      for (int k = 0; k < 4;) {
        const int64_t input = index[k];
        double sum = 0;
        for (; k < 4 && index[k] == input; ++k) sum += weight[k];
        if (const auto w = static_cast<float>(sum); w != 0) visit(o, input, w);
      }
    }
  }
};

}  // namespace
}  // namespace polyop
#endif  // POLYOP_OPS_RESIZE_BICUBIC_RESIZE_BACKWARD_ONCE_

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kPad = 64;  // a vector

// Sets to[x] to the weighted sum of `taps` rows of `from`, which are `columns` long. `to` is padded by a vector.
template <class T>
HWY_INLINE void SumRows(const T* from, const int32_t* row, const float* weight, int64_t taps, int64_t columns,
                        float* to) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t x = 0;
  for (; x + 4 * lanes <= columns; x += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    for (int64_t t = 0; t < taps; ++t) {
      const T* const at = from + row[t] * columns + x;
      const auto w = hn::Set(d, weight[t]);
      s0 = hn::MulAdd(LoadFloat(d, at), w, s0);
      s1 = hn::MulAdd(LoadFloat(d, at + lanes), w, s1);
      s2 = hn::MulAdd(LoadFloat(d, at + 2 * lanes), w, s2);
      s3 = hn::MulAdd(LoadFloat(d, at + 3 * lanes), w, s3);
    }
    hn::StoreU(s0, d, to + x);
    hn::StoreU(s1, d, to + x + lanes);
    hn::StoreU(s2, d, to + x + 2 * lanes);
    hn::StoreU(s3, d, to + x + 3 * lanes);
  }
  for (; x < columns; x += lanes) {
    const auto count = static_cast<size_t>(std::min(lanes, columns - x));
    auto sum = hn::Zero(d);
    for (int64_t t = 0; t < taps; ++t) {
      sum = hn::MulAdd(LoadFloatN(d, from + row[t] * columns + x, count), hn::Set(d, weight[t]), sum);
    }
    hn::StoreU(sum, d, to + x);
  }
}

// The taps of all columns, tap by tap: tap k of column x is at k * stride + x. Columns with fewer taps are padded by
// the weight 0 of an element that is 0.
struct ColumnTaps {
  const int64_t taps, stride;
  const Scratch<int32_t> index;
  const Scratch<float> weight;

  ColumnTaps(const Context& context, const ContributionTable& table, const ResizeAxis& columns)
      : taps(MaxCount(table, columns.inputs)),
        stride(columns.inputs + kPad),
        index(context.Allocate<int32_t>(taps * stride)),
        weight(context.Allocate<float>(taps * stride)) {}

  Status Fill(const ContributionTable& table, const ResizeAxis& columns) {
    if (!index || !weight) return Internal("out of memory: ", taps, " weights of ", columns.inputs, " columns");
    std::fill_n(index.data(), index.size(), static_cast<int32_t>(columns.outputs));
    std::fill_n(weight.data(), weight.size(), 0.0f);
    for (int64_t x = 0; x < columns.inputs; ++x) {
      for (int64_t k = 0; k < table.Count(x); ++k) {
        index[k * stride + x] = table.output[table.begin[x] + k];
        weight[k * stride + x] = table.weight[table.begin[x] + k];
      }
    }
    return Status::Ok();
  }

 private:
  static int64_t MaxCount(const ContributionTable& table, int64_t inputs) {
    int64_t most = 0;
    for (int64_t x = 0; x < inputs; ++x) most = std::max(most, table.Count(x));
    return most;
  }
};

// Sets to[x] to the weighted sum of the elements of `row` to which column x contributes.
template <class T>
HWY_INLINE void SumColumns(const float* row, const ColumnTaps& taps, int64_t columns, T* to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t x = 0; x < columns; x += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < taps.taps; ++k) {
      const int64_t at = k * taps.stride + x;
      const auto value = hn::GatherIndex(d, row, hn::LoadU(di, taps.index.data() + at));
      sum = hn::MulAdd(value, hn::LoadU(d, taps.weight.data() + at), sum);
    }
    if (x + lanes <= columns) {
      StoreFloat(sum, d, to + x);
    } else {
      StoreFloatN(sum, d, to + x, static_cast<size_t>(columns - x));
    }
  }
}

// A task owns some rows of the result. It sums the rows of the gradient to which such a row contributes, then their
// columns.
template <class T>
Status ResizePlanesBackward(const Context& context, Tensor<const T, 4> grad_output, const ResizeAxis& rows,
                            const ResizeAxis& columns, Tensor<T, 4> grad_input) {
  if (rows.outputs >= INT32_MAX || columns.outputs >= INT32_MAX) {
    return InvalidArgument("'grad_output': expected fewer than 2147483647 rows and columns, got shape ",
                           ToString(grad_output.shape()));
  }
  ContributionTable row_table(context, rows), column_table(context, columns);
  POLYOP_RETURN_IF_ERROR(row_table.Fill(rows));
  POLYOP_RETURN_IF_ERROR(column_table.Fill(columns));
  ColumnTaps column_taps(context, column_table, columns);
  POLYOP_RETURN_IF_ERROR(column_taps.Fill(column_table, columns));

  const int64_t planes = grad_input.dim(0) * grad_input.dim(1), all_rows = planes * rows.inputs;
  const double row_taps =
      static_cast<double>(row_table.begin[rows.inputs]) / static_cast<double>(std::max<int64_t>(rows.inputs, 1));
  const double cost = 0.15 * row_taps * static_cast<double>(columns.outputs) +
                      0.4 * static_cast<double>(column_taps.taps * columns.inputs);
  const int64_t grain = GrainFor(1 + cost);
  const int64_t buffer_size = columns.outputs + kPad;
  const auto resize = [&](float* sums, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t plane = item / rows.inputs, y = item % rows.inputs, first = row_table.begin[y];
      SumRows(grad_output.data() + plane * rows.outputs * columns.outputs, row_table.output.data() + first,
              row_table.weight.data() + first, row_table.Count(y), columns.outputs, sums);
      sums[columns.outputs] = 0;  // of padded taps
      SumColumns(sums, column_taps, columns.inputs, grad_input.data() + item * columns.inputs);
    }
  };
  if (context.ParallelForWithScratch<float>(all_rows, grain, buffer_size, resize)) return Status::Ok();
  return Internal("out of memory: ", buffer_size, " floats of scratch");
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(ResizeBackward, ResizePlanesBackward);

template <class T>
Status BicubicResizeBackward(const Context& context, Tensor<const T, 4> grad_output, const ResizeAxis& rows,
                             const ResizeAxis& columns, Tensor<T, 4> grad_input) {
  return POLYOP_SIMD(ResizeBackward, T)(context, grad_output, rows, columns, grad_input);
}
POLYOP_FOR_FLOATS(BicubicResizeBackward);
}  // namespace polyop
#endif
