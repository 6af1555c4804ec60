#include <algorithm>

#include "core/words.h"
#include "ops/pillar_scatter/pillar_scatter.h"
#include "ops/pillar_scatter/pillar_scatter_values.h"

namespace polyop {
namespace {

// Copies alone: there is nothing to compute, so the file is compiled once, for every processor.

constexpr int64_t kChannels = 16;  // planes that a task writes: a pillar's share is a cache line of floats

struct Place {
  int64_t picture = -1, cell = 0;
};

// The places of `count` pillars, of which the first `used` are put. `picture` is that of all, or -1: coords say it.
template <class I>
Status FindPlaces(const I* coords, int64_t first, int64_t count, int64_t used, int64_t picture, const Shape& canvas,
                  Place* places) {
  POLYOP_RETURN_IF_ERROR(CheckUsed(used, count));
  for (int64_t p = 0; p < count; ++p) {
    places[p] = {};
    if (p >= used) continue;
    const I* const row = coords + 4 * p;
    const int64_t of = picture >= 0 ? picture : int64_t{row[0]}, y = row[2], x = row[3];
    POLYOP_RETURN_IF_ERROR(CheckPlace(first + p, of, y, x, canvas));
    places[p] = {of, y * canvas[3] + x};
  }
  return Status::Ok();
}

// Writes `width` planes of a picture from `plane` on, whose first channel is `channel`.
template <class Word>
void Scatter(const Word* features, int64_t channels, int64_t channel, int64_t width, std::span<const Place> places,
             int64_t picture, int64_t cells, Word* plane) {
  std::fill_n(plane, width * cells, Word{0});
  const Word* row = features + channel;
  for (const Place& place : places) {
    if (place.picture == picture) {
      for (int64_t c = 0; c < width; ++c) plane[c * cells + place.cell] = row[c];
    }
    row += channels;
  }
}

// `of_picture` pillars belong to each picture, or all of them to any where it is 0.
template <class T>
void ScatterAll(const Context& context, const T* features, std::span<const Place> places, int64_t of_picture,
                Tensor<T, 4> canvas) {
  using Word = WordOf<T>;
  const int64_t channels = canvas.dim(1), cells = canvas.dim(2) * canvas.dim(3);
  const int64_t groups = (channels + kChannels - 1) / kChannels;
  const auto* const from = reinterpret_cast<const Word*>(features);
  auto* const to = reinterpret_cast<Word*>(canvas.data());
  context.ParallelFor(canvas.dim(0) * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t picture = i / groups, channel = i % groups * kChannels;
      const auto first = static_cast<size_t>(picture * of_picture);
      Scatter(from + static_cast<int64_t>(first) * channels, channels, channel, std::min(kChannels, channels - channel),
              of_picture == 0 ? places : places.subspan(first, static_cast<size_t>(of_picture)), picture, cells,
              to + (picture * channels + channel) * cells);
    }
  });
}

template <class T, class I>
Status PillarScatterCpu(const PillarScatter&, const Context& context, Tensor<const T, 2> features,
                        Tensor<const I, 2> coords, std::optional<Tensor<const I, 1>> num, Tensor<T, 4> canvas) {
  const int64_t count = features.dim(0);
  const Scratch<Place> places = context.Allocate<Place>(count);
  if (!places) return Internal("out of memory: ", count, " pillars");
  POLYOP_RETURN_IF_ERROR(FindPlaces(coords.data(), 0, count, num ? int64_t{(*num)[0]} : count, num ? 0 : -1,
                                    canvas.shape(), places.data()));
  ScatterAll(context, features.data(), std::span<const Place>(places.span()), 0, canvas);
  return Status::Ok();
}

template <class T, class I>
Status PillarScatterOfPictures(const PillarScatter&, const Context& context, Tensor<const T, 3> features,
                               Tensor<const I, 3> coords, Tensor<const I, 1> num, Tensor<T, 4> canvas) {
  const int64_t count = features.dim(1);
  const Scratch<Place> places = context.Allocate<Place>(features.dim(0) * count);
  if (!places) return Internal("out of memory: ", features.dim(0) * count, " pillars");
  for (int64_t n = 0; n < features.dim(0); ++n) {
    POLYOP_RETURN_IF_ERROR(FindPlaces(coords.data() + 4 * n * count, n * count, count, int64_t{num[n]}, n,
                                      canvas.shape(), places.data() + n * count));
  }
  ScatterAll(context, features.data(), std::span<const Place>(places.span()), count, canvas);
  return Status::Ok();
}

#define POLYOP_PILLAR_SCATTER(T, I, NAME)                                                  \
  POLYOP_KERNEL(PillarScatter, Device::kCpu, PillarScatter##NAME, PillarScatterCpu<T, I>); \
  POLYOP_KERNEL(PillarScatter, Device::kCpu, PillarScatterOfPictures##NAME, PillarScatterOfPictures<T, I>)
POLYOP_PILLAR_SCATTER(float, int32_t, F32I32);
POLYOP_PILLAR_SCATTER(float, int64_t, F32I64);
POLYOP_PILLAR_SCATTER(Half, int32_t, F16I32);
POLYOP_PILLAR_SCATTER(Half, int64_t, F16I64);
POLYOP_PILLAR_SCATTER(BFloat16, int32_t, BF16I32);
POLYOP_PILLAR_SCATTER(BFloat16, int64_t, BF16I64);
#undef POLYOP_PILLAR_SCATTER

}  // namespace
}  // namespace polyop
