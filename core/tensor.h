// SPDX-License-Identifier: Apache-2.0
// Views of tensors. A view owns nothing; memory is contiguous, row-major.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.h"
#include "core/host_device.h"
#include "core/status.h"

namespace polyop {

inline constexpr int kMaxRank = 8;
inline constexpr int kAnyRank = -1;
inline constexpr int64_t kFound = -1;    // an extent of an output that the kernel determines
inline constexpr int kMaxVariadic = 16;  // tensors of a variadic input

/// Up to kMaxRank extents. A shape from outside may have more: rank() then returns their number, the extents from
/// kMaxRank on are not stored, and the checks before a launch reject the shape.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }
  explicit Shape(std::span<const int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }

  int rank() const { return rank_; }
  bool too_long() const { return rank_ > kMaxRank; }
  POLYOP_HD int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + std::min(rank_, kMaxRank); }
  std::span<const int64_t> span() const { return {begin(), end()}; }
  bool full() const { return rank_ >= kMaxRank; }
  void push_back(int64_t d) {
    if (!full()) dims_[rank_] = d;
    ++rank_;
  }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    return std::equal(begin(), end(), other.begin());
  }

  /// Returns the product of the extents; nullopt if it overflows int64, an extent is negative or the rank is too high.
  std::optional<int64_t> NumElements() const {
    if (too_long()) return std::nullopt;
    int64_t n = 1;
    bool zero = false;
    for (int64_t d : span()) {
      if (d < 0) return std::nullopt;
      if (d == 0) {
        zero = true;
      } else if (__builtin_mul_overflow(n, d, &n)) {
        return std::nullopt;
      }
    }
    return zero ? 0 : n;
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "[2, 3, 64, 64]"
std::string ToString(const Shape& shape);

/// A tensor whose type is known only at run time. Adapters pass tensors in this form.
struct AnyTensor {
  void* data = nullptr;  // inputs are never written through it
  DType dtype = DType::kF32;
  bool present = false;  // false: the optional tensor is missing
  Shape shape;
};

/// A tensor of elements T and rank R (or kAnyRank). `Tensor<const T, R>` is an input, `Tensor<T, R>` an output.
template <class T, int R>
class Tensor {
 public:
  using Element = T;
  static constexpr int kRank = R;

  Tensor() = default;
  Tensor(T* data, const Shape& shape) : data_(data), shape_(shape) {}

  POLYOP_HD T* data() const { return data_; }
  int rank() const { return shape_.rank(); }
  POLYOP_HD int64_t dim(int i) const { return shape_[i]; }
  const Shape& shape() const { return shape_; }
  /// Returns the number of elements. It does not overflow: the checks before a launch guarantee it.
  int64_t size() const {
    int64_t n = 1;
    for (int64_t d : shape_.span()) n *= d;
    return n;
  }
  POLYOP_HD T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  Shape shape_;
};

/// The tensors of a variadic input ("feats: T[N, C, *, *]..."), at most kMaxVariadic.
template <class T, int R>
class TensorList {
 public:
  using Element = T;
  static constexpr int kRank = R;
  static constexpr int kMax = kMaxVariadic;

  int size() const { return size_; }
  const Tensor<T, R>& operator[](int i) const { return tensors_[i]; }
  const Tensor<T, R>* begin() const { return tensors_.data(); }
  const Tensor<T, R>* end() const { return tensors_.data() + size_; }
  void push_back(const Tensor<T, R>& tensor) { tensors_[size_++] = tensor; }

 private:
  std::array<Tensor<T, R>, kMax> tensors_;
  int size_ = 0;
};

/// Allocates a call's outputs. Adapters implement it.
class OutputSource {
 public:
  virtual ~OutputSource() = default;
  /// Returns false if the caller does not request the optional output.
  virtual bool Requested(int index) = 0;
  /// Sets `*data` to memory for `shape`; it may be null when the shape has no elements.
  virtual Status Allocate(int index, DType dtype, const Shape& shape, void** data) = 0;
  /// Like Allocate, for device kernels, which determine a pending extent after their launch function has returned.
  /// `shape` is the largest possible shape. The kernel writes the extent to `*count`, in device memory, and the
  /// elements in the layout of a tensor of that extent.
  virtual Status AllocateUpperBound(int index, DType dtype, const Shape& shape, void** data, int64_t** count) {
    (void)dtype, (void)shape, (void)data, (void)count;
    return Internal("output ", index, ": this caller does not support sizes that are found on a device");
  }
};

/// An output whose size the kernel determines ("keep: i64[K<=N]"). The kernel allocates it exactly once.
template <class T, int R>
class Pending {
 public:
  using Element = T;
  static constexpr int kRank = R;

  Pending() = default;
  /// `shape` is kFound where the kernel finds an extent; `max` is its upper bound there.
  Pending(OutputSource* source, int index, const Shape& shape, const Shape& max)
      : source_(source), index_(index), shape_(shape), max_(max) {}

  /// Allocates the output; every found extent is `size`. Requires: 0 <= `size` <= max().
  Status Allocate(int64_t size, Tensor<T, R>* output) const {
    Shape shape = shape_;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] != kFound) continue;
      if (size < 0 || size > max_[i]) return TooMany(max_[i], size);
      shape[i] = size;
    }
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(source_->Allocate(index_, kDTypeOf<T>, shape, &data));
    *output = Tensor<T, R>(static_cast<T*>(data), shape);
    return Status::Ok();
  }

  /// Returns the upper bound of the found extent.
  int64_t max() const {
    for (int i = 0; i < shape_.rank(); ++i) {
      if (shape_[i] == kFound) return max_[i];
    }
    return 0;
  }

  /// Like Allocate, on a device: allocates the output for an extent of up to `size`. The kernel writes the extent to
  /// `*count`.
  Status AllocateUpperBound(int64_t size, Tensor<T, R>* output, int64_t** count) const {
    Shape shape = shape_;
    if (size < 0 || size > max()) return TooMany(max(), size);
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == kFound) shape[i] = size;
    }
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(source_->AllocateUpperBound(index_, kDTypeOf<T>, shape, &data, count));
    *output = Tensor<T, R>(static_cast<T*>(data), shape);
    return Status::Ok();
  }

 private:
  Status TooMany(int64_t bound, int64_t size) const {
    return Internal("output ", index_, ": expected at most ", bound, " rows, got ", size);
  }

  OutputSource* source_ = nullptr;
  int index_ = 0;
  Shape shape_, max_;
};

}  // namespace polyop
