// SPDX-License-Identifier: Apache-2.0
// DCNv3 and DCNv4 on the CPU, computed as deformable attention with one level and the output pixels as queries.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_OPS_DEFORM_DCN_WINDOW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_OPS_DEFORM_DCN_WINDOW_INL_H_
#undef POLYOP_OPS_DEFORM_DCN_WINDOW_INL_H_
#else
#define POLYOP_OPS_DEFORM_DCN_WINDOW_INL_H_
#endif

#include "kernels/cpu/simd.h"
#include "ops/deform/dcn_window_rule.h"
#include "ops/deform/deform_attn-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// Sets the positions and weights of the samples of a pair of output pixel and group.
template <class T>
class DcnSamples {
 public:
  DcnSamples(const DcnWindowRule& op, const Context& context, const Shape& input, const Shape& output,
             const DcnWindowData<T>& data)
      : window_(op, input, output),
        groups_(op.group),
        points_(op.points()),
        data_(data),
        levels_(context, 1, points_),
        columns_(context.Allocate<float>(points_)),
        rows_(context.Allocate<float>(points_)) {}

  /// Returns an error if memory is exhausted.
  Status Init() const {
    POLYOP_RETURN_IF_ERROR(levels_.Set({window_.height, window_.width, 0}));
    if (!columns_ || !rows_) return Internal("out of memory: ", points_, " points");
    for (int64_t p = 0; p < points_; ++p) window_.Point(p, &rows_[p], &columns_[p]);
    return Status::Ok();
  }
  const SampleLevels& levels() const { return levels_; }

  HWY_INLINE void operator()(int64_t pair, const AttnPositions& positions) const {
    const hn::ScalableTag<float> d;
    const int64_t pixel = pair / groups_, g = pair % groups_;
    float y = 0, x = 0;
    window_.Centre(pixel % window_.out_pixels, &y, &x);
    const auto scale = hn::Set(d, window_.scale), centre_x = hn::Set(d, x), centre_y = hn::Set(d, y);
    const T* const offsets = data_.offset + pixel * data_.offset_step + g * data_.offset_group;
    ForEachPair(offsets, points_, [&](int64_t i, auto offset_x, auto offset_y) HWY_ATTR {
      const auto from_x = hn::Add(hn::LoadU(d, columns_.data() + i), offset_x);
      const auto from_y = hn::Add(hn::LoadU(d, rows_.data() + i), offset_y);
      hn::StoreU(hn::MulAdd(from_x, scale, centre_x), d, positions.x + i);
      hn::StoreU(hn::MulAdd(from_y, scale, centre_y), d, positions.y + i);
    });
    WidenRow(data_.mask + pixel * data_.mask_step + g * data_.mask_group, points_, positions.weight);
  }

 private:
  const DcnWindow window_;
  const int64_t groups_, points_;
  const DcnWindowData<T> data_;
  const SampleLevels levels_;
  const Scratch<float> columns_, rows_;
};

/// Computes output[N, OH, OW, G*D] from input[N, H, W, G*D].
template <class T>
Status SumDcnWindows(const DcnWindowRule& op, const Context& context, const Tensor<const T, 4>& input,
                     const DcnWindowData<T>& data, const Tensor<T, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const Tensor<const T, 4> value(input.data(),
                                 {input.dim(0), input.dim(1) * input.dim(2), op.group, op.group_channels});
  const DcnSamples<T> samples(op, context, input.shape(), output.shape(), data);
  POLYOP_RETURN_IF_ERROR(samples.Init());
  return DeformAttn<T>(context, value, samples.levels(), output.dim(1) * output.dim(2), samples, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
