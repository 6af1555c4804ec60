#include "adapters/jax/results.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>

#include "core/dtype.h"

namespace polyop::jax {
namespace {

constexpr XLA_FFI_DataType kTypes[kNumDTypes] = {
    XLA_FFI_DataType_F32, XLA_FFI_DataType_F16, XLA_FFI_DataType_BF16, XLA_FFI_DataType_F64, XLA_FFI_DataType_S8,
    XLA_FFI_DataType_U8,  XLA_FFI_DataType_S16, XLA_FFI_DataType_S32,  XLA_FFI_DataType_S64, XLA_FFI_DataType_PRED};

int64_t Product(const int64_t* shape, int64_t rank) {
  return std::accumulate(shape, shape + rank, int64_t{1}, std::multiplies<>());
}

bool IsSigned(XLA_FFI_DataType type) {
  return type == XLA_FFI_DataType_S8 || type == XLA_FFI_DataType_S16 || type == XLA_FFI_DataType_S32 ||
         type == XLA_FFI_DataType_S64;
}

void CopyRow(const char* from, bool narrow, size_t item, int64_t count, char* to) {
  if (!narrow) {
    std::memcpy(to, from, static_cast<size_t>(count) * item);
    return;
  }
  const auto* const wide = reinterpret_cast<const int64_t*>(from);
  std::transform(wide, wide + count, reinterpret_cast<int32_t*>(to), [](int64_t v) { return static_cast<int32_t>(v); });
}

}  // namespace

int32_t TypeOf(XLA_FFI_DataType type) {
  const auto* const found = std::find(std::begin(kTypes), std::end(kTypes), type);
  return found == std::end(kTypes) ? -1 : static_cast<int32_t>(found - std::begin(kTypes));
}

void* Results::Allocate(void* self, int32_t output, int32_t type, int32_t rank, const int64_t* shape) {
  auto& results = *static_cast<Results*>(self);
  if (output >= results.rets_.size) return nullptr;
  const XLA_FFI_Buffer& buffer = results.Buffer(output);
  const bool narrow = type == POLYOP_I64 && buffer.dtype == XLA_FFI_DataType_S32;
  if (buffer.rank != rank || (type != TypeOf(buffer.dtype) && !narrow)) return nullptr;
  if (!std::equal(shape, shape + rank, buffer.dims, std::less_equal<>())) return nullptr;

  Written& written = results.written_.emplace_back(output, type, std::vector<int64_t>(shape, shape + rank));
  if (!narrow && std::equal(shape, shape + rank, buffer.dims)) return buffer.data;
  const size_t bytes = static_cast<size_t>(Product(shape, rank)) * SizeOf(static_cast<DType>(type));
  // Kernels need no more than the alignment of the elements.
  written.memory.reset(new (std::nothrow) std::max_align_t[bytes / sizeof(std::max_align_t) + 1]);
  return written.memory.get();
}

void Results::Copy(const Written& written) const {
  const XLA_FFI_Buffer& buffer = Buffer(written.output);
  const auto rank = static_cast<size_t>(buffer.rank);
  const size_t from_item = SizeOf(static_cast<DType>(written.type)),
               item = SizeOf(static_cast<DType>(TypeOf(buffer.dtype)));
  const int64_t items = Product(written.shape.data(), buffer.rank);
  auto* const to = static_cast<char*>(buffer.data);
  if (!std::equal(written.shape.begin(), written.shape.end(), buffer.dims)) {
    std::memset(to, IsSigned(buffer.dtype) ? 0xFF : 0, static_cast<size_t>(Product(buffer.dims, buffer.rank)) * item);
  }
  const int64_t row = rank == 0 ? 1 : written.shape[rank - 1];
  for (int64_t first = 0; first < items; first += row) {
    int64_t rest = first / row, target = 0, stride = rank == 0 ? 1 : buffer.dims[rank - 1];
    for (size_t d = rank - std::min<size_t>(rank, 1); d-- > 0;) {
      target += rest % written.shape[d] * stride;
      rest /= written.shape[d];
      stride *= buffer.dims[d];
    }
    CopyRow(reinterpret_cast<const char*>(written.memory.get()) + static_cast<size_t>(first) * from_item,
            from_item != item, item, row, to + static_cast<size_t>(target) * item);
  }
}

void Results::Finish(const int64_t* found) {
  int64_t count = 0;
  for (const Written& written : written_) {
    if (found != nullptr && written.output == found[0]) count = written.shape[static_cast<size_t>(found[1])];
    if (written.memory != nullptr) Copy(written);
  }
  if (found != nullptr) *static_cast<int32_t*>(Buffer(rets_.size - 1).data) = static_cast<int32_t>(count);
}

}  // namespace polyop::jax
