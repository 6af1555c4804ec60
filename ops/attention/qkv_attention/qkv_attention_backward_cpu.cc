// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/qkv_attention/qkv_attention_backward_cpu.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "kernels/cpu/gemm-inl.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/softmax-inl.h"
#include "kernels/cpu/widen-inl.h"
#include "ops/attention/qkv_attention/qkv_attention_backward.h"

HWY_BEFORE_NAMESPACE();
namespace polyop {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t RoundUp(int64_t count, int64_t multiple) { return (count + multiple - 1) / multiple * multiple; }

// Packs rows [count][depth] as the weights of `count` outputs.
template <class T>
void PackOutputs(const T* rows, const GemmColumns& columns, int64_t depth, float* packed) {
  const auto fill = [&](int64_t o, float* to, int64_t stride) {
    for (int64_t e = 0; e < depth; ++e) to[e * stride] = ToFloat(rows[o * depth + e]);
  };
  for (int64_t p = 0; p < columns.panels(); ++p) {
    PackPanel(columns, p, depth, fill, packed + p * columns.panel() * depth);
  }
}

// Packs rows [count][outputs] as the weights of `outputs` outputs with a depth of `count`.
template <class T>
void PackDepth(const T* rows, int64_t count, const GemmColumns& columns, float* packed) {
  const int64_t panel = columns.panel();
  for (int64_t p = 0; p < columns.panels(); ++p, packed += count * panel) {
    const int64_t first = p * panel, some = std::min(panel, columns.outputs - first);
    for (int64_t r = 0; r < count; ++r) {
      WidenRow(rows + r * columns.outputs + first, some, packed + r * panel);
      std::fill_n(packed + r * panel + some, panel - some, 0.0f);
    }
  }
}

// The sizes of the scratch memory of a block of queries. A tile consists of some queries.
struct BackwardSizes {
  int64_t queries, keys, size, values;
  GemmColumns of_keys, of_size, of_values;  // outputs of the products
  int64_t rows;                             // of a tile, a multiple of kGemmRows
  int64_t key_rows, pitch;                  // keys, rounded up; floats of a row of weights

  BackwardSizes(const Shape& query, const Shape& value)
      : queries(query[1]),
        keys(value[1]),
        size(query[2]),
        values(value[2]),
        of_keys(keys),
        of_size(size),
        of_values(values),
        rows(std::min(std::clamp<int64_t>(65536 / std::max<int64_t>(keys, 1) / kGemmRows, 1, 16) * kGemmRows,
                      RoundUp(queries, kGemmRows))),
        key_rows(RoundUp(keys, kGemmRows)),
        pitch(std::max(of_keys.stride(), key_rows)) {}

  int64_t Packed() const { return of_keys.stride() * (size + values) + of_size.stride() * keys; }
  int64_t Sums() const { return key_rows * (of_size.stride() + of_values.stride()); }
  int64_t OfTile() const { return rows * (2 * (of_size.stride() + of_values.stride() + pitch) + of_size.stride()); }
  int64_t OfBlock() const { return Packed() + OfTile(); }

  int64_t tiles() const { return (queries + rows - 1) / rows; }
  // Returns the number of blocks that the tiles of a batch entry are divided into, which have separate sums. With few
  // batch entries there are several blocks, so that there is work for several threads.
  int64_t Blocks(int64_t batch) const {
    constexpr int64_t kEnoughItems = 8, kBytes = 64 << 20;
    constexpr double kOperationsOfBlock = 1 << 20;
    if (batch >= kEnoughItems) return 1;
    const int64_t room = kBytes / (std::max<int64_t>(Sums() * batch, 1) * static_cast<int64_t>(sizeof(float)));
    const double operations = static_cast<double>(queries * keys) * static_cast<double>(3 * size + 2 * values);
    const auto by_work = static_cast<int64_t>(operations / kOperationsOfBlock);
    return std::clamp<int64_t>(std::min({room, tiles(), by_work}), 1, (kEnoughItems + batch - 1) / batch);
  }
};

template <class T>
struct AttentionBackward {
  Tensor<const T, 3> grad_output, query, key, value;
  std::optional<Tensor<T, 3>> grad_query, grad_key, grad_value;
  const BackwardSizes& sizes;
  const int32_t* along;  // 0, 1, 2, …
  const int32_t* down;   // 0, pitch, 2 * pitch, …

