// SPDX-License-Identifier: Apache-2.0
#include "ops/deform/deform_conv_backward.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/deform/deform_conv_backward.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "ops/deform/deform_conv_shape.h"
#include "ops/deform/deform_sample_backward-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// The channels of a pass that belong to one group of filters.
struct ChannelRun {
  int64_t index, group, lane, channels;  // `lane` is the first channel's index within the pass
};

// A pass computes some blocks of channels of one deform group, for all images. Passes run one after the other: in each,
// output pixels are divided among units, which have separate sums of the image's and of the weights' gradients. So the
// gradients of offsets and masks, which are sums over channels, need no separate sums.
struct ChannelPass {
  int64_t deform_group, first_block, blocks, channel, channels;

  int64_t width() const { return blocks * kBlockChannels; }

  template <class Visit>
  void ForEachRun(const DeformConvShape& s, const Visit& visit) const {
    int64_t index = 0;
    for (int64_t c = channel, last = channel + channels; c < last; ++index) {
      const int64_t group = c / s.group_channels(), end = std::min(last, (group + 1) * s.group_channels());
      visit(ChannelRun{index, group, c - channel, end - c});
      c = end;
    }
  }
};

// How the work is divided, and the layout of a unit's scratch memory. It depends on the shapes alone.
struct BackwardPlan {
  GemmColumns outputs;
  int64_t blocks = 0;       // of a pass
  int64_t passes = 0;       // per deform group
  int64_t tile = 0;         // output pixels
  int64_t parts = 0;        // of an image's output pixels; each is a unit
  int64_t wave = 0;         // images whose units run together
  int64_t runs = 0;         // maximum number of runs of a pass
  int64_t run_columns = 0;  // of a run, padded to a panel
  int64_t column = 0;       // floats per output pixel: samples of all points
  int64_t out_pitch = 0;    // floats per output pixel: gradients of a group's outputs
  int64_t weight_sums = 0;  // floats per run
  int64_t image_plane = 0;  // floats per block

  explicit BackwardPlan(const DeformConvShape& s) : outputs(s.group_outputs()) {}

  static BackwardPlan For(const DeformConvShape& s) {
    constexpr int64_t kWeightFloats = 80 << 10, kTileFloats = 1 << 15, kUnits = 16;
    constexpr int64_t kScratchFloats = 16 << 20;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(GemmTag()));
    const int64_t max_panel = std::max(kGemmVectors * lanes, kBlockChannels);
    BackwardPlan plan(s);
    const int64_t deform_blocks = ChannelBlocks::BlocksFor(s.deform_channels());
    plan.out_pitch = RoundUp(s.group_outputs(), max_panel);
    plan.image_plane = (s.pixels() + 1) * kBlockChannels;
    // The weights of a pass and the sums of their gradients stay in the L2 cache.
    const int64_t block_weights = s.points() * kBlockChannels * plan.out_pitch;
    plan.blocks = std::clamp<int64_t>(kWeightFloats / block_weights, 1, std::min<int64_t>(4, deform_blocks));
    plan.passes = CeilDiv(deform_blocks, plan.blocks);
    plan.blocks = CeilDiv(deform_blocks, plan.passes);
    const int64_t width = plan.blocks * kBlockChannels;
    const int64_t run_channels = std::min({width, s.group_channels(), s.deform_channels()});
    plan.runs = std::min({width, s.groups, (width - 1) / s.group_channels() + 2});
    plan.run_columns = RoundUp(s.points() * run_channels, max_panel);
    plan.column = RoundUp(s.points() * width, max_panel) + kGemmRows;
    plan.weight_sums = RoundUp(s.points() * run_channels, kGemmRows) * plan.out_pitch;

