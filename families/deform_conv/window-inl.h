// Deformable windows on the CPU: deformable attention in which the windows' pixels ask, on one level.
// Compiled once per instruction set; include it from a kernel file.
#if defined(POLYOP_FAMILIES_DEFORM_CONV_WINDOW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POLYOP_FAMILIES_DEFORM_CONV_WINDOW_INL_H_
#undef POLYOP_FAMILIES_DEFORM_CONV_WINDOW_INL_H_
#else
#define POLYOP_FAMILIES_DEFORM_CONV_WINDOW_INL_H_
#endif

#include "families/deform_attn/deform_attn-inl.h"
#include "families/deform_conv/window_rule.h"
#include "kernels/cpu/simd.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

/// output[N, OH, OW, G*D] from input[N, H, W, G*D].
template <class T>
Status SumDeformWindows(const DeformWindowRule& op, const Context& context, const Tensor<const T, 4>& input,
                        const WindowData<T>& data, const Tensor<T, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckWindowPixels(input.shape()));
  const DeformWindow window(op, input.shape(), output.shape());
  const int64_t groups = op.group, points = op.points();
  const Tensor<const T, 4> value(input.data(), {input.dim(0), window.height * window.width, groups, op.group_channels});
  const SampleLevels levels(context, 1, points);
  POLYOP_RETURN_IF_ERROR(levels.Set({window.height, window.width, 0}));
  const Scratch<float> columns = context.Allocate<float>(points), rows = context.Allocate<float>(points);
  if (!columns || !rows) return Internal("out of memory: ", points, " points");
  for (int64_t p = 0; p < points; ++p) window.Point(p, &rows[p], &columns[p]);
  const auto place = [&](int64_t pair, const AttnPlaces& places) HWY_ATTR {
    const hn::ScalableTag<float> d;
    const int64_t pixel = pair / groups, g = pair % groups;
    float y = 0, x = 0;
    window.Middle(pixel % window.out_pixels, &y, &x);
    const auto scale = hn::Set(d, window.scale), middle_x = hn::Set(d, x), middle_y = hn::Set(d, y);
    const T* const offsets = data.offset + pixel * data.offset_step + g * data.offset_group;
    ForEachPair(offsets, points, [&](int64_t i, auto offset_x, auto offset_y) HWY_ATTR {
      const auto from_x = hn::Add(hn::LoadU(d, columns.data() + i), offset_x);
      const auto from_y = hn::Add(hn::LoadU(d, rows.data() + i), offset_y);
      hn::StoreU(hn::MulAdd(from_x, scale, middle_x), d, places.x + i);
      hn::StoreU(hn::MulAdd(from_y, scale, middle_y), d, places.y + i);
    });
    WidenRow(data.mask + pixel * data.mask_step + g * data.mask_group, points, places.weight);
  };
  return DeformAttn<T>(context, value, levels, window.out_pixels, place, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
