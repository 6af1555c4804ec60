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
  const AttnLevel level{window.height, window.width, 0};
  const Scratch<float> places = context.Allocate<float>(2 * points);
  if (!places) return Internal("out of memory: ", points, " points");
  for (int64_t p = 0; p < points; ++p) window.Point(p, &places[2 * p], &places[2 * p + 1]);
  const auto find = [&](int64_t pair, float*, AttnTaps<T>& taps) HWY_ATTR {
    const int64_t pixel = pair / groups, g = pair % groups;
    const T* const offset = data.offset + pixel * data.offset_step + g * data.offset_group;
    const T* const mask = data.mask + pixel * data.mask_step + g * data.mask_group;
    float y = 0, x = 0;
    window.Middle(pixel % window.out_pixels, &y, &x);
    for (int64_t p = 0; p < points; ++p) {
      taps.Add(level, y + (places[2 * p] + ToFloat(offset[2 * p + 1])) * window.scale,
               x + (places[2 * p + 1] + ToFloat(offset[2 * p])) * window.scale, ToFloat(mask[p]));
    }
  };
  return DeformAttn<T>(context, value, window.out_pixels, points, find, output.data());
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();
#endif
