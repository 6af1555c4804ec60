// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/standard_node.h"

namespace polyop {
namespace {

enum Input { kImage = 0, kScales = 2, kSizes = 3 };

// Bicubic Resize. Computes the sizes of the operator's second input from the node's scales or sizes, whose element i is
// of dimension `dims[i]`.
class Resize : public StandardKernel {
 public:
  Resize(std::unique_ptr<OperatorCall> resize, std::vector<int> dims)
      : resize_(std::move(resize)), dims_(std::move(dims)) {}

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const bool by_sizes = inputs.size() > kSizes && inputs[kSizes].present;
    const AnyTensor& extents = inputs[by_sizes ? kSizes : kScales];
    const Shape& image = inputs[kImage].shape;
    if (!(extents.shape == Shape{static_cast<int64_t>(dims_.size())})) {
      return InvalidArgument(by_sizes ? "'sizes'" : "'scales'", ": expected ", dims_.size(), " elements, got shape ",
                             ToString(extents.shape));
    }
    int64_t sizes[2];
    for (size_t i = 0; i < dims_.size(); ++i) {
      const int64_t old = image[dims_[i]];
      const int64_t size =
          by_sizes ? static_cast<const int64_t*>(extents.data)[i]
                   : static_cast<int64_t>(static_cast<float>(old) * static_cast<const float*>(extents.data)[i]);
      if (dims_[i] >= 2) {
        sizes[dims_[i] - 2] = size;
      } else if (size != old) {
        return InvalidArgument("the size of dimension ", dims_[i], ": expected ", old,
                               ", because a bicubic Resize keeps the first two dimensions, got ", size);
      }
    }
    const AnyTensor tensors[] = {inputs[kImage], {sizes, DType::kI64, true, {2}}};
    return resize_->Run(tensors, outputs, context);
  }

 private:
  const std::unique_ptr<OperatorCall> resize_;
  const std::vector<int> dims_;
};

// Returns the operator's name of the rule for coordinates; null if it has none.
const char* Transformation(const std::string& mode) {
  for (const char* const same : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"}) {
    if (mode == same) return same;
  }
  return mode == "half_pixel_symmetric" ? "half_pixel" : nullptr;  // differs for rounded sizes only
}

// Returns true if these scales keep the first two dimensions, and give sizes that are not rounded, for which the scales
// are the sizes' ratios.
bool GiveExactSizes(const Shape& image, const std::vector<float>& scales, const std::vector<int>& dims) {
  if (scales.size() != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const double scale = scales[i];
    if (dims[i] < 2) {
      if (scale != 1) return false;
      continue;
    }
    const int64_t extent = image[dims[i]];
    const double size = scale * static_cast<double>(extent == kUnknownExtent ? 1 : extent);
    if (!(size >= 1 && size < 1e9) || size != static_cast<double>(static_cast<int64_t>(size))) return false;
  }
  return true;
}

// Returns the dimension of each element of scales and sizes; nothing if rows or columns are missing.
std::vector<int> ResizedDims(const StandardNode& node) {
  if (!node.Has("axes")) return {0, 1, 2, 3};
  std::vector<int> dims;
  for (const int64_t axis : node.Ints("axes")) {
    if (axis < -4 || axis >= 4) return {};
    dims.push_back(static_cast<int>(axis < 0 ? axis + 4 : axis));
  }
  const auto has = [&](int dim) { return std::count(dims.begin(), dims.end(), dim) == 1; };
  return has(2) && has(3) ? dims : std::vector<int>{};
}

std::unique_ptr<StandardKernel> MakeResize(const StandardNode& node) {
  const KnownTensor &image = node.input(kImage), &sizes = node.input(kSizes);
  const char* const transformation = Transformation(node.Text("coordinate_transformation_mode", "half_pixel"));
  if (node.since < 11 || node.Text("mode", "nearest") != "cubic" || transformation == nullptr || image.rank() != 4 ||
      node.Int("antialias", 0) != 0 || node.Text("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return nullptr;
  }
  std::vector<int> dims = ResizedDims(node);
  if (dims.empty() || (sizes.present && sizes.dtype != DType::kI64)) return nullptr;
  if (!sizes.present) {
    const auto scales = node.input(kScales).Values<float>();
    if (!scales.has_value() || !GiveExactSizes(*image.shape, *scales, dims)) return nullptr;
  }
  // The node's other inputs have no counterpart: the types are those of the image.
  const KnownTensor tensors[] = {image, {true, DType::kI64, Shape{2}, nullptr}};
  auto resize = OperatorCall::Make({node.since, node.release, node.attributes, tensors, node.outputs}, "cubic_resize",
                                   {{"coordinate_transformation_mode", AttrValue::String(transformation)},
                                    {"cubic_coeff_a", AttrValue::Float(node.Float("cubic_coeff_a", -0.75))},
                                    {"exclude_outside", AttrValue::Int(node.Int("exclude_outside", 0))}},
                                   {0, 1}, {0});
  return resize == nullptr ? nullptr : std::make_unique<Resize>(std::move(resize), std::move(dims));
}

bool ResizePays(const StandardNode& node) { return node.output(0).TypicalElements() >= 64; }

POLYOP_STANDARD(resize, {"Resize", MakeResize, ResizePays});

}  // namespace
}  // namespace polyop
