// SPDX-License-Identifier: Apache-2.0
// Bicubic resizing: ONNX's Resize of images with mode cubic, by scales or to sizes, which may be computed at run time.
//
// polyop's nodes take either scales, with one rule (pixel centres at k + 0.5, a = -0.75, repeated border), or sizes,
// with any of ONNX's rules: there the step between pixels is the ratio of the sizes. A session computes the node itself
// by a kernel (cubic_resize_standard.cc), so that the pattern is only one of files.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/elements.h"
#include "core/pattern.h"

namespace polyop {
namespace {

// Returns the operator's name of the rule for coordinates; "" if it has none.
std::string Transformation(const std::string& mode) {
  if (mode == "half_pixel_symmetric") return "half_pixel";  // differs for rounded sizes only
  const bool is_same =
      mode == "half_pixel" || mode == "pytorch_half_pixel" || mode == "align_corners" || mode == "asymmetric";
  return is_same ? mode : "";
}

std::optional<PatternMatch> Match(const Graph&, const GraphNode& node) {
  if (node.Text("mode", "nearest") != "cubic") return std::nullopt;
  const GraphValue *const image = node.input(0), *const output = node.outputs[0];
  const bool by_sizes = node.input(3) != nullptr;
  const GraphValue* const extents = node.input(by_sizes ? 3 : 2);
  if (image == nullptr || extents == nullptr) return std::nullopt;
  AttrValue given;
  const float coefficient = node.attributes->Get("cubic_coeff_a", &given) ? given.floats[0] : -0.75f;
  const std::string mode = node.Text("coordinate_transformation_mode", "half_pixel");
  const std::string policy = node.Text("keep_aspect_ratio_policy", "stretch");
  const int64_t exclude_outside = node.Int("exclude_outside", 0);
  std::vector<int64_t> dims(4);
  std::iota(dims.begin(), dims.end(), 0);
  const bool of_all = !node.attributes->Get("axes", &given);
  if (!of_all) dims = given.ints;
  for (int64_t& dim : dims) dim = (dim % 4 + 4) % 4;

  PatternMatch match;
  match.inputs = {image, extents};
  match.outputs = {output};
  const auto refuse = [&](auto... why) {
    if (match.refused.empty()) match.refused = Concat(why...);
  };
  const char* const lacks = "polyop has no bicubic resize with ";
  if (node.Int("antialias", 0) != 0) refuse(lacks, "antialias ", node.Int("antialias", 0));
  if (policy != "stretch") refuse(lacks, "keep_aspect_ratio_policy ", policy);
  if (Transformation(mode).empty()) refuse(lacks, "coordinate_transformation_mode ", mode);
  if (!(coefficient >= -1 && coefficient <= 0)) refuse(lacks, "cubic_coeff_a ", coefficient);
  const bool of_images = image->rank() == 4 && output->rank() == 4;
  if (!of_images || !std::equal(image->shape()->begin(), image->shape()->begin() + 2, output->shape()->begin())) {
    refuse("expected a resize of the last two dimensions of images");
  }
  const auto has = [&](int64_t dim) { return std::count(dims.begin(), dims.end(), dim) == 1; };
  if (!has(2) || !has(3)) refuse("expected axes of rows and columns");
  const bool one_node = !by_sizes && of_all && mode == "half_pixel" && coefficient == -0.75f && exclude_outside == 0;
  const auto scales = extents->is_constant ? Numbers(extents) : std::nullopt;
  const bool exact = scales.has_value() && std::all_of(scales->begin(), scales->end(), [](double scale) {
                       return scale == std::floor(scale);  // sizes times these scales are integers for any sizes
                     });
  if (!by_sizes && !one_node && mode != "align_corners" && !exact) {
    refuse("its scales may give rounded sizes, for which polyop only supports half pixels");
  }
  match.node = one_node ? "custom::DynamicTRTResize" : "polyop::CubicResize";
  if (!one_node) {
    match.attributes = {{"coordinate_transformation_mode", AttrValue::String(Transformation(mode))},
                        {"cubic_coeff_a", AttrValue::Float(coefficient)},
                        {"exclude_outside", AttrValue::Int(exclude_outside)}};
  }
  // Element i of the scales or sizes is of dimension dims[i].
  match.parameters = {
      {"one_node", AttrValue::Int(one_node)}, {"by_sizes", AttrValue::Int(by_sizes)}, {"dims", AttrValue::Ints(dims)}};
  match.work = output->known.TypicalElements();
  return match;
}

// 768 elements of the result took 1/9 of the time, 16 took 2 us more.
POLYOP_PATTERN(bicubic_resize,
               {.name = "bicubic resize", .ends = {"Resize"}, .match = Match, .min_work = 64, .files_only = true});

}  // namespace
}  // namespace polyop
