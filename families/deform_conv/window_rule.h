// Deformable windows: weighted sums of samples of each group of channels, without filters, channels last. What DCNv3
// and DCNv4 have in common: attributes, and where the samples lie. Wang et al., InternImage, 2023; Xiong et al.,
// Efficient Deformable ConvNets, 2024.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// The base of an operator's struct.
struct DeformWindowRule {
  int64_t kernel_h = 3;
  int64_t kernel_w = 3;
  int64_t stride_h = 1;
  int64_t stride_w = 1;
  int64_t pad_h = 1;
  int64_t pad_w = 1;
  int64_t dilation_h = 1;
  int64_t dilation_w = 1;
  int64_t group = 1;
  int64_t group_channels = 1;
  float offset_scale = 1.0f;
  int64_t remove_center = 0;

  /// Of a window.
  int64_t points() const { return kernel_h * kernel_w - remove_center; }

  Status Check() const {
    if (remove_center == 0 || (kernel_h == kernel_w && kernel_h % 2 == 1)) return Status::Ok();
    return InvalidArgument("attribute 'remove_center' is 1 and the kernel is ", kernel_h, " x ", kernel_w,
                           ", wanted a square one with a centre");
  }
};

inline constexpr std::tuple kDeformWindowAttributes = {
    Attr("kernel_h", &DeformWindowRule::kernel_h, "points of a window from top to bottom").Between(1, 1024),
    Attr("kernel_w", &DeformWindowRule::kernel_w, "points of a window from left to right").Between(1, 1024),
    Attr("stride_h", &DeformWindowRule::stride_h, "steps of the window down").Between(1, 1 << 20),
    Attr("stride_w", &DeformWindowRule::stride_w, "steps of the window to the right").Between(1, 1 << 20),
    Attr("pad_h", &DeformWindowRule::pad_h, "rows of zeros above and below").Between(0, 1 << 20),
    Attr("pad_w", &DeformWindowRule::pad_w, "columns of zeros on both sides").Between(0, 1 << 20),
    Attr("dilation_h", &DeformWindowRule::dilation_h, "rows between points").Between(1, 1 << 20),
    Attr("dilation_w", &DeformWindowRule::dilation_w, "columns between points").Between(1, 1 << 20),
    Attr("group", &DeformWindowRule::group, "groups of channels, each with offsets and masks of its own")
        .Between(1, 1 << 20)
        .Required(),
    Attr("group_channels", &DeformWindowRule::group_channels, "channels of a group").Between(1, 1 << 20).Required(),
    Attr("offset_scale", &DeformWindowRule::offset_scale,
         "by which the window grows about its middle, offsets and all"),
    Attr("remove_center", &DeformWindowRule::remove_center, "1: the window has no point in its middle").Between(0, 1),
};

inline constexpr const char* kDeformWindowSemantics =
    "Channels come last; group g has channels [g * group_channels, (g + 1) * group_channels). A window has P = "
    "kernel_h "
    "* kernel_w - remove_center points, column by column: point p = i * kernel_h + j lies i * dilation_w to the right "
    "and j * dilation_h below the window's first; with remove_center the one in the middle is left out and not counted "
    "(square windows of odd size only, else an error). Offsets come in pairs (x, y). With s = offset_scale and hx = "
    "floor(dilation_w * (kernel_w - 1) / 2), sample p of output column wo lies at x = wo * stride_w - pad_w + hx + (i "
    "* "
    "dilation_w - hx + offset_x) * s, and likewise down; whole numbers are the middles of pixels. An output is the sum "
    "of its group's bilinear samples, each times its mask as it is: a softmax, if any, is in the graph. Samples "
    "outside "
    "by a pixel or more, and corners outside, are 0; a NaN or infinite offset samples nothing. Sums are in float.";

/// Where the samples of one call lie.
struct DeformWindow {
  int64_t height, width, out_width, out_pixels;
  int64_t kernel_h, stride_h, stride_w, dilation_h, dilation_w;
  int64_t first_y, first_x;    // of the middle of the first output's window
  int64_t middle_y, middle_x;  // from a window's first point to its middle
  int64_t removed;             // the point that windows lack, or -1
  float scale;

  DeformWindow(const DeformWindowRule& op, const Shape& input, const Shape& output)
      : height(input[1]),
        width(input[2]),
        out_width(output[2]),
        out_pixels(output[1] * output[2]),
        kernel_h(op.kernel_h),
        stride_h(op.stride_h),
        stride_w(op.stride_w),
        dilation_h(op.dilation_h),
        dilation_w(op.dilation_w),
        first_y(op.dilation_h * (op.kernel_h - 1) / 2 - op.pad_h),
        first_x(op.dilation_w * (op.kernel_w - 1) / 2 - op.pad_w),
        middle_y(op.dilation_h * (op.kernel_h - 1) / 2),
        middle_x(op.dilation_w * (op.kernel_w - 1) / 2),
        removed(op.remove_center != 0 ? op.kernel_h * op.kernel_w / 2 : -1),
        scale(op.offset_scale) {}

  /// The middle of the window of an output pixel of a picture.
  POLYOP_HD void Middle(int64_t out, float* y, float* x) const {
    *y = static_cast<float>(out / out_width * stride_h + first_y);
    *x = static_cast<float>(out % out_width * stride_w + first_x);
  }
  /// From a window's middle to its point p, before offsets and scale.
  POLYOP_HD void Point(int64_t p, float* y, float* x) const {
    const int64_t at = removed >= 0 && p >= removed ? p + 1 : p;
    *y = static_cast<float>(at % kernel_h * dilation_h - middle_y);
    *x = static_cast<float>(at / kernel_h * dilation_w - middle_x);
  }
};

/// Where offsets and masks lie: those of group g of a pixel begin at `*_step` * pixel + `*_group` * g.
template <class T>
struct WindowData {
  const T *offset, *mask;
  int64_t offset_step, offset_group, mask_step, mask_group;

  /// In tensors of their own, [..., G*P*2] and [..., G*P].
  static WindowData Apart(const DeformWindowRule& op, const T* offset, const T* mask) {
    const int64_t points = op.points();
    return {offset, mask, 2 * op.group * points, 2 * points, op.group * points, points};
  }
  /// In one of `width` values a pixel: each group's offsets, then its masks.
  static WindowData Together(const DeformWindowRule& op, const T* data, int64_t width) {
    const int64_t points = op.points();
    return {data, data + 2 * points, width, 3 * points, width, 3 * points};
  }
};

/// Pixels of a picture fit 32 bits.
inline Status CheckWindowPixels(const Shape& input) {
  if (input[2] == 0 || input[1] <= INT32_MAX / input[2]) return Status::Ok();
  return InvalidArgument("'input' has shape ", ToString(input), ": pixels of a picture must fit 32 bits");
}

}  // namespace polyop