    // Enough pixels for each unit, because units add to separate sums of the weights' gradients.
    constexpr int64_t kUnitPixels = 64;
    const int64_t unit_floats = plan.blocks * plan.image_plane + plan.runs * plan.weight_sums;
    const int64_t units = std::clamp<int64_t>(kScratchFloats / unit_floats, 2, kUnits);
    const double flops =
        4.0 * static_cast<double>(s.out_pixels() * s.points()) * static_cast<double>(width * (s.group_outputs() + 16));
    plan.parts = std::min(
        {CeilDiv(units, s.batch), CeilDiv(s.out_pixels(), kUnitPixels), static_cast<int64_t>(flops / 60 / 20000) + 1});
    plan.tile =
        std::clamp<int64_t>(std::min(kTileFloats / plan.column, s.out_pixels() / plan.parts) / kGemmRows, 1, 16) *
        kGemmRows;
    plan.wave = std::clamp<int64_t>(units / plan.parts, 1, s.batch);
    return plan;
  }

  int64_t max_units() const { return wave * parts; }
  // The floats of each section of a unit's memory.
  int64_t tile_floats() const { return tile * column; }
  int64_t packed_outputs() const { return tile * out_pitch; }
  int64_t image_sums() const { return blocks * image_plane; }
  int64_t unit_floats() const {
    return 3 * tile_floats() + (1 + runs) * packed_outputs() + runs * weight_sums + image_sums();
  }
};

// The memory of a unit.
struct UnitMemory {
  float *columns, *grads, *spare;  // [tile][column]
  float* outputs;                  // gradients of the output of one group, [tile][out_pitch]
  float* packed;                   // the same for each run, in panels
  float* weight_sums;              // [run][point][channel][out_pitch]
  float* image_sums;               // [block][pixels + 1][16]
  int64_t* rows;                   // the rows [rows[0], rows[1]) of image_sums are used

  static UnitMemory At(const BackwardPlan& plan, float* memory, int64_t* rows) {
    UnitMemory unit;
    unit.columns = memory;
    unit.grads = unit.columns + plan.tile_floats();
    unit.spare = unit.grads + plan.tile_floats();
    unit.outputs = unit.spare + plan.tile_floats();
    unit.packed = unit.outputs + plan.packed_outputs();
    unit.weight_sums = unit.packed + plan.runs * plan.packed_outputs();
    unit.image_sums = unit.weight_sums + plan.runs * plan.weight_sums;
    unit.rows = rows;
    return unit;
  }
};

// Copies `channels` of `width` lanes of all points of each pixel: from [pixel][point][width] to
// [pixel][point][channels] if kGather, or back.
template <bool kGather>
void CopyLanes(int64_t pixels, int64_t column, int64_t points, int64_t width, const ChannelRun& run, float* wide,
               float* narrow) {
  for (int64_t p = 0; p < pixels; ++p) {
    for (int64_t k = 0; k < points; ++k) {
      float* const lanes = wide + p * column + k * width + run.lane;
      float* const compact = narrow + p * column + k * run.channels;
      if constexpr (kGather) {
        std::copy_n(lanes, run.channels, compact);
      } else {
        std::copy_n(compact, run.channels, lanes);
      }
    }
  }
}

template <class T>
struct Backward {
  const Context& context;
  DeformConvShape s;
  BackwardPlan plan;
  const T *grad_output, *offset, *mask, *weight;
  DeformConvGradients<T> to;
  const float* images = nullptr;    // channel blocks of the input, with a pixel of 0 after each
  float* packed_weights = nullptr;  // of the pass: [run][panel][output][column]
  float* slopes = nullptr;  // gradients of offsets and masks: [image][deform group][point][y, x, mask][out pixel]
  const int32_t* at_output = nullptr;  // offsets of the outputs of a pixel
  const int32_t* at_pixel = nullptr;   // offsets of the pixels of a tile

  bool needs_samples_grad() const { return to.input != nullptr || slopes != nullptr; }

  ChannelPass PassAt(int64_t index) const {
    const int64_t group = index / plan.passes, first = index % plan.passes * plan.blocks;
    const int64_t blocks = std::min(plan.blocks, ChannelBlocks::BlocksFor(s.deform_channels()) - first);
    const int64_t begin = first * kBlockChannels;
    return {group, first, blocks, group * s.deform_channels() + begin,
            std::min(blocks * kBlockChannels, s.deform_channels() - begin)};
  }

