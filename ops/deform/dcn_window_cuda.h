// SPDX-License-Identifier: Apache-2.0
// DCNv3 and DCNv4 on the GPU, computed as deformable attention with one level and the output pixels as queries.
//
// There is no product of matrices that a library could compute: each channel of an output pixel is a sum of separate
// samples, weighted by the masks of its group. 4x56x56 pixels with 8 groups of 32 channels and 9 points read four times
// 116 MB of pixels in f32, from L1 and L2: 0.08 ms of an H200 at 5.5 TB/s.
#pragma once

#include "kernels/cuda/cuda.h"
#include "ops/deform/dcn_window_rule.h"
#include "ops/deform/deform_attn_cuda.h"

namespace polyop {

template <class T>
struct DcnWindowSamples {
  struct Common {  // shared by the samples of a window in one group
    const T *offset, *mask;
    float y, x;
  };
  AttnLevelsCuda<int64_t> levels;  // one level: the input
  DcnWindow window;
  DcnWindowData<T> data;
  Divider groups, out_pixels;
  int64_t samples;

  POLYOP_HD Common CommonOf(int64_t pair) const {
    int64_t g, out;
    const int64_t pixel = groups.Split(pair, &g);
    out_pixels.Split(pixel, &out);
    Common common{data.offset + pixel * data.offset_step + g * data.offset_group,
                  data.mask + pixel * data.mask_step + g * data.mask_group, 0, 0};
    window.Centre(out, &common.y, &common.x);
    return common;
  }
  POLYOP_HD AttnPosition At(int64_t, int64_t p, const Common& common) const {
    float y, x;
    window.Point(p, &y, &x);
    return {{window.height, window.width, 0},
            common.y + (y + ToFloat(common.offset[2 * p + 1])) * window.scale,
            common.x + (x + ToFloat(common.offset[2 * p])) * window.scale,
            ToFloat(common.mask[p])};
  }
};

/// Views the input [N, H, W, G*D] as the values [N, H*W, G, D] of attention.
template <class T>
Tensor<const T, 4> DcnValueOf(const DcnWindowRule& op, const Tensor<const T, 4>& input) {
  return {input.data(), {input.dim(0), input.dim(1) * input.dim(2), op.group, op.group_channels}};
}

template <class T>
DcnWindowSamples<T> DcnSamplesOf(const DcnWindowRule& op, const Tensor<const T, 4>& value, const DcnWindow& window,
                                 const DcnWindowData<T>& data) {
  return {{nullptr, nullptr, value.dim(1)}, window, data, Divider(op.group), Divider(window.out_pixels), op.points()};
}

/// Computes output[N, OH, OW, G*D] from input[N, H, W, G*D].
template <class T>
Status SumDcnWindowsCuda(const DcnWindowRule& op, const CudaContext& cuda, const Tensor<const T, 4>& input,
                         const DcnWindowData<T>& data, const Tensor<T, 4>& output) {
  POLYOP_RETURN_IF_ERROR(CheckDcnPixels(input.shape()));
  const DcnWindow window(op, input.shape(), output.shape());
  const Tensor<const T, 4> value = DcnValueOf(op, input);
  return DeformAttnCuda(cuda, value, window.out_pixels, DcnSamplesOf(op, value, window, data), output.data());
}

}  // namespace polyop
