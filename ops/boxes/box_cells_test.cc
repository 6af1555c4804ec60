// SPDX-License-Identifier: Apache-2.0
#include "ops/boxes/box_cells.h"

#include <algorithm>
#include <vector>

#include "testing/many_boxes.h"

namespace polyop::testing {
namespace {

// Boxes [count, 4] in cells, box i in layer i % layers, and the box in each slot.
struct Filled {
  Filled(const HostTensor& tensor, float with_offset, int64_t layers) : boxes(tensor), offset(with_offset) {
    const int64_t count = boxes.size() / 4;
    memory.resize(static_cast<size_t>(BoxCells::BytesFor(count)) / sizeof(int64_t));
    cells = BoxCells(memory.data(), count);
    std::vector<float> extents;
    for (int64_t i = 0; i < count; ++i) {
      extents.push_back(std::max(box(i)[2] - box(i)[0], box(i)[3] - box(i)[1]) + offset);
      layer.push_back(i % layers);
    }
    cells.Clear(extents, offset, count);
    for (int64_t i = 0; i < count; ++i) cells.Count(SpanOf(i), layer[static_cast<size_t>(i)]);
    cells.Arrange();
    at.resize(static_cast<size_t>(count), -1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t slot = cells.Add(SpanOf(i), layer[static_cast<size_t>(i)]);
      if (slot < 0) continue;
      EXPECT_LT(slot, count);
      EXPECT_EQ(at.at(static_cast<size_t>(slot)), -1) << "two boxes at slot " << slot;
      at[static_cast<size_t>(slot)] = i;
    }
  }
  const float* box(int64_t i) const { return boxes.data<float>() + 4 * i; }
  CellSpan SpanOf(int64_t i) const { return cells.SpanOf(box(i)[0], box(i)[1], box(i)[2], box(i)[3]); }
  // Exact in double. Boxes for which infinities cancel intersect nothing.
  bool Intersect(int64_t i, int64_t k) const {
    const auto along = [&](int axis) {
      const double low = std::max<double>(box(i)[axis], box(k)[axis]);
      const double high = std::min<double>(box(i)[axis + 2], box(k)[axis + 2]);
      return high - low + static_cast<double>(offset) > 0;
    };
    const auto is_number = [&](int64_t b) { return std::none_of(box(b), box(b) + 4, [](float x) { return x != x; }); };
    return layer[static_cast<size_t>(i)] == layer[static_cast<size_t>(k)] && is_number(i) && is_number(k) && along(0) &&
           along(1);
  }

  const HostTensor& boxes;
  float offset;
  BoxCells cells;
  std::vector<int64_t> memory, layer, at;
};

TEST(BoxCells, FindsEveryIntersectingBox) {
  std::mt19937 rng(1);
  constexpr int64_t kCount = 500, kMax = 20000;
  for (Spread spread : kSpreads) {
    for (float offset : {0.0f, 1.0f}) {
      for (int64_t layers : {1, 3}) {
        SCOPED_TRACE(Concat(NameOf(spread), ", offset ", offset, ", ", layers, " layers"));
        const HostTensor boxes = ManyBoxes(spread, kCount, rng);
        const Filled filled(boxes, offset, layers);
        int64_t intersections = 0, searched = 0;
        for (int64_t i = 0; i < kCount; ++i) {
          CellRow rows[kMax];
          const int64_t found = filled.cells.Rows(filled.SpanOf(i), filled.layer[static_cast<size_t>(i)], kMax, rows);
          if (found < 0) continue;
          ++searched;
          std::vector<bool> found_box(kCount, false);
          for (const CellRow& row : std::span(rows, static_cast<size_t>(found))) {
            for (int32_t slot = row.begin; slot < row.end; ++slot) {
              found_box[static_cast<size_t>(filled.at.at(static_cast<size_t>(slot)))] = true;
            }
          }
          for (int64_t k = 0; k < kCount; ++k) {
            if (!filled.Intersect(i, k)) continue;
            ++intersections;
            EXPECT_TRUE(found_box[static_cast<size_t>(k)]) << "boxes " << i << " and " << k;
          }
        }
        EXPECT_GT(intersections, kCount / 4);
        EXPECT_GT(searched, kCount / 2);
      }
    }
  }
}

TEST(BoxCells, VisitsFewBoxes) {
  std::mt19937 rng(2);
  constexpr int64_t kCount = 20000, kMax = 100;
  for (Spread spread : {Spread::kUniform, Spread::kGiants, Spread::kLine, Spread::kByClass}) {
    SCOPED_TRACE(NameOf(spread));
    const HostTensor boxes = ManyBoxes(spread, kCount, rng);
    const Filled filled(boxes, 0, 1);
    int64_t searched = 0;
    double visited = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      CellRow rows[kMax];
      const int64_t found = filled.cells.Rows(filled.SpanOf(i), 0, kMax, rows);
      searched += found >= 0;
      for (int64_t r = 0; r < found; ++r) visited += rows[r].end - rows[r].begin;
    }
    EXPECT_GT(searched, kCount * 9 / 10);
    EXPECT_LT(visited, static_cast<double>(kCount) * kCount / 10);
  }
}

TEST(BoxCells, ReturnsMinusOneForTooManyCells) {
  const HostTensor boxes = HostTensor::Of(DType::kF32, {3, 4}, {0, 0, 1, 1, 5, 5, 6, 6, 0, 0, 1e6, 1e6});
  const Filled filled(boxes, 0, 1);
  CellRow rows[100];
  EXPECT_EQ(filled.cells.Rows(filled.SpanOf(2), 0, 100, rows), -1);
  EXPECT_GT(filled.cells.Rows(filled.SpanOf(0), 0, 100, rows), 0);
}

}  // namespace
}  // namespace polyop::testing
