// Deformable windows on the GPU: deformable attention in which the windows' pixels ask, on one level.
#pragma once

#include "families/deform_attn/deform_attn_cuda.h"
#include "families/deform_conv/window_rule.h"
#include "kernels/cuda/cuda.h"

namespace polyop {

template <class T>
struct WindowSamples {
  struct Common {  // of a window's samples in one group
    const T *offset, *mask;
    float y, x;
  };
  DeformWindow window;
  WindowData<T> data;
  Divider groups, out_pixels;
  int64_t samples;

  POLYOP_HD Common CommonOf(int64_t pair) const {
    int64_t g, out;
    const int64_t pixel = groups.Split(pair, &g);
    out_pixels.Split(pixel, &out);
    Common common{data.offset + pixel * data.offset_step + g * data.offset_group,
                  data.mask + pixel * data.mask_step + g * data.mask_group, 0, 0};
    window.Middle(out, &common.y, &common.x);
    return common;
  }
  POLYOP_HD ZeroPaddedSample At(int64_t, int64_t p, const Common& common) const {
    float y, x;
    window.Point(p, &y, &x);
    return ZeroPaddedSample::At(common.y + (y + ToFloat(common.offset[2 * p + 1])) * window.scale,
                                common.x + (x + ToFloat(common.offset[2 * p])) * window.scale, window.height,
                                window.width, ToFloat(common.mask[p]));
  }
};

/// output[N, OH, OW, G*D] from input[N, H, W, G*D].
template <class T>
Status SumDeformWindowsCuda(const DeformWindowRule& op, const CudaContext& cuda, const Tensor<const T, 4>& input,
                            const WindowData<T>& data, const Tensor<T, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckWindowPixels(input.shape()));
  const DeformWindow window(op, input.shape(), output.shape());
  const Tensor<const T, 4> value(input.data(),
                                 {input.dim(0), window.height * window.width, op.group, op.group_channels});
  const WindowSamples<T> samples{window, data, Divider(op.group), Divider(window.out_pixels), op.points()};
  return DeformAttnCuda(cuda, value, window.out_pixels, samples, output.data());
}

}  // namespace polyop
