// SPDX-License-Identifier: Apache-2.0
// Outputs are divided into tiles. The taps of a tile, the pixels and weights of its outputs, are found once for all
// channels. The lanes of a vector are channels if an image is read from blocks, and outputs if it is read from planes;
// Channels::As has the ways to read it. An item of the parallel loop is a tile with all channels that are read the same
// way, or with some of them if there are few tiles.
#include "ops/sampling/grid_samples.h"

#include <algorithm>
#include <atomic>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sampling/grid_samples.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/channel_blocks-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/stream-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/sampling/grid_taps-inl.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

// One image's grid and output.
template <class T>
struct Outputs {
  const float* grid;
  T* to;
  int64_t points;
  bool stream;  // writes past the caches if T is float
  Requantize<T> codes;
};

// Samples a row of a tile from one plane. Taps at -1 are outside. `entry` is the row's first entry in the table.
template <class Table, class T>
void GatherRow(const float* plane, const Table& table, int64_t entry, int64_t count, T* to,
               const Requantize<T>& codes) {
  const F d;
  const I di;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < count; i += lanes) {
    VF sum = hn::Zero(d);
    for (int k = 0; k < Table::kTaps; ++k) {
      // Taps outside read pixel 0 and discard it, so that a NaN there does not spread.
      const VI offset = hn::LoadU(di, table.offset + k * Table::kOutputs + entry + i);
      const auto inside = hn::RebindMask(d, hn::Ge(offset, hn::Zero(di)));
      const VF pixel = hn::IfThenElseZero(inside, hn::GatherIndex(d, plane, hn::Max(offset, hn::Zero(di))));
      sum = hn::MulAdd(pixel, hn::LoadU(d, table.weight + k * Table::kOutputs + entry + i), sum);
    }
    if (i + lanes <= count) {
      StoreFloat(sum, d, to + i, codes);
    } else {
      StoreFloatN(sum, d, to + i, static_cast<size_t>(count - i), codes);
    }
  }
}

// Samples a row of a tile for up to 16 channels, which are `stride` apart. A tap is one load of 16 channels; the block
// has a pixel of zeros for taps outside. With kStream, whole cache lines bypass the caches; they begin at the same
// indices of every channel.
template <bool kStream, class Table, class Element, class T>
void SampleRow(const Element* block, const Table& table, int64_t entry, int64_t count, int64_t channels, int64_t stride,
               T* to, const Requantize<T>& codes) {
  constexpr int64_t kPiece = 64;
  HWY_ALIGN float piece[kPiece * kBlockChannels];
  constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
  const int64_t before = kStream ? std::min(count, ElementsBeforeLine(to)) : 0;
  for (int64_t c = 0; c < channels && before % kLine != count % kLine; ++c) {  // a row ends within a line
    PrefetchForWrite(to + c * stride);
    PrefetchForWrite(to + c * stride + count - 1);
  }
  int64_t size = 0;
  for (int64_t first = 0; first < count; first += size) {
    size = first < before ? before : std::min(kPiece, count - first);
    for (int64_t i = 0; i < size; ++i) {
      BlockSum sum;
      sum.Fill(0);
      for (int k = 0; k < Table::kTaps; ++k) {
        const int64_t tap = k * Table::kOutputs + entry + first + i;
        sum.Add(block + table.offset[tap] * kBlockChannels, table.weight[tap]);
      }
      sum.Store(1, piece + i * kBlockChannels);
    }
    const int64_t whole = !kStream || first < before ? 0 : size / kLine * kLine;
    if constexpr (kStream) WriteChannels<true>(piece, whole, channels, stride, to + first);
    if (whole == size) continue;
    WriteChannels(piece + whole * kBlockChannels, size - whole, channels, stride, to + first + whole, kBlockChannels,
                  codes);
  }
}

