// SPDX-License-Identifier: Apache-2.0
// The end of a YOLO file that Ultralytics exports with `nms=True`:
//
//   score, class = scores.max(-1)                        scores: [1, B, C]
//   boxes, score, class = those with score > threshold
//   keep = nms(boxes / extent + class / C, score)[:K]    or of the boxes alone
//   output = pad(cat([boxes[keep], score[keep], class[keep]], 1), to K rows)
//
// NVIDIA's EfficientNMS plugin computes it, in files for TensorRT.
#include <algorithm>
#include <array>

#include "core/pattern.h"

namespace polyop {
namespace {

constexpr size_t kMaxVisited = 40;  // between the boxes that are compared and those that were chosen by score

enum Kind { kBoxes, kScores, kClasses, kKinds };

// A part of the output's rows: from boxes, from the largest scores, or from the classes of the largest scores.
struct Column {
  Kind kind = kBoxes;
  const GraphValue* source = nullptr;  // the boxes, or the scores of all classes
  const GraphNode* kept = nullptr;     // selects the rows
};

bool IsKept(const GraphValue* index) { return Producer(Trail(index).back(), {"NonMaxSuppression"}) != nullptr; }

// Recognizes a part of the rows. Classes are cast to the type of the boxes.
std::optional<Column> ColumnOf(const GraphValue* part) {
  std::vector<const GraphValue*> moved = Trail(part);
  if (const GraphNode* const cast = Producer(moved.back(), {"Cast"})) {
    const auto before = Trail(cast->input(0));
    moved.insert(moved.end(), before.begin(), before.end());
  }
  Column column;
  for (const GraphValue* const value : moved) {
    const GraphNode* const gather = Producer(value, {"Gather"});
    if (column.kept == nullptr && gather != nullptr && IsKept(gather->input(1))) column.kept = gather;
    if (column.source == nullptr && value->rank() == 3 && (*value->shape())[2] == 4) column.source = value;
  }
  if (const GraphNode* const largest = Producer(moved.back(), {"ReduceMax", "ArgMax"})) {
    column.kind = largest->type == "ReduceMax" ? kScores : kClasses;
    column.source = largest->input(0);
  }
  return column.kept != nullptr && column.source != nullptr ? std::optional(column) : std::nullopt;
}

// Returns K of [:K].
std::optional<double> LimitOf(const GraphValue* keep) {
  for (const GraphValue* const value : Trail(keep)) {
    const GraphNode* const cut = Producer(value, {"Slice"});
    if (cut != nullptr && Scalar(cut->input(1)) == 0 && Scalar(cut->input(2)).has_value()) return Scalar(cut->input(2));
  }
  return std::nullopt;
}

// Returns the threshold that the scores of the candidates exceed.
std::optional<double> ThresholdOf(const GraphNode& kept) {
  const GraphNode* const chosen = Producer(kept.input(0), {"GatherND"});
  const GraphNode* const where = chosen != nullptr ? Producer(Trail(chosen->input(1)).back(), {"NonZero"}) : nullptr;
  const GraphNode* const compared = where != nullptr ? Producer(where->input(0), {"Greater"}) : nullptr;
  return compared != nullptr ? Scalar(compared->input(1)) : std::nullopt;
}

// Returns false if numbers of classes are added to the boxes.
bool IsAgnostic(const GraphNode& nms) {
  std::vector<const GraphValue*> open = {nms.input(0)};
  for (size_t i = 0; i < open.size() && i < kMaxVisited; ++i) {
    const GraphNode* const node = open[i] != nullptr ? open[i]->producer : nullptr;
    if (node == nullptr || node->Is({"GatherND", "Shape"})) continue;
    if (node->type == "Add") return false;
    open.insert(open.end(), node->inputs.begin(), node->inputs.end());
  }
  return true;
}

std::optional<PatternMatch> Match(const Graph&, const GraphNode& pad) {
  const GraphNode* const rows = Producer(pad.input(0), {"Concat"});
  if (rows == nullptr || rows->inputs.size() < 3) return std::nullopt;
  std::array<std::optional<Column>, kKinds> by_kind;
  std::vector<int64_t> kinds;
  for (size_t i = 0; i < rows->inputs.size(); ++i) {
    const std::optional<Column> column = ColumnOf(rows->inputs[i]);
    if (!column.has_value() && i < 3) return std::nullopt;
    if (!column.has_value()) continue;
    by_kind[column->kind] = column;
    kinds.push_back(column->kind);
  }
  const auto &boxes = by_kind[kBoxes], &scores = by_kind[kScores], &classes = by_kind[kClasses];
  if (!boxes.has_value() || !scores.has_value() || !classes.has_value()) return std::nullopt;
  const GraphValue* const keep = boxes->kept->input(1);
  const GraphNode* const nms = Producer(Trail(keep).back(), {"NonMaxSuppression"});
  if (nms == nullptr) return std::nullopt;
  PatternMatch match;
  match.at = nms;
  match.outputs = {pad.outputs[0]};
  const auto refused = [&](const char* why) {
    match.refused = why;
    return match;
  };
  if (rows->inputs.size() != 3) {
    return refused("EfficientNMS_TRT has no output of indices, which other columns of the detections need");
  }
  const auto limit = LimitOf(keep), threshold = ThresholdOf(*boxes->kept), overlap = Scalar(nms->input(3));
  const Shape* const output = pad.outputs[0]->shape();
  if (!limit.has_value() || output == nullptr || !(*output == Shape{static_cast<int64_t>(*limit), 6}) ||
      threshold.value_or(-1) < 0 || !overlap.has_value()) {
    return refused("expected fixed thresholds and a fixed number of rows");
  }
  const Shape *const extents = boxes->source->shape(), *const count = scores->source->shape();
  if (extents == nullptr || count == nullptr || count->rank() != 3 || (*count)[0] != 1 ||
      !(*extents == Shape{1, (*count)[1], 4})) {
    return refused("expected boxes [1, B, 4] and scores [1, B, C]");
  }
  if (scores->source->known.dtype.value_or(DType::kF32) != DType::kF32 || classes->source != scores->source) {
    return refused("expected scores of float32, and their classes");
  }
  match.inputs = {boxes->source, scores->source};
  match.parameters = {{"kinds", AttrValue::Ints(kinds)},
                      {"rows", AttrValue::Int(static_cast<int64_t>(*limit))},
                      {"classes", AttrValue::Int((*count)[2])},
                      {"score_threshold", AttrValue::Float(*threshold)},
                      {"iou_threshold", AttrValue::Float(*overlap)},
                      {"is_agnostic", AttrValue::Int(IsAgnostic(*nms))}};
  return match;
}

POLYOP_PATTERN(padded_suppression, {"padded suppression", {"Pad"}, Match, nullptr, 0, true});

}  // namespace
}  // namespace polyop
