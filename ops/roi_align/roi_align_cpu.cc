#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/roi_align/roi_align_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "core/channel_blocks-inl.h"
#include "core/roi_axis.h"
#include "core/rois.h"
#include "core/simd.h"
#include "ops/roi_align/roi_align.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

struct Tap {
  int32_t index;
  float weight;
};

// The taps of each bin of one axis of one roi: taps[begin[b]] … taps[begin[b + 1]].
struct AxisTaps {
  Tap* taps;
  int32_t* begin;
};

struct Roi {
  int64_t picture = 0;
  RoiAxis y, x;
  AxisTaps rows, columns;
  float scale = 0;  // 1 / samples
};

// Most taps that the bins of an axis can have together.
int64_t TapsBound(const RoiAxis& axis, int64_t bins, int64_t extent) {
  int64_t total = 0;
  for (int64_t b = 0; b < bins; ++b) {
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    total += 2 * (end - begin);
  }
  return total;
}

// Average: samples of a bin that share a pixel share its tap.
void FillMerged(const RoiAxis& axis, int64_t bins, int64_t extent, const AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    out.begin[b] = count;
    const int32_t first = count;
    const auto add = [&](int32_t index, float weight) {
      if (weight == 0) return;
      for (int32_t t = count; t-- > std::max(first, count - 2);) {  // positions are monotonic: only the last two can match
        if (out.taps[t].index != index) continue;
        out.taps[t].weight += weight;
        return;
      }
      out.taps[count++] = {index, weight};
    };
    int64_t begin = 0, end = 0;
    axis.Inside(b, extent, &begin, &end);
    for (int64_t s = begin; s < end; ++s) {
      const LinearTaps taps = RoiTaps(axis.Position(b, s), extent);
      if (!taps.inside) continue;
      add(taps.low, taps.low_weight);
      add(taps.high, taps.high_weight);
    }
  }
  out.begin[bins] = count;
}

// Maximum: two taps for every sample. A bin with samples outside starts with taps of weight 0, whose value 0
// takes part in the maximum.
void FillSamples(const RoiAxis& axis, int64_t bins, int64_t extent, const AxisTaps& out) {
  int32_t count = 0;
  for (int64_t b = 0; b < bins; ++b) {
    out.begin[b] = count;
    int64_t begin = 0, end = 0, inside = 0;
    axis.Inside(b, extent, &begin, &end);
    for (int64_t s = begin; s < end; ++s) {
      const LinearTaps taps = RoiTaps(axis.Position(b, s), extent);
      if (!taps.inside) continue;
      ++inside;
      out.taps[count++] = {taps.low, taps.low_weight};
      out.taps[count++] = {taps.high, taps.high_weight};
    }
    if (inside < axis.samples) out.begin[b] = ~out.begin[b];  // marks that a sample lies outside
  }
  out.begin[bins] = count;
}

void PoolAverage(const Roi& roi, const float* block, int64_t width, int64_t rows, int64_t columns, float* tile) {
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      BlockSum sum;
      sum.Fill(0);
      for (int32_t ty = roi.rows.begin[by]; ty < roi.rows.begin[by + 1]; ++ty) {
        const float* row = block + roi.rows.taps[ty].index * width * kBlockChannels;
        for (int32_t tx = roi.columns.begin[bx]; tx < roi.columns.begin[bx + 1]; ++tx) {
          const Tap& tap = roi.columns.taps[tx];
          sum.Add(row + tap.index * kBlockChannels, roi.rows.taps[ty].weight * tap.weight);
        }
      }
      sum.Store(roi.scale, tile);
      tile += kBlockChannels;
    }
  }
}

void PoolMaximum(const Roi& roi, const float* block, int64_t width, int64_t rows, int64_t columns, float* tile) {
  const auto start = [](int32_t marked) { return marked < 0 ? ~marked : marked; };
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  for (int64_t by = 0; by < rows; ++by) {
    for (int64_t bx = 0; bx < columns; ++bx) {
      const int32_t y_begin = roi.rows.begin[by], x_begin = roi.columns.begin[bx];
      const int32_t y_end = start(roi.rows.begin[by + 1]), x_end = start(roi.columns.begin[bx + 1]);
      const bool any = roi.y.samples > 0 && roi.x.samples > 0;
      BlockSum largest;
      largest.Fill(!any || y_begin < 0 || x_begin < 0 ? 0.0f : kNone);
      for (int32_t ty = start(y_begin); ty < y_end; ty += 2) {
        for (int32_t tx = start(x_begin); tx < x_end; tx += 2) {
          BlockSum sample;
          sample.Fill(0);
          for (int32_t dy = 0; dy < 2; ++dy) {
            const Tap& y = roi.rows.taps[ty + dy];
            for (int32_t dx = 0; dx < 2; ++dx) {
              const Tap& x = roi.columns.taps[tx + dx];
              if (y.weight * x.weight == 0) continue;  // so that 0 * NaN stays out, as in the reference's single taps
              sample.Add(block + (y.index * width + x.index) * kBlockChannels, y.weight * x.weight);
            }
          }
          largest.Max(sample);
        }
      }
      largest.Store(1.0f, tile);
      for (int64_t c = 0; c < kBlockChannels; ++c) tile[c] = tile[c] == kNone ? 0 : tile[c];
      tile += kBlockChannels;
    }
  }
}