  float* PackedWeights(const ChannelRun& run) const {
    return packed_weights + run.index * plan.run_columns * s.group_outputs();
  }

  // Packs the weights of a pass: a column's weights of all outputs.
  void PackWeights(const ChannelPass& pass) const {
    pass.ForEachRun(s, [&](const ChannelRun& run) {
      const GemmColumns columns(s.points() * run.channels);
      const int64_t outputs = s.group_outputs(), panel_size = outputs * columns.panel();
      const int64_t channel = (pass.channel + run.lane) % s.group_channels();
      // An output's weights are adjacent, but outputs are far apart: one output after the other.
      const T* const weights = weight + run.group * outputs * s.depth() + channel * s.points();
      const int64_t count = s.points() * run.channels, panel = columns.panel();
      const int64_t grain = GrainFor(static_cast<double>(panel_size));
      context.ParallelFor(columns.panels(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          float* to_panel = PackedWeights(run) + p * panel_size;
          for (int64_t o = 0; o < outputs; ++o, to_panel += panel) {
            const T* const from = weights + o * s.depth();
            int64_t k = p * panel / run.channels, c = p * panel % run.channels;
            for (int64_t lane = 0; lane < panel; ++lane) {
              to_panel[lane] = p * panel + lane < count ? ToFloat(from[c * s.points() + k]) : 0.0f;
              if (++c == run.channels) c = 0, ++k;
            }
          }
        }
      });
    });
  }

  // Copies the gradients of the outputs of a run's group to unit.outputs and, in panels, to unit.packed; rows from
  // `count` on are 0.
  void LoadOutputs(const ChannelRun& run, const UnitMemory& unit, int64_t n, int64_t first, int64_t count,
                   int64_t rows) const {
    const T* const from = grad_output + (n * s.outputs + run.group * s.group_outputs()) * s.out_pixels() + first;
    for (int64_t o = 0; o < s.group_outputs(); o += kBlockChannels) {
      InterleaveChannels(from + o * s.out_pixels(), std::min(kBlockChannels, s.group_outputs() - o), s.out_pixels(),
                         count, unit.outputs + o, plan.out_pitch);
    }
    std::fill_n(unit.outputs + count * plan.out_pitch, (rows - count) * plan.out_pitch, 0.0f);
    if (to.weight == nullptr) return;
    const int64_t panel = plan.outputs.panel();
    float* packed = unit.packed + run.index * plan.packed_outputs();
    for (int64_t p = 0; p < plan.outputs.panels(); ++p, packed += plan.tile * panel) {
      for (int64_t r = 0; r < count; ++r) {
        std::copy_n(unit.outputs + r * plan.out_pitch + p * panel, panel, packed + r * panel);
      }
    }
  }

  // Computes the gradients of a tile's samples: weights times gradients of outputs.
  void MultiplyWithWeights(const ChannelPass& pass, const ChannelRun& run, const UnitMemory& unit, int64_t rows) const {
    const bool whole = run.channels == pass.width();
    float* const sums = whole ? unit.grads : unit.spare;
    GemmTile(unit.outputs, rows, plan.out_pitch, at_output, s.group_outputs(), PackedWeights(run),
             GemmColumns(s.points() * run.channels), sums, plan.column);
    if (!whole) CopyLanes<false>(rows, plan.column, s.points(), pass.width(), run, unit.grads, unit.spare);
  }

  // Adds the products of a tile's samples and gradients of outputs to the gradients of the weights.
  void AddWeightGrads(const ChannelPass& pass, const ChannelRun& run, const UnitMemory& unit, int64_t count) const {
    const float* columns = unit.columns;
    if (run.channels != pass.width()) {
      CopyLanes<true>(count, plan.column, s.points(), pass.width(), run, unit.columns, unit.spare);
      columns = unit.spare;
    }
    AddGemmTile(columns, RoundUp(s.points() * run.channels, kGemmRows), 1, at_pixel, count,
                unit.packed + run.index * plan.packed_outputs(), plan.tile * plan.outputs.panel(), plan.outputs,
                unit.weight_sums + run.index * plan.weight_sums, plan.out_pitch);
  }

  // Visits the samples of a tile.
  void VisitSamples(const ChannelPass& pass, const UnitMemory& unit, int64_t n, int64_t first, int64_t count) const {
    const int64_t group = n * s.deform_groups + pass.deform_group, points = s.points(), pixels = s.out_pixels();
    const int64_t blocks = ChannelBlocks::BlocksFor(s.deform_channels());
    const SampleBlocksBackward what{images + (group * blocks + pass.first_block) * plan.image_plane,
                                    to.input != nullptr ? unit.image_sums : nullptr, plan.image_plane, pass.blocks};
    for (int64_t p = 0; p < count; ++p) {
      const int64_t at = first + p, row = at / s.out_width, column = at % s.out_width;
      for (int64_t k = 0; k < points; ++k) {
        const int64_t sample = group * points + k;
        const float y = s.Row(row, k) + ToFloat(offset[2 * sample * pixels + at]);
        const float x = s.Column(column, k) + ToFloat(offset[(2 * sample + 1) * pixels + at]);
        const float factor = mask != nullptr ? ToFloat(mask[sample * pixels + at]) : 1.0f;
        const int64_t lane = p * plan.column + k * pass.width();
        float* const values = to.weight != nullptr ? unit.columns + lane : nullptr;
        SampleCorners corners;
        SampleSlopes slope;
        if (corners.Find(y, x, factor, s.height, s.width)) {
          float dot[4];
          const float* const grad = needs_samples_grad() ? unit.grads + lane : nullptr;
          VisitSample(what, corners, grad, values, dot);
          if (slopes != nullptr) slope = SampleSlopes::Of(corners, dot, factor);
        } else if (values != nullptr) {
          std::fill_n(values, pass.width(), 0.0f);
        }
        if (slopes == nullptr) continue;
        float* const to_slope = slopes + sample * 3 * pixels + at;
        const bool add = pass.first_block > 0;
        to_slope[0] = (add ? to_slope[0] : 0) + slope.y;
        to_slope[pixels] = (add ? to_slope[pixels] : 0) + slope.x;
        to_slope[2 * pixels] = (add ? to_slope[2 * pixels] : 0) + slope.mask;
      }
    }
  }

  // Finds the rows of the image that output pixels [first, last) sample, and sets their sums to 0.
  void ClearRows(const ChannelPass& pass, const UnitMemory& unit, int64_t n, int64_t first, int64_t last) const {
    float low = static_cast<float>(s.height), high = -1;
    for (int64_t k = 0; k < s.points(); ++k) {
      const int64_t sample = (n * s.deform_groups + pass.deform_group) * s.points() + k;
      const T* const from = offset + 2 * sample * s.out_pixels();
      for (int64_t at = first; at < last;) {
        const int64_t row = at / s.out_width, end = std::min(last, (row + 1) * s.out_width);
        const float y = s.Row(row, k);
        for (; at < end; ++at) {
          const float position = y + ToFloat(from[at]);
          low = position < low ? position : low;  // false for NaN
          high = position > high ? position : high;
        }
      }
    }
    low = std::floor(std::max(low, 0.0f));
    high = std::floor(std::min(high, static_cast<float>(s.height - 1))) + 2;
    unit.rows[0] = static_cast<int64_t>(low);
    unit.rows[1] = std::max(unit.rows[0], std::min(s.height, static_cast<int64_t>(high)));
    for (int64_t b = 0; b < pass.blocks; ++b) {
      float* const sums = unit.image_sums + b * plan.image_plane;
      const int64_t row = s.width * kBlockChannels;
      std::fill_n(sums + unit.rows[0] * row, (unit.rows[1] - unit.rows[0]) * row, 0.0f);
      std::fill_n(sums + s.height * row, kBlockChannels, 0.0f);
    }
  }

  // Computes output pixels [first, last) of an image.
  void ComputePart(const ChannelPass& pass, const UnitMemory& unit, int64_t n, int64_t first, int64_t last) const {
    if (to.input != nullptr) ClearRows(pass, unit, n, first, last);
    for (int64_t at = first; at < last; at += plan.tile) {
      const int64_t count = std::min(plan.tile, last - at), rows = RoundUp(count, kGemmRows);
      pass.ForEachRun(s, [&](const ChannelRun& run) {
        LoadOutputs(run, unit, n, at, count, rows);
        if (needs_samples_grad()) MultiplyWithWeights(pass, run, unit, rows);
      });
      VisitSamples(pass, unit, n, at, count);
      if (to.weight == nullptr) continue;
      pass.ForEachRun(s, [&](const ChannelRun& run) { AddWeightGrads(pass, run, unit, count); });
    }
  }

  // Writes the gradients of `count` images from `first` on: sums of their units.
  void WriteInput(const ChannelPass& pass, const Scratch<float>& memory, const Scratch<int64_t>& rows, int64_t first,
                  int64_t count) const {
    const int64_t row_floats = s.width * kBlockChannels;
    const int64_t grain = GrainFor(static_cast<double>(row_floats) / 4);
    context.ParallelFor(count * pass.blocks * s.height, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t y = item % s.height, b = item / s.height % pass.blocks, i = item / s.height / pass.blocks;
        float* total = nullptr;
        for (int64_t u = i * plan.parts; u < (i + 1) * plan.parts; ++u) {
          if (y < rows[2 * u] || y >= rows[2 * u + 1]) continue;
          const UnitMemory unit = UnitMemory::At(plan, memory.data() + u * plan.unit_floats(), nullptr);
          float* const sums = unit.image_sums + b * plan.image_plane + y * row_floats;
          if (total == nullptr) {
            total = sums;
            continue;
          }
          const BlockTag d;
          for (int64_t f = 0; f < row_floats; f += kBlockLanes) {
            hn::StoreU(hn::Add(hn::LoadU(d, total + f), hn::LoadU(d, sums + f)), d, total + f);
          }
        }
        const int64_t channel = pass.channel + b * kBlockChannels;
        const int64_t channels = std::min(kBlockChannels, pass.channel + pass.channels - channel);
        T* const at = to.input + (((first + i) * s.channels + channel) * s.height + y) * s.width;
        if (total != nullptr) {
          WriteChannels(total, s.width, channels, s.pixels(), at);
        } else {
          for (int64_t c = 0; c < channels; ++c) std::fill_n(at + c * s.pixels(), s.width, FromFloat<T>(0));
        }
      }
    });
  }

  // Writes the gradients of the weights of a pass: sums of `units` units.
  void WriteWeights(const ChannelPass& pass, const Scratch<float>& memory, int64_t units) const {
    pass.ForEachRun(s, [&](const ChannelRun& run) {
      const int64_t channel = (pass.channel + run.lane) % s.group_channels();
      const int64_t grain = GrainFor(static_cast<double>(s.group_outputs() * (units + 4)) / 4);
      context.ParallelFor(s.points() * run.channels, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (int64_t column = begin; column < end; ++column) {
          float* total = nullptr;
          for (int64_t u = 0; u < units; ++u) {
            const UnitMemory unit = UnitMemory::At(plan, memory.data() + u * plan.unit_floats(), nullptr);
            float* const sums = unit.weight_sums + run.index * plan.weight_sums + column * plan.out_pitch;
            if (total == nullptr) {
              total = sums;
              continue;
            }
            const BlockTag d;
            for (int64_t o = 0; o < s.group_outputs(); o += kBlockLanes) {
              hn::StoreU(hn::Add(hn::LoadU(d, total + o), hn::LoadU(d, sums + o)), d, total + o);
            }
          }
        }
      });
      // An output's weights are adjacent, but outputs are far apart: some outputs at a time.
      const UnitMemory unit = UnitMemory::At(plan, memory.data(), nullptr);
      const float* const totals = unit.weight_sums + run.index * plan.weight_sums;
      T* const first = to.weight + run.group * s.group_outputs() * s.depth() + channel * s.points();
      const double nanoseconds = static_cast<double>(s.points() * run.channels * kBlockChannels);
      context.ParallelFor(CeilDiv(s.group_outputs(), kBlockChannels), GrainFor(nanoseconds),
                          [&](int64_t begin, int64_t end) {
                            const int64_t last = std::min(s.group_outputs(), end * kBlockChannels);
                            for (int64_t o = begin * kBlockChannels; o < last; ++o) {
                              for (int64_t c = 0; c < run.channels; ++c) {
                                for (int64_t k = 0; k < s.points(); ++k) {
                                  first[o * s.depth() + c * s.points() + k] =
                                      FromFloat<T>(totals[(k * run.channels + c) * plan.out_pitch + o]);
                                }
                              }
                            }
                          });
    });
  }

  void WriteSlopes() const {
    const int64_t pixels = s.out_pixels(), samples = s.batch * s.deform_groups * s.points();
    context.ParallelFor(samples, GrainFor(static_cast<double>(pixels) * 3), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const float* const from = slopes + i * 3 * pixels;
        for (int64_t p = 0; to.offset != nullptr && p < 2 * pixels; ++p)
          to.offset[i * 2 * pixels + p] = FromFloat<T>(from[p]);
        for (int64_t p = 0; to.mask != nullptr && p < pixels; ++p)
          to.mask[i * pixels + p] = FromFloat<T>(from[2 * pixels + p]);
      }
    });
  }

  void WriteBias() const {
    const hn::ScalableTag<float> d;
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), pixels = s.out_pixels();
    context.ParallelFor(s.outputs, GrainFor(static_cast<double>(s.batch * pixels) / 8),
                        [&](int64_t begin, int64_t end) HWY_ATTR {
                          for (int64_t o = begin; o < end; ++o) {
                            double total = 0;
                            for (int64_t n = 0; n < s.batch; ++n) {
                              const T* const plane = grad_output + (n * s.outputs + o) * pixels;
                              auto sum = hn::Zero(d);
                              int64_t p = 0;
                              for (; p + lanes <= pixels; p += lanes) sum = hn::Add(sum, LoadFloat(d, plane + p));
                              total += hn::ReduceSum(d, sum);
                              for (; p < pixels; ++p) total += ToFloat(plane[p]);
                            }
                            to.bias[o] = FromFloat<T>(static_cast<float>(total));
                          }
                        });
  }

  void Run(const Scratch<float>& memory, const Scratch<int64_t>& rows) const {
    const int64_t passes = s.deform_groups * plan.passes, row_groups = CeilDiv(s.out_pixels(), kGemmRows);
    for (int64_t i = 0; i < passes; ++i) {
      const ChannelPass pass = PassAt(i);
      if (needs_samples_grad()) PackWeights(pass);
      for (int64_t image = 0; image < s.batch; image += plan.wave) {
        const int64_t count = std::min(plan.wave, s.batch - image);
        context.ParallelFor(count * plan.parts, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
          for (int64_t u = begin; u < end; ++u) {
            const UnitMemory unit = UnitMemory::At(plan, memory.data() + u * plan.unit_floats(), rows.data() + 2 * u);
            if (image == 0 && to.weight != nullptr) std::fill_n(unit.weight_sums, plan.runs * plan.weight_sums, 0.0f);
            if (image == 0 && pass.channels < pass.width()) {  // no run writes the last lanes
              std::fill_n(unit.grads, plan.tile_floats(), 0.0f);
            }
            const int64_t part = u % plan.parts, first = part * row_groups / plan.parts * kGemmRows;
            const int64_t last = std::min(s.out_pixels(), (part + 1) * row_groups / plan.parts * kGemmRows);
            ComputePart(pass, unit, image + u / plan.parts, first, last);
          }
        });
        if (to.input != nullptr) WriteInput(pass, memory, rows, image, count);
      }
      if (to.weight != nullptr) WriteWeights(pass, memory, plan.max_units());
    }
    if (slopes != nullptr) WriteSlopes();
  }
};

