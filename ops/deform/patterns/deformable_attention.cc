// SPDX-License-Identifier: Apache-2.0
// Multi-scale deformable attention (Zhu et al., 2021) as transformers, MMCV and the DETR repositories write it in
// torch:
//
//   grids = 2 * locations - 1
//   for each level: grid_sample(value of the level as [N * M, D, height, width], grids of the level)
//   output = (samples of all levels * weights).sum(-1)
//
// value is [N, S, M, D], locations [N, Q, M, L, P, 2] and weights [N, Q, M, L, P] (first variant), or [N, Q, M, sum of
// P, 2] and [N, Q, M, sum of P] (second variant, where levels may have different numbers of points).
//
// The second variant's method "discrete" (RT-DETRv2) takes one pixel of each level instead, by an index:
//
//   x, y = clamp(int(locations * (width, height) + 0.5), 0, (width, height) - 1)
//
// For polyop's node such a location is moved to the centre of its pixel, where bilinear sampling returns that pixel.
#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "core/elements.h"
#include "core/pattern.h"

namespace polyop {
namespace {

using Values = std::vector<const GraphValue*>;

// The sampling of one level.
struct Level {
  const GraphValue* image = nullptr;  // [N * M, D, height, width]; if is_discrete, a reshaped form
  const GraphValue* grid = nullptr;   // [N * M, Q, P, 2]: 2 * locations - 1; if is_discrete, the locations themselves
  bool is_discrete = false;
};

int64_t Extent(const GraphValue* value, int d) { return (*value->shape())[d]; }

// ---- The nodes ------------------------------------------------------------------------------------------------------

std::optional<Level> Bilinear(const GraphValue* samples) {
  const GraphNode* const sampler = Producer(Trail(samples).back(), {"GridSample"});
  if (sampler == nullptr || sampler->Int("align_corners", 0) != 0) return std::nullopt;
  const std::string mode = sampler->Text("mode", "bilinear");
  if ((mode != "bilinear" && mode != "linear") || sampler->Text("padding_mode", "zeros") != "zeros")
    return std::nullopt;
  return Level{sampler->input(0), sampler->input(1), false};
}

// Returns x of int(x * sizes + 0.5), the integer that the index is computed from; null for others.
const GraphValue* Rounded(const GraphValue* index) {
  constexpr size_t kMaxNodes = 60;
  Values open = {index};
  std::unordered_set<const GraphValue*> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    const GraphNode* const node = open[i] == nullptr ? nullptr : open[i]->producer;
    if (node == nullptr || !seen.insert(open[i]).second || node->Is({"Shape", "Size"})) continue;
    if (node->type != "Cast") {
      open.insert(open.end(), node->inputs.begin(), node->inputs.end());
      continue;
    }
    const auto shifted = Operands(Producer(node->input(0), {"Add"}));
    const GraphNode* const product =
        shifted.has_value() && shifted->second == 0.5 ? Producer(shifted->first, {"Mul"}) : nullptr;
    if (product == nullptr) continue;
    Values factors = product->inputs;
    std::erase_if(factors, [](const GraphValue* v) { return v == nullptr || v->is_constant; });
    if (factors.size() == 1) return factors[0];
  }
  return nullptr;
}

// Recognizes pixels that are gathered by an index.
std::optional<Level> Discrete(const GraphValue* samples) {
  for (const GraphValue* const value : Trail(samples)) {
    const GraphNode* const gather = Producer(value, {"Gather", "GatherND"});
    if (gather == nullptr || gather->input(1) == nullptr || gather->input(1)->is_constant) continue;
    const GraphValue* const grid = Rounded(gather->input(1));
    if (grid == nullptr) return std::nullopt;
    return Level{gather->input(0), grid, true};
  }
  return std::nullopt;
}

// Returns the levels that the samples were gathered from; empty unless all are of the same kind.
std::vector<Level> LevelsOf(const GraphValue* samples) {
  const GraphNode* const joined = Producer(Trail(samples).back(), {"Concat"});
  const Values ends = joined != nullptr ? joined->inputs : Values{samples};
  for (const auto sampled : {Bilinear, Discrete}) {
    std::vector<Level> levels;
    for (const GraphValue* const end : ends) {
      const std::optional<Level> level = sampled(end);
      if (level.has_value()) levels.push_back(*level);
    }
    if (levels.size() == ends.size()) return levels;
  }
  return {};
}

// Returns the level's values as [N * M, D, height, width]; null for others.
const GraphValue* ImageOf(const Level& level) {
  if (!level.is_discrete) return level.image;
  for (const GraphValue* const value : Trail(level.image)) {
    if (Producer(value, {"Reshape"}) != nullptr && value->rank() == 4) return value;
  }
  return nullptr;
}

// Returns the last tensor that fits among those that all ends were moved from; null if there is none.
template <class Fits>
const GraphValue* Common(const Values& ends, const Fits& fits) {
  for (const GraphValue* const value : Trail(ends[0])) {
    if (value->shape() == nullptr || !fits(*value->shape())) continue;
    const bool of_all = std::all_of(ends.begin(), ends.end(), [&](const GraphValue* end) {
      const Values trail = Trail(end);
      return std::find(trail.begin(), trail.end(), value) != trail.end();
    });
    if (of_all) return value;
  }
  return nullptr;
}

// Returns the first tensor that fits among those that `end` was moved from: later ones may be transposed.
template <class Fits>
const GraphValue* First(const GraphValue* end, const Fits& fits) {
  Values trail = Trail(end);
  std::reverse(trail.begin(), trail.end());
  for (const GraphValue* const value : trail) {
    if (value->shape() != nullptr && fits(*value->shape())) return value;
  }
  return nullptr;
}

// Returns x of 2 * x - 1; null for others.
const GraphValue* LocationsOf(const GraphValue* grid) {
  for (const GraphValue* const value : Trail(grid)) {
    const GraphNode* const shifted = Producer(value, {"Sub", "Add"});
    if (shifted == nullptr) continue;
    const auto by = Operands(shifted);
    const double expected = shifted->type == "Sub" ? 1 : -1;
    if (!by.has_value() || by->second != expected || (shifted->type == "Sub" && by->first != shifted->input(0)))
      continue;
    const auto found = Operands(Producer(by->first, {"Mul"}));
    if (found.has_value() && found->second == 2) return found->first;
  }
  return nullptr;
}

// The height and the width of a level: numbers, or those of the shape from which the graph reshapes the image.
struct LevelSize {
  int64_t height = -1, width = -1;
  const GraphValue* target = nullptr;
};

std::optional<LevelSize> SizeOf(const Graph& graph, const GraphValue* image) {
  for (const GraphValue* const value : Trail(image)) {
    const GraphNode* const reshape = Producer(value, {"Reshape"});
    if (reshape == nullptr || value->rank() != 4) continue;
    const GraphValue* const target = reshape->input(1);
    if (Extent(value, 2) > 0 && Extent(value, 3) > 0 && (graph.sizes_are_fixed || Numbers(target).has_value())) {
      return LevelSize{Extent(value, 2), Extent(value, 3), nullptr};
    }
    return LevelSize{-1, -1, target};
  }
  return std::nullopt;
}

std::optional<PatternMatch> Match(const Graph& graph, const GraphNode& sum) {
  const GraphNode* const product = Producer(sum.input(0), {"Mul"});
  if (product == nullptr || product->inputs.size() != 2) return std::nullopt;
  std::vector<Level> levels;
  const GraphValue* factor = nullptr;
  for (const size_t i : {0, 1}) {
    if (levels.empty()) levels = LevelsOf(product->inputs[i]), factor = product->inputs[1 - i];
  }
  if (levels.empty()) return std::nullopt;
  PatternMatch match;
  const auto refused = [&](const char* why) {
    match.refused = why;
    return match;
  };
  const bool is_discrete = levels[0].is_discrete;
  Values maps, grids;
  for (const Level& level : levels) {
    maps.push_back(ImageOf(level));
    grids.push_back(level.grid);
  }
  const auto has_rank_4 = [](const GraphValue* value) { return value != nullptr && value->rank() == 4; };
  if (!std::all_of(maps.begin(), maps.end(), has_rank_4) || !std::all_of(grids.begin(), grids.end(), has_rank_4)) {
    return refused("expected known shapes of its levels");
  }
  std::vector<int64_t> points;
  int64_t pixels = 0;
  for (size_t l = 0; l < levels.size(); ++l) {
    points.push_back(Extent(grids[l], 2));
    pixels += Extent(maps[l], 2) * Extent(maps[l], 3);
    if (points[l] < 1 || Extent(maps[l], 2) < 1 || Extent(maps[l], 3) < 1)
      return refused("expected known shapes of its levels");
  }
  const int64_t queries = Extent(grids[0], 1), depth = Extent(maps[0], 1);
  const int64_t all_points = std::accumulate(points.begin(), points.end(), int64_t{0});
  const GraphValue* const value =
      Common(maps, [&](const Shape& s) { return s.rank() == 4 && s[1] == pixels && s[3] == depth; });
  if (value == nullptr) return refused("expected a tensor [batch, pixels, heads, depth] with the values of all levels");
  const int64_t batch = Extent(value, 0), heads = Extent(value, 2);
  const auto is_of_queries = [&](const Shape& s) {
    return s.rank() >= 4 && s[0] == batch && s[1] == queries && s[2] == heads;
  };
  const GraphValue* const grid =
      Common(grids, [&](const Shape& s) { return is_of_queries(s) && s[s.rank() - 1] == 2; });
  const GraphValue* const locations = grid == nullptr || is_discrete ? grid : LocationsOf(grid);
  if (locations == nullptr || locations->rank() < 5) {
    return refused(is_discrete ? "expected a tensor [batch, queries, heads, …, 2] with the locations of all levels"
                               : "expected a tensor [batch, queries, heads, …, 2] with the locations of all levels, as "
                                 "2 * it - 1");
  }
  const GraphValue* const weights = First(factor, [&](const Shape& s) {
    const bool is_flat = s.rank() == 4 && s[3] == all_points;
    const bool is_by_level = s.rank() == 5 && s[3] == static_cast<int64_t>(levels.size()) && s[4] == points[0];
    return is_of_queries(s) && (is_flat || is_by_level);
  });
  if (weights == nullptr) {
    return refused("expected a tensor [batch, queries, heads, …] with the weights of all levels");
  }
  const GraphValue* output = nullptr;
  for (const GraphValue* const moved : MovedOn(sum.outputs[0], 4)) {
    const Shape* const s = moved->shape();
    const bool fits =
        s != nullptr && s->rank() == 3 && (*s)[0] == batch && (*s)[1] == queries && (*s)[2] == heads * depth;
    if (output == nullptr && fits) output = moved;
  }
  if (output == nullptr) return refused("expected a result of shape [batch, queries, heads * depth]");
  match.inputs = {value, locations, weights};
  match.ranges = {{-2, 2}, {-0.3, 1.3}, {-2, 2}};
  std::vector<int64_t> sizes;
  for (const GraphValue* const map : maps) {
    const std::optional<LevelSize> size = SizeOf(graph, map);
    if (!size.has_value()) return refused("expected recognizable sizes of its levels");
    sizes.insert(sizes.end(), {size->height, size->width});
    if (size->target != nullptr) match.inputs.push_back(size->target);
  }
  match.outputs = {output};
  match.node = "mmdeploy::MMCVMultiScaleDeformableAttention";
  // Sizes of -1 are elements 2 and 3 of the further inputs.
  match.parameters = {{"points", AttrValue::Ints(points)},
                      {"sizes", AttrValue::Ints(sizes)},
                      {"is_discrete", AttrValue::Int(is_discrete)}};
  const auto typical = [](int64_t extent, int64_t otherwise) {
    return static_cast<double>(extent < 0 ? otherwise : extent);
  };
  match.work = typical(batch, 1) * typical(queries, 32) * typical(heads, 8) * static_cast<double>(all_points * depth);
  return match;
}

// ---- The kernel -----------------------------------------------------------------------------------------------------

// Locations [N, Q, M, L, P, 2] and weights [N, Q, M, L, P] of levels with different numbers of points are filled up
// with points of weight 0.
class Attention : public StandardKernel {
 public:
  Attention(std::unique_ptr<StandardKernel> attention, std::vector<int64_t> points, std::vector<int64_t> sizes,
            bool is_discrete)
      : attention_(std::move(attention)),
        points_(std::move(points)),
        sizes_(std::move(sizes)),
        is_discrete_(is_discrete) {
    for (size_t l = 0; l + 1 < points_.size(); ++l) {
      starts_.push_back(starts_[l] + sizes_[2 * l] * sizes_[2 * l + 1]);
    }
  }

