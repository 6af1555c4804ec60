// SPDX-License-Identifier: Apache-2.0
// Attributes and sample positions of DCNv3 and DCNv4, which compute weighted sums of samples of each group of channels
// without filters, channels last. Wang et al., InternImage, 2023; Xiong et al., Efficient Deformable ConvNets, 2024.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/definition.h"
#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

/// The base of an operator's parameters.
struct DcnWindowRule {
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

  /// Returns the number of points of a window.
  int64_t points() const { return kernel_h * kernel_w - remove_center; }

  Status Check() const {
    if (remove_center == 0 || (kernel_h == kernel_w && kernel_h % 2 == 1)) return Status::Ok();
    return InvalidArgument("attribute 'remove_center': expected a square kernel of odd size, got ", kernel_h, " x ",
                           kernel_w);
  }
};

inline constexpr std::tuple kDcnWindowAttributes = {
    Attr("kernel_h", &DcnWindowRule::kernel_h, "height of the window in points").Between(1, 1024),
    Attr("kernel_w", &DcnWindowRule::kernel_w, "width of the window in points").Between(1, 1024),
    Attr("stride_h", &DcnWindowRule::stride_h, "vertical stride of the window").Between(1, 1 << 20),
    Attr("stride_w", &DcnWindowRule::stride_w, "horizontal stride of the window").Between(1, 1 << 20),
    Attr("pad_h", &DcnWindowRule::pad_h, "rows of zeros at the top and at the bottom").Between(0, 1 << 20),
    Attr("pad_w", &DcnWindowRule::pad_w, "columns of zeros on the left and on the right").Between(0, 1 << 20),
    Attr("dilation_h", &DcnWindowRule::dilation_h, "vertical distance of points").Between(1, 1 << 20),
    Attr("dilation_w", &DcnWindowRule::dilation_w, "horizontal distance of points").Between(1, 1 << 20),
    Attr("group", &DcnWindowRule::group, "number of groups of channels, each with separate offsets and masks")
        .Between(1, 1 << 20)
        .Required(),
    Attr("group_channels", &DcnWindowRule::group_channels, "channels per group").Between(1, 1 << 20).Required(),
    Attr("offset_scale", &DcnWindowRule::offset_scale, "scales the window and its offsets about the centre"),
    Attr("remove_center", &DcnWindowRule::remove_center, "1: the window has no point at its centre").Between(0, 1),
};

inline constexpr const char* kDcnWindowSemantics =
    R"(Channels are the last dimension; group g has channels [g * group_channels, (g + 1) * group_channels). A window
    has P = kernel_h * kernel_w - remove_center points in column-major order: point p = i * kernel_h + j is i *
    dilation_w to the right of and j * dilation_h below the window's first point. With remove_center, which needs a
    square kernel of odd size, the point at the centre is omitted and not counted. Offsets are pairs (x, y). With s =
    offset_scale and hx = floor(dilation_w * (kernel_w - 1) / 2), sample p of output column wo is at x = wo * stride_w -
    pad_w + hx + (i * dilation_w - hx + offset_x) * s, and y is computed likewise; integer coordinates are the centres
    of pixels. An output is the sum of its group's bilinear samples, each multiplied by its mask. The mask is used as it
    is: a softmax, if any, is a separate node. Samples a pixel or more outside of the image are 0, as are interpolation
    corners outside of it; a NaN or infinite offset samples 0. Sums are computed in float.)";

/// Positions of the samples of one call.
struct DcnWindow {
  int64_t height, width, out_width, out_pixels;
  int64_t kernel_h, stride_h, stride_w, dilation_h, dilation_w;
  int64_t first_y, first_x;    // centre of the first output's window
  int64_t centre_y, centre_x;  // from a window's first point to its centre
  int64_t removed;             // index of the omitted point, or -1
  float scale;

  DcnWindow(const DcnWindowRule& op, const Shape& input, const Shape& output)
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
        centre_y(op.dilation_h * (op.kernel_h - 1) / 2),
        centre_x(op.dilation_w * (op.kernel_w - 1) / 2),
        removed(op.remove_center != 0 ? op.kernel_h * op.kernel_w / 2 : -1),
        scale(op.offset_scale) {}

  /// Returns the centre of the window of an output pixel.
  POLYOP_HD void Centre(int64_t out, float* y, float* x) const {
    *y = static_cast<float>(out / out_width * stride_h + first_y);
    *x = static_cast<float>(out % out_width * stride_w + first_x);
  }
  /// Returns point p relative to the window's centre, before offsets and scale.
  POLYOP_HD void Point(int64_t p, float* y, float* x) const {
    const int64_t at = removed >= 0 && p >= removed ? p + 1 : p;
    *y = static_cast<float>(at % kernel_h * dilation_h - centre_y);
    *x = static_cast<float>(at / kernel_h * dilation_w - centre_x);
  }
};

/// Layout of offsets and masks: those of group g of a pixel start at `*_step` * pixel + `*_group` * g.
template <class T>
struct DcnWindowData {
  const T *offset, *mask;
  int64_t offset_step, offset_group, mask_step, mask_group;

  /// Separate tensors [..., G*P*2] and [..., G*P].
  static DcnWindowData Separate(const DcnWindowRule& op, const T* offset, const T* mask) {
    const int64_t points = op.points();
    return {offset, mask, 2 * op.group * points, 2 * points, op.group * points, points};
  }
  /// One tensor with `width` values per pixel: each group's offsets, then its masks.
  static DcnWindowData Packed(const DcnWindowRule& op, const T* data, int64_t width) {
    const int64_t points = op.points();
    return {data, data + 2 * points, width, 3 * points, width, 3 * points};
  }
};

/// Checks that indices of pixels fit 32 bits.
inline Status CheckDcnPixels(const Shape& input) {
  if (input[2] == 0 || input[1] <= INT32_MAX / input[2]) return Status::Ok();
  return InvalidArgument("'input': expected at most 2147483647 pixels per image, got ", input[1], " x ", input[2]);
}

}  // namespace polyop