// Some channels of an image and how they are read.
template <class T>
struct Channels {
  using Element = BlockElement<T>;
  enum class As {
    kPlanes,  // gathered from planes of f32
    kBlocks,  // from a copy of the image in blocks of 16 channels: taps may be anywhere
    kBoxes,   // from copies of the pixels that each tile reads, if these are near each other
  } as = As::kPlanes;
  const float* planes = nullptr;
  const Element* blocks = nullptr;
  const T* image = nullptr;      // for kBoxes: the first channel's plane
  const Box* boxes = nullptr;    // one per tile
  int64_t first = 0, count = 0;  // channels
  int64_t unit_size = 0;         // elements of a plane or block

  int64_t PerUnit() const { return as == As::kPlanes ? 1 : kBlockChannels; }
  int64_t units() const { return (count + PerUnit() - 1) / PerUnit(); }
};

constexpr int64_t kMaxBox = 2048;  // pixels: 128 KiB of a block, on a task's stack

// Copies a box of up to 16 channels of an image of size `whole`, followed by a pixel of zeros.
template <class T, class Element>
void CopyBox(const T* plane, int64_t channels, const Box& whole, const Box& box, Element* to,
             const Requantize<T>& codes) {
  for (int64_t z = 0; z < box.size[2]; ++z) {
    for (int64_t y = 0; y < box.size[1]; ++y) {
      const int64_t row = ((box.low[2] + z) * whole.size[1] + box.low[1] + y) * whole.size[0] + box.low[0];
      InterleaveChannels(plane + row, channels, whole.pixels(), box.size[0], to, kBlockChannels, codes);
      to += box.size[0] * kBlockChannels;
    }
  }
  std::fill_n(to, kBlockChannels, Element{});
}

template <int kAxes, int kPerAxis, class T>
void Sample(const Context& context, const Axis* axes, const Tiling& tiling, const Channels<T>& channels,
            const Outputs<T>& outputs) {
  using Table = TapTable<kAxes, kPerAxis>;
  using As = typename Channels<T>::As;
  using Element = typename Channels<T>::Element;
  const int64_t tiles = tiling.count(), units = channels.units();
  // If there are few tiles, several tasks share one, each with some of the channels.
  const int64_t parts = std::min(units, (16 + tiles - 1) / tiles), per_part = (units + parts - 1) / parts;
  const double outputs_per_item = static_cast<double>(std::min(outputs.points, tiling.tile_height * tiling.tile_width));
  const double per_output =
      2.0 * Table::kTaps + static_cast<double>(per_part) * (channels.as == As::kPlanes ? 1 : 2) * Table::kTaps;
  Box whole;
  for (int a = 0; a < kAxes; ++a) whole.size[a] = static_cast<int32_t>(axes[a].extent);
  const auto sample = [&]<bool kStream>(const Element* data, const Table& table, const Tile& tile, int64_t some,
                                        T* to) {
    for (int64_t r = 0; r < tile.height; ++r) {
      SampleRow<kStream>(data, table, r * tile.pitch, tile.width, some, outputs.points, to + r * tiling.width,
                         outputs.codes);
    }
  };
  context.ParallelFor(tiles * parts, GrainFor(outputs_per_item * per_output), [&](int64_t begin, int64_t end) {
    Table table;
    HWY_ALIGN Element copy[(kMaxBox + 1) * kBlockChannels];
    int64_t filled = -1;
    for (int64_t item = begin; item < end; ++item) {
      const int64_t index = item / parts, part = item % parts;
      const Tile tile(tiling, index);
      const Box& box = channels.as == As::kBoxes ? channels.boxes[index] : whole;
      if (index != filled) {
        const int64_t outside = channels.as == As::kPlanes ? -1 : box.pixels();
        table.Fill(axes, outputs.grid, tiling.width, tile, box, static_cast<int32_t>(outside));
      }
      filled = index;
      for (int64_t unit = part * per_part; unit < std::min(units, (part + 1) * per_part); ++unit) {
        const int64_t channel = unit * channels.PerUnit();
        T* const to = outputs.to + (channels.first + channel) * outputs.points + tile.row * tiling.width + tile.column;
        if (channels.as == As::kPlanes) {
          const float* const plane = channels.planes + unit * channels.unit_size;
          for (int64_t r = 0; r < tile.height; ++r) {
            GatherRow(plane, table, r * tile.pitch, tile.width, to + r * tiling.width, outputs.codes);
          }
          continue;
        }
        const int64_t some = std::min(kBlockChannels, channels.count - channel);
        const Element* data = channels.blocks + unit * channels.unit_size;
        if (channels.as == As::kBoxes) {
          CopyBox(channels.image + channel * whole.pixels(), some, whole, box, copy, outputs.codes);
          data = copy;
        }
        if constexpr (std::is_same_v<T, float>) {
          if (outputs.stream) {
            sample.template operator()<true>(data, table, tile, some, to);
            continue;
          }
        }
        sample.template operator()<false>(data, table, tile, some, to);
      }
    }
    if (outputs.stream) hwy::FlushStream();
  });
}