  Status Run(std::span<const AnyTensor> inputs, OutputSource& outputs, const Context* context) const override {
    const auto levels = static_cast<int64_t>(points_.size());
    const int64_t most = *std::max_element(points_.begin(), points_.end());
    AnyTensor locations = inputs[1], weights = inputs[2];
    const Shape& given = weights.shape;
    weights.shape = {given[0], given[1], given[2], levels, most};
    locations.shape = {given[0], given[1], given[2], levels, most, 2};
    ScratchOutput filled_locations, filled_weights;
    const bool is_equal = std::count(points_.begin(), points_.end(), most) == levels;
    if (!is_equal) {
      POLYOP_RETURN_IF_ERROR(Fill(inputs[1], 2, &filled_locations, &locations));
      POLYOP_RETURN_IF_ERROR(Fill(inputs[2], 1, &filled_weights, &weights));
    } else if (is_discrete_) {
      POLYOP_RETURN_IF_ERROR(filled_locations.Allocate(0, locations.dtype, locations.shape, &locations.data));
      std::copy_n(static_cast<const float*>(inputs[1].data), locations.shape.NumElements().value_or(0),
                  static_cast<float*>(locations.data));
    }
    if (is_discrete_) MoveToCentres(&locations);
    const AnyTensor tensors[] = {
        inputs[0],
        {const_cast<int64_t*>(sizes_.data()), DType::kI64, true, {levels, 2}},
        {const_cast<int64_t*>(starts_.data()), DType::kI64, true, {levels}},
        locations,
        weights,
    };
    return attention_->Run(tensors, outputs, context);
  }