  // Writes the gradients of the queries in tiles [first_tile, last_tile) of a batch entry, and sets `sums` to their
  // share of the gradients of keys and values.
  void Compute(int64_t batch, int64_t first_tile, int64_t last_tile, float* scratch, float* sums) const {
    const BackwardSizes& s = sizes;
    const auto take = [&](int64_t count) {
      float* const at = scratch;
      scratch += count;
      return at;
    };
    float* const keys = take(s.of_keys.stride() * s.size);
    float* const values = take(s.of_keys.stride() * s.values);
    float* const key_depth = take(s.of_size.stride() * s.keys);
    float *const of_keys = sums, *const of_values = sums + s.key_rows * s.of_size.stride();
    float* const queries = take(s.rows * s.of_size.stride());
    float* const packed_queries = take(s.rows * s.of_size.stride());
    float* const grads = take(s.rows * s.of_values.stride());
    float* const packed_grads = take(s.rows * s.of_values.stride());
    float* const weights = take(s.rows * s.pitch);
    float* const of_weights = take(s.rows * s.pitch);
    float* const of_queries = take(s.rows * s.of_size.stride());
    const bool of_scores = grad_query || grad_key;
    const float scale = Scale();
    PackOutputs(key.data() + batch * s.keys * s.size, s.of_keys, s.size, keys);
    if (of_scores) PackOutputs(value.data() + batch * s.keys * s.values, s.of_keys, s.values, values);
    if (grad_query) PackDepth(key.data() + batch * s.keys * s.size, s.keys, s.of_size, key_depth);
    std::fill_n(sums, s.Sums(), 0.0f);
    std::fill_n(weights, 2 * s.rows * s.pitch, 0.0f);
    for (int64_t tile = first_tile; tile < last_tile; ++tile) {
      const int64_t first = tile * s.rows;
      const int64_t row = batch * s.queries + first, count = std::min(s.rows, s.queries - first);
      const int64_t padded = RoundUp(count, kGemmRows);
      const T *const query_rows = query.data() + row * s.size, *const grad_rows = grad_output.data() + row * s.values;
      std::fill_n(queries, padded * s.size, 0.0f);
      std::fill_n(grads, padded * s.values, 0.0f);
      WidenRow(query_rows, count * s.size, queries, scale);
      WidenRow(grad_rows, count * s.values, grads);
      GemmTile(queries, padded, s.size, along, s.size, keys, s.of_keys, weights, s.pitch);
      for (int64_t r = 0; r < count; ++r) Softmax(weights + r * s.pitch, s.keys);
      if (grad_value) {
        PackDepth(grad_rows, count, s.of_values, packed_grads);
        AddTransposed(weights, count, packed_grads, s.of_values, of_values);
      }
      if (!of_scores) continue;
      GemmTile(grads, padded, s.values, along, s.values, values, s.of_keys, of_weights, s.pitch);
      for (int64_t r = 0; r < count; ++r) SoftmaxBackward(weights + r * s.pitch, s.keys, of_weights + r * s.pitch);
      if (grad_query) {
        GemmTile(of_weights, padded, s.pitch, along, s.keys, key_depth, s.of_size, of_queries, s.of_size.stride());
        for (int64_t r = 0; r < count; ++r) {
          Narrow(of_queries + r * s.of_size.stride(), s.size, scale, grad_query->data() + (row + r) * s.size);
        }
      }
      if (grad_key) {
        PackDepth(query_rows, count, s.of_size, packed_queries);
        AddTransposed(of_weights, count, packed_queries, s.of_size, of_keys);
      }
    }
  }

  // Writes the gradients of keys [begin, end) of a batch entry and their values: the totals of the sums of its blocks,
  // which are changed.
  void WriteKeys(int64_t batch, int64_t begin, int64_t end, int64_t blocks, float* sums) const {
    const BackwardSizes& s = sizes;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t to = batch * s.keys + k;
      float* const of_key = sums + k * s.of_size.stride();
      float* const of_value = sums + s.key_rows * s.of_size.stride() + k * s.of_values.stride();
      for (int64_t b = 1; b < blocks; ++b) {
        for (int64_t e = 0; grad_key && e < s.size; ++e) of_key[e] += of_key[b * s.Sums() + e];
        for (int64_t e = 0; grad_value && e < s.values; ++e) of_value[e] += of_value[b * s.Sums() + e];
      }
      if (grad_key) Narrow(of_key, s.size, Scale(), grad_key->data() + to * s.size);
      if (grad_value) NarrowRow(of_value, s.values, grad_value->data() + to * s.values);
    }
  }