// Returns how many of the channels are sampled from blocks or boxes. The rest is gathered from planes, because the copy
// does not pay for fewer than 4 channels.
int64_t ChannelsInBlocks(int64_t channels) {
  return channels % kBlockChannels < 4 ? channels - channels % kBlockChannels : channels;
}

// Finds the box of pixels that each tile of an image's outputs reads. Returns whether the boxes are so small that
// copying them tile by tile, while in a core's cache, is less work than copying the image and reading all over it.
template <int kAxes, int kPerAxis>
bool FindBoxes(const Context& context, const Axis* axes, const Tiling& tiling, const float* grid, int64_t pixels,
               Box* boxes) {
  const double outputs = static_cast<double>(tiling.tile_height * tiling.tile_width);
  std::atomic<bool> near = true;
  context.ParallelFor(tiling.count(), GrainFor(outputs * kAxes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && near.load(std::memory_order_relaxed); ++i) {
      boxes[i] = BoxOf<kAxes, kPerAxis>(axes, grid, tiling.width, Tile(tiling, i));
      if (boxes[i].pixels() > kMaxBox) near = false;
    }
  });
  if (!near) return false;
  int64_t total = 0;
  for (int64_t i = 0; i < tiling.count(); ++i) total += boxes[i].pixels();
  return total <= 2 * std::max(pixels, tiling.height * tiling.width);
}