template <class T>
Status RoiAlignCpu(const RoiAlign& op, const Context& context, Tensor<const T, 4> input, Tensor<const T, 2> rois,
                   Tensor<T, 4> output) {
  const int64_t count = rois.dim(0), channels = input.dim(1), height = input.dim(2), width = input.dim(3);
  POLYOP_RETURN_IF_ERROR(CheckBatchIndices(rois, input.dim(0)));
  if (output.size() == 0) return Status::Ok();
  if (height > INT32_MAX / std::max<int64_t>(width, 1)) {
    return InvalidArgument("'input' has shape ", ToString(input.shape()), ": pixels of a picture must fit 32 bits");
  }
  const bool average = op.mode == RoiAlign::Mode::kAvg;
  const int64_t rows = op.output_height, columns = op.output_width, bins = rows * columns;

  // The taps of all rois, once: every block of channels uses them.
  const Scratch<Roi> table = context.Allocate<Roi>(count);
  if (!table) return Internal("out of memory: ", count, " rois");
  int64_t taps_total = 0;
  for (int64_t r = 0; r < count; ++r) {
    float box[5];
    for (int k = 0; k < 5; ++k) box[k] = ToFloat(rois[5 * r + k]);
    Roi& roi = table[r];
    roi.picture = static_cast<int64_t>(box[0]);
    roi.x = RoiAxis::Make(box[1], box[3], op.spatial_scale, op.aligned, columns, op.sampling_ratio);
    roi.y = RoiAxis::Make(box[2], box[4], op.spatial_scale, op.aligned, rows, op.sampling_ratio);
    const double samples = static_cast<double>(roi.x.samples) * static_cast<double>(roi.y.samples);
    roi.scale = samples > 0 ? static_cast<float>(1 / samples) : 0;
    taps_total += TapsBound(roi.y, rows, height) + TapsBound(roi.x, columns, width);
  }
  const Scratch<Tap> taps = context.Allocate<Tap>(taps_total);
  const Scratch<int32_t> begins = context.Allocate<int32_t>(count * (rows + columns + 2));
  const Scratch<float> blocked = context.Allocate<float>(ChannelBlocks::FloatsFor(input.dim(0), channels, height * width));
  const int64_t blocks = ChannelBlocks::BlocksFor(channels), items = blocks * count;
  const int64_t grain = GrainFor(static_cast<double>(bins) * 30);
  const Scratch<float> tiles = context.Allocate<float>(Context::NumTasks(items, grain) * bins * kBlockChannels);
  if (!taps || !begins || !blocked || !tiles) return Internal("out of memory: scratch for ", count, " rois of ", ToString(input.shape()));
  int64_t tap_at = 0;
  for (int64_t r = 0; r < count; ++r) {
    Roi& roi = table[r];
    int32_t* begin = begins.data() + r * (rows + columns + 2);
    roi.rows = {taps.data() + tap_at, begin};
    tap_at += TapsBound(roi.y, rows, height);
    roi.columns = {taps.data() + tap_at, begin + rows + 1};
    tap_at += TapsBound(roi.x, columns, width);
  }
  context.ParallelFor(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      (average ? FillMerged : FillSamples)(table[r].y, rows, height, table[r].rows);
      (average ? FillMerged : FillSamples)(table[r].x, columns, width, table[r].columns);
    }
  });

  const ChannelBlocks pictures = ToChannelBlocks(context, input.data(), input.dim(0), channels, height * width, blocked.data());
  context.ParallelFor(items, grain, [&](int64_t task, int64_t begin, int64_t end) {
    float* tile = tiles.data() + task * bins * kBlockChannels;
    for (int64_t item = begin; item < end; ++item) {  // block by block, so that a block stays in the cache
      const int64_t block = item / count, r = item % count;
      const float* pixels = pictures.Block(table[r].picture, block);
      (average ? PoolAverage : PoolMaximum)(table[r], pixels, width, rows, columns, tile);
      const int64_t first = block * kBlockChannels;
      WriteChannels(tile, bins, std::min(kBlockChannels, channels - first), output.data() + (r * channels + first) * bins);
    }
  });
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_CPU_KERNEL(RoiAlign, RoiAlignF32, RoiAlignCpu<float>);
POLYOP_CPU_KERNEL(RoiAlign, RoiAlignF16, RoiAlignCpu<Half>);
POLYOP_CPU_KERNEL(RoiAlign, RoiAlignBF16, RoiAlignCpu<BFloat16>);
}  // namespace polyop
#endif