 private:
  // Copies the points' elements, `each` for a point, to [..., L, P, each]; those of further points are 0.
  Status Fill(const AnyTensor& from, int64_t each, ScratchOutput* scratch, AnyTensor* to) const {
    POLYOP_RETURN_IF_ERROR(scratch->Allocate(0, from.dtype, to->shape, &to->data));
    const auto bytes = static_cast<int64_t>(polyop::SizeOf(from.dtype)) * each;
    const int64_t most = to->shape[4];
    const int64_t rows = to->shape[0] * to->shape[1] * to->shape[2];
    auto* target = static_cast<std::byte*>(to->data);
    const auto* source = static_cast<const std::byte*>(from.data);
    for (int64_t row = 0; row < rows; ++row) {
      for (const int64_t count : points_) {
        target = std::copy_n(source, count * bytes, target);
        target = std::fill_n(target, (most - count) * bytes, std::byte{0});
        source += count * bytes;
      }
    }
    return Status::Ok();
  }

  // Moves locations to the centre of the pixel that an index of integers selects.
  void MoveToCentres(AnyTensor* locations) const {
    auto* xy = static_cast<float*>(locations->data);
    const Shape& shape = locations->shape;
    const int64_t levels = shape[3], count = shape[4];
    for (int64_t row = 0; row < shape[0] * shape[1] * shape[2]; ++row) {
      for (int64_t l = 0; l < levels; ++l) {
        for (int64_t i = 0; i < 2 * count; ++i, ++xy) {
          const int64_t extent = sizes_[static_cast<size_t>(2 * l + 1 - i % 2)];
          const float position = *xy * static_cast<float>(extent) + 0.5f;
          const auto pixel = static_cast<int64_t>(position > -1e9f && position < 1e9f ? position : 0.0f);
          *xy = (static_cast<float>(std::clamp(pixel, int64_t{0}, extent - 1)) + 0.5f) / static_cast<float>(extent);
        }
      }
    }
  }