template <int kAxes, int kPerAxis, class T>
Status SampleImages(const Context& context, const Axis* axes, const Tensor<const T, kAxes + 2>& input,
                    const float* grid, const Tensor<T, kAxes + 2>& output, const Requantize<T>& codes) {
  using Table = TapTable<kAxes, kPerAxis>;
  using As = typename Channels<T>::As;
  constexpr bool kF32 = std::is_same_v<T, float>;
  using Element = typename Channels<T>::Element;
  constexpr int64_t kMax = 1 << 24;  // maximum elements of copied channels at a time
  const int64_t channels = input.dim(1), width = output.dim(kAxes + 1), pixels = PlanePixels(input.shape()),
                points = PlanePixels(output.shape());
  // Outputs are streamed if cache lines begin at the same index of each channel.
  constexpr int64_t kLine = kCacheLine / static_cast<int64_t>(sizeof(T));
  const bool stream =
      kF32 && points % kLine == 0 && ShouldStream(points * static_cast<int64_t>(sizeof(T)), output.size() / points);
  // Tiles begin at cache lines, in every row of outputs if rows are multiples of a line.
  const int64_t before = stream ? ElementsBeforeLine(output.data()) : 0, cut = before == 0 ? 0 : kLine - before;
  const Tiling runs{1, points, 1, Table::kOutputs, cut};  // for scattered taps
  const int64_t tile_width = Table::kOutputs < 512 ? 16 : 32;
  const Tiling squares{points / width, width, std::min(tile_width, Table::kOutputs / tile_width), tile_width, cut};

  const int64_t block_size = (pixels + 1) * kBlockChannels,
                plane_step = kF32 ? channels : std::max<int64_t>(1, kMax / pixels);
  const int64_t block_step = std::max<int64_t>(1, kMax / block_size) * kBlockChannels;
  // The image is not copied as a whole if it is very large or has few outputs.
  const bool copied = points * Table::kTaps * 2 >= pixels && block_size <= kMax;
  const int64_t anywhere = copied ? ChannelsInBlocks(channels) : 0, near = ChannelsInBlocks(channels);
  const bool find_boxes = channels >= 4 && points >= 4096;  // worth finding out where the taps are
  const Scratch<Box> boxes = context.Allocate<Box>(find_boxes ? squares.count() : 0);
  const int64_t copied_blocks = ChannelBlocks::BlocksFor(std::min(anywhere, block_step));
  const int64_t copied_planes = kF32 ? 0 : std::min(channels - anywhere, plane_step);
  const Scratch<Element> blocks = context.Allocate<Element>(copied_blocks * block_size);
  const Scratch<float> widened = context.Allocate<float>(copied_planes * pixels);
  if (!blocks || !widened || (find_boxes && !boxes)) {
    return Internal("out of memory: scratch for 'input' of shape ", ToString(input.shape()));
  }

  for (int64_t n = 0; n < input.dim(0); ++n) {
    const T* image = input.data() + n * channels * pixels;
    const Outputs<T> outputs{grid + n * points * kAxes, output.data() + n * channels * points, points, stream, codes};
    const auto planes = [&](const Tiling& tiling, int64_t first_channel) {
      for (int64_t first = first_channel; first < channels; first += plane_step) {
        Channels<T> part{
            .as = As::kPlanes, .first = first, .count = std::min(plane_step, channels - first), .unit_size = pixels};
        if constexpr (kF32) {
          part.planes = image + first * pixels;
        } else {
          context.ParallelFor(part.count * pixels, 1 << 14, [&](int64_t begin, int64_t end) HWY_ATTR {
            WidenRow(image + first * pixels + begin, end - begin, widened.data() + begin, codes);
          });
          part.planes = widened.data();
        }
        Sample<kAxes, kPerAxis>(context, axes, tiling, part, outputs);
      }
    };
    if (find_boxes && FindBoxes<kAxes, kPerAxis>(context, axes, squares, outputs.grid, pixels, boxes.data())) {
      if (kF32 && kPerAxis == 1) {  // a copy does not pay for pixels that are read once
        planes(squares, 0);
        continue;
      }
      const Channels<T> part{.as = As::kBoxes, .image = image, .boxes = boxes.data(), .first = 0, .count = near};
      Sample<kAxes, kPerAxis>(context, axes, squares, part, outputs);
      planes(squares, near);
      continue;
    }
    for (int64_t first = 0; first < anywhere; first += block_step) {
      const Channels<T> part{.as = As::kBlocks,
                             .blocks = blocks.data(),
                             .first = first,
                             .count = std::min(block_step, anywhere - first),
                             .unit_size = block_size};
      ToChannelBlocks(context, image, 1, anywhere, pixels, blocks.data(), first / kBlockChannels, part.units(), 1,
                      codes);
      Sample<kAxes, kPerAxis>(context, axes, runs, part, outputs);
    }
    planes(runs, anywhere);
  }
  return Status::Ok();
}

template <int kAxes, class T>
Status SampleBy(const Context& context, GridRule::Interpolation interpolation, const Axis* axes,
                const Tensor<const T, kAxes + 2>& input, const float* points, const Tensor<T, kAxes + 2>& output,
                const Requantize<T>& codes = {}) {
  switch (interpolation) {
    case GridRule::Interpolation::kNearest: return SampleImages<kAxes, 1>(context, axes, input, points, output, codes);
    case GridRule::Interpolation::kBilinear: return SampleImages<kAxes, 2>(context, axes, input, points, output, codes);
    case GridRule::Interpolation::kBicubic: break;
  }
  return SampleImages<kAxes, kAxes == 2 ? 4 : 2>(context, axes, input, points, output, codes);
}