 private:
  float Scale() const {
    return sizes.size == 0 ? 1.0f : static_cast<float>(1.0 / std::sqrt(static_cast<double>(sizes.size)));
  }
  // Adds the product of transposed `weights` [count][pitch] with packed rows to sums [keys][columns].
  void AddTransposed(const float* weights, int64_t count, const float* packed, const GemmColumns& columns,
                     float* sums) const {
    AddGemmTile(weights, sizes.key_rows, 1, down, count, packed, count * columns.panel(), columns, sums,
                columns.stride());
  }
  // Writes the scaled row, which is changed.
  static void Narrow(float* row, int64_t count, float factor, T* to) {
    WidenRow(row, count, row, factor);
    NarrowRow(row, count, to);
  }
};

template <class T>
Status QkvAttentionBackwardCpu(const QkvAttentionBackward&, const Context& context, Tensor<const T, 3> grad_output,
                               Tensor<const T, 3> query, Tensor<const T, 3> key, Tensor<const T, 3> value,
                               std::optional<Tensor<T, 3>> grad_query, std::optional<Tensor<T, 3>> grad_key,
                               std::optional<Tensor<T, 3>> grad_value) {
  if (grad_output.size() == 0) {  // the other extents may be huge
    for (const auto& gradient : {grad_query, grad_key, grad_value}) {
      if (gradient) std::fill_n(gradient->data(), gradient->size(), FromFloat<T>(0));
    }
    return Status::Ok();
  }
  const BackwardSizes sizes(query.shape(), value.shape());
  const int64_t batch = query.dim(0), blocks = sizes.Blocks(batch), items = batch * blocks;
  const Scratch<float> sums = context.Allocate<float>(blocks > 1 ? items * sizes.Sums() : 0);
  const Scratch<int32_t> along = context.Allocate<int32_t>(std::max({sizes.keys, sizes.size, sizes.values}));
  const Scratch<int32_t> down = context.Allocate<int32_t>(sizes.rows);
  if (!sums || !along || !down) return Internal("out of memory: sums of ", items, " blocks of queries");
  std::iota(along.data(), along.data() + along.size(), 0);
  for (int64_t r = 0; r < sizes.rows; ++r) down[r] = static_cast<int32_t>(r * sizes.pitch);
  const AttentionBackward<T> backward{grad_output, query,      key,   value,        grad_query,
                                      grad_key,    grad_value, sizes, along.data(), down.data()};
  const auto compute = [&](float* memory, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / blocks, block = i % blocks, tiles = sizes.tiles();
      float* const of_item = blocks > 1 ? sums.data() + i * sizes.Sums() : memory + sizes.OfBlock();
      backward.Compute(b, tiles * block / blocks, tiles * (block + 1) / blocks, memory, of_item);
      if (blocks == 1) backward.WriteKeys(b, 0, sizes.keys, 1, of_item);
    }
  };
  const int64_t scratch = sizes.OfBlock() + (blocks > 1 ? 0 : sizes.Sums());
  if (!context.ParallelForWithScratch<float>(items, 1, scratch, compute)) {
    return Internal("out of memory: ", scratch, " floats of a block of queries");
  }
  if (blocks == 1) return Status::Ok();
  const double nanoseconds = 0.5 * static_cast<double>((sizes.size + sizes.values) * blocks);
  context.ParallelFor(batch * sizes.keys, GrainFor(nanoseconds), [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t i = begin; i < end;) {
      const int64_t b = i / sizes.keys, stop = std::min(end, (b + 1) * sizes.keys);
      backward.WriteKeys(b, i - b * sizes.keys, stop - b * sizes.keys, blocks, sums.data() + b * blocks * sizes.Sums());
      i = stop;
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
POLYOP_CPU_KERNELS(QkvAttentionBackward, QkvAttentionBackwardCpu, float, Half, BFloat16);
}  // namespace polyop
#endif
