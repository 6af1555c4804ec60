// SPDX-License-Identifier: Apache-2.0
#include "adapters/jax/buffers.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/dtype.h"

namespace polyop::jax {
namespace {

constexpr XLA_FFI_DataType kTypes[kNumDTypes] = {
    XLA_FFI_DataType_F32, XLA_FFI_DataType_F16, XLA_FFI_DataType_BF16, XLA_FFI_DataType_F64, XLA_FFI_DataType_S8,
    XLA_FFI_DataType_U8,  XLA_FFI_DataType_S16, XLA_FFI_DataType_S32,  XLA_FFI_DataType_S64, XLA_FFI_DataType_PRED};

}  // namespace

bool BufferView::has_halves() const {
  return buffer_.dtype == XLA_FFI_DataType_U32 && buffer_.rank > 0 && buffer_.dims[buffer_.rank - 1] == 2;
}

int32_t BufferView::type() const {
  if (has_halves()) return POLYOP_I64;
  const auto* const found = std::find(std::begin(kTypes), std::end(kTypes), buffer_.dtype);
  return found == std::end(kTypes) ? -1 : static_cast<int32_t>(found - std::begin(kTypes));
}

int32_t BufferView::rank() const { return static_cast<int32_t>(buffer_.rank) - (has_halves() ? 1 : 0); }

int64_t BufferView::bytes() const {
  const int32_t known = type();
  if (known < 0) return 0;
  const int64_t items = std::accumulate(shape(), shape() + rank(), int64_t{1}, std::multiplies<>());
  return items * static_cast<int64_t>(SizeOf(static_cast<DType>(known)));
}

void* Results::Data(int32_t output, int32_t type, int32_t rank, const int64_t* shape) const {
  if (output >= rets_.size) return nullptr;
  const BufferView buffer(rets_.rets[output]);
  const bool fits = buffer.type() == type && buffer.rank() == rank &&
                    std::equal(shape, shape + rank, buffer.shape(), std::less_equal<>());
  return fits ? buffer.data() : nullptr;
}

int64_t* Results::CountOf(int32_t output) const {
  if (found_ == nullptr || output != found_[0]) return nullptr;
  return static_cast<int64_t*>(BufferView(rets_.rets[rets_.size - 1]).data());
}

void* Results::Allocate(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape) {
  const auto& results = *static_cast<const Results*>(self);
  void* const data = results.Data(output, type, rank, shape);
  if (int64_t* const count = results.CountOf(output); count != nullptr) *count = shape[results.found_[1]];
  return data;
}

}  // namespace polyop::jax