template <class T>
Status DeformConvGradient(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& grad_output,
                          const Tensor<const T, 4>& input, const T* offset, const T* mask,
                          const Tensor<const T, 4>& weight, const DeformConvGradients<T>& gradients) {
  const auto s = DeformConvShape::Of(rule, input.shape(), weight.shape(), grad_output.shape());
  const int64_t samples = s.batch * s.deform_groups * s.points() * s.out_pixels();
  Backward<T> backward{.context = context,
                       .s = s,
                       .plan = BackwardPlan(s),
                       .grad_output = grad_output.data(),
                       .offset = offset,
                       .mask = mask,
                       .weight = weight.data(),
                       .to = gradients};
  if (gradients.bias != nullptr) backward.WriteBias();
  if (samples == 0 || s.channels * s.pixels() == 0 || s.outputs == 0) {
    const auto clear = [](T* to, int64_t count) {
      if (to != nullptr) std::fill_n(to, count, FromFloat<T>(0));
    };
    clear(gradients.input, input.size());
    clear(gradients.offset, 2 * samples);
    clear(gradients.mask, samples);
    clear(gradients.weight, weight.size());
    return Status::Ok();
  }
  const bool needs_slopes = gradients.offset != nullptr || gradients.mask != nullptr;
  if (!needs_slopes && gradients.input == nullptr && gradients.weight == nullptr) return Status::Ok();

  const BackwardPlan plan = backward.plan = BackwardPlan::For(s);
  if (plan.tile_floats() > INT32_MAX)
    return InvalidArgument("'weight': expected columns of a tile of at most 2147483647 values, got ",
                           plan.tile_floats());
  const int64_t parts = s.batch * s.deform_groups, blocks = ChannelBlocks::BlocksFor(s.deform_channels());
  const Scratch<float> images = context.Allocate<float>(parts * blocks * plan.image_plane);
  const Scratch<float> packed = context.Allocate<float>(plan.runs * plan.run_columns * s.group_outputs());
  const Scratch<float> slopes = context.Allocate<float>(needs_slopes ? 3 * samples : 0);
  const Scratch<int32_t> offsets = context.Allocate<int32_t>(s.group_outputs() + plan.tile);
  const Scratch<float> memory = context.Allocate<float>(plan.max_units() * plan.unit_floats());
  const Scratch<int64_t> rows = context.Allocate<int64_t>(plan.max_units() * 2);
  if (!images || !packed || !slopes || !offsets || !memory || !rows)
    return Internal("out of memory: scratch for an input of ", s.channels, " channels");
  for (int64_t o = 0; o < s.group_outputs(); ++o) offsets[o] = static_cast<int32_t>(o);
  for (int64_t p = 0; p < plan.tile; ++p) offsets[s.group_outputs() + p] = static_cast<int32_t>(p * plan.column);
  backward.at_output = offsets.data();
  backward.at_pixel = offsets.data() + s.group_outputs();
  backward.images = ToChannelBlocks(context, input.data(), parts, s.deform_channels(), s.pixels(), images.data(), 0,
                                    blocks, /*zero_pixels=*/1)
                        .data;
  backward.packed_weights = packed.data();
  backward.slopes = needs_slopes ? slopes.data() : nullptr;
  backward.Run(memory, rows);
  return Status::Ok();
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(ConvolutionGradient, DeformConvGradient);

template <class T>
Status DeformConvBackward(const Context& context, const DeformConvRule& rule, const Tensor<const T, 4>& grad_output,
                          const Tensor<const T, 4>& input, const T* offset, const T* mask,
                          const Tensor<const T, 4>& weight, const DeformConvGradients<T>& gradients) {
  return POLYOP_SIMD(ConvolutionGradient, T)(context, rule, grad_output, input, offset, mask, weight, gradients);
}
POLYOP_FOR_FLOATS(DeformConvBackward);
}  // namespace polyop
#endif