// Dispatch tables take templates with one argument.
template <class T>
Status SamplePlanes(const Context& context, GridRule::Interpolation interpolation, const Axis* axes,
                    const Tensor<const T, 4>& input, const float* points, const Tensor<T, 4>& output) {
  return SampleBy<2>(context, interpolation, axes, input, points, output);
}
template <class T>
Status SampleSpaces(const Context& context, GridRule::Interpolation interpolation, const Axis* axes,
                    const Tensor<const T, 5>& input, const float* points, const Tensor<T, 5>& output) {
  return SampleBy<3>(context, interpolation, axes, input, points, output);
}

Status SampleCodePlanes(const Context& context, GridRule::Interpolation interpolation, const Axis* axes,
                        const Tensor<const Q8, 4>& input, const float* points, const Requantize<Q8>& codes,
                        const Tensor<Q8, 4>& output) {
  return SampleBy<2>(context, interpolation, axes, input, points, output, codes);
}
Status SampleCodeSpaces(const Context& context, GridRule::Interpolation interpolation, const Axis* axes,
                        const Tensor<const Q8, 5>& input, const float* points, const Requantize<Q8>& codes,
                        const Tensor<Q8, 5>& output) {
  return SampleBy<3>(context, interpolation, axes, input, points, output, codes);
}

template <class T>
void WidenAll(const Context& context, const T* from, int64_t count, float* to) {
  context.ParallelFor(count, 1 << 14,
                      [&](int64_t begin, int64_t end) HWY_ATTR { WidenRow(from + begin, end - begin, to + begin); });
}

template <class T>
void NarrowAll(const Context& context, const float* from, int64_t count, T* to) {
  context.ParallelFor(count, 1 << 14,
                      [&](int64_t begin, int64_t end) HWY_ATTR { NarrowRow(from + begin, end - begin, to + begin); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace polyop
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace polyop {
POLYOP_SIMD_TABLES(Planes, SamplePlanes);
POLYOP_SIMD_TABLES(Spaces, SampleSpaces);
POLYOP_SIMD_TABLES(Widen, WidenAll);
POLYOP_SIMD_TABLES(Narrow, NarrowAll);

template <class T>
Status Sample2d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 4>& input, const float* points, const Tensor<T, 4>& output) {
  return POLYOP_SIMD(Planes, T)(context, interpolation, axes, input, points, output);
}
POLYOP_FOR_FLOATS(Sample2d);

template <class T>
Status Sample3d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                const Tensor<const T, 5>& input, const float* points, const Tensor<T, 5>& output) {
  return POLYOP_SIMD(Spaces, T)(context, interpolation, axes, input, points, output);
}
POLYOP_FOR_FLOATS(Sample3d);

HWY_EXPORT(SampleCodePlanes);
Status SampleQuantized2d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                         const Tensor<const Q8, 4>& input, const float* points, const Requantize<Q8>& codes,
                         const Tensor<Q8, 4>& output) {
  return HWY_DYNAMIC_DISPATCH(SampleCodePlanes)(context, interpolation, axes, input, points, codes, output);
}
HWY_EXPORT(SampleCodeSpaces);
Status SampleQuantized3d(const Context& context, GridRule::Interpolation interpolation, const GridAxis* axes,
                         const Tensor<const Q8, 5>& input, const float* points, const Requantize<Q8>& codes,
                         const Tensor<Q8, 5>& output) {
  return HWY_DYNAMIC_DISPATCH(SampleCodeSpaces)(context, interpolation, axes, input, points, codes, output);
}

template <class T>
void WidenPoints(const Context& context, const T* from, int64_t count, float* to) {
  POLYOP_SIMD(Widen, T)(context, from, count, to);
}
POLYOP_FOR_FLOATS(WidenPoints);

template <class T>
void NarrowPoints(const Context& context, const float* from, int64_t count, T* to) {
  POLYOP_SIMD(Narrow, T)(context, from, count, to);
}
POLYOP_FOR_FLOATS(NarrowPoints);
}  // namespace polyop
#endif