  const std::unique_ptr<StandardKernel> attention_;
  const std::vector<int64_t> points_, sizes_;
  std::vector<int64_t> starts_ = {0};
  const bool is_discrete_;
};

std::unique_ptr<StandardKernel> MakeKernel(const PatternMatch& match) {
  if (match.inputs.size() != 3) return nullptr;  // computed sizes
  const KnownTensor &value = match.inputs[0]->known, &locations = match.inputs[1]->known;
  const bool is_discrete = match.Parameter("is_discrete") != 0;
  if (is_discrete && locations.dtype != DType::kF32) return nullptr;
  const std::vector<int64_t> points = match.parameters[0].second.ints, sizes = match.parameters[1].second.ints;
  const auto of_rank = [](const KnownTensor& known, int rank) {
    KnownTensor changed = known;
    changed.shape = Shape();
    for (int d = 0; d < rank; ++d) changed.shape->push_back(kUnknownExtent);
    return changed;
  };
  const std::vector<KnownTensor> inputs = {value,
                                           {true, DType::kI64, Shape{1, 2}, nullptr},
                                           {true, DType::kI64, Shape{1}, nullptr},
                                           of_rank(locations, 6),
                                           of_rank(match.inputs[2]->known, 5)};
  auto attention = NodeKernelOf(match, inputs);
  return attention == nullptr ? nullptr : std::make_unique<Attention>(std::move(attention), points, sizes, is_discrete);
}

POLYOP_PATTERN(deformable_attention, {"deformable attention", {"ReduceSum"}, Match, MakeKernel, 2000});

}  // namespace
}  // namespace polyop
