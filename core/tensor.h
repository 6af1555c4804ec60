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
inline constexpr int64_t kFound = -1;    // an extent of an output that the kernel finds
inline constexpr int kMaxVariadic = 16;  // tensors of a variadic input

/// Up to kMaxRank extents. What comes from outside may have more: rank() tells, the extents beyond are not kept, and
/// the checks before a launch refuse it.
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

  /// The product of the extents, or nothing if it overflows int64, an extent is negative or there are too many.
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

/// A tensor whose type is known at run time only; how adapters hand tensors over.
struct AnyTensor {
  void* data = nullptr;  // inputs are never written through it
  DType dtype = DType::kF32;
  bool present = false;  // an optional tensor that was left out is not
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
  /// Elements in all. Never overflows: the checks before a launch saw to it.
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

/// The tensors of a variadic input ("feats: T[N, C, *, *]..."): the checks before a launch let kMaxVariadic pass.
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

/// Where outputs come from: the adapter's side of the call.
class OutputSource {
 public:
  virtual ~OutputSource() = default;
  /// False when the caller does not want the optional output.
  virtual bool Wanted(int index) = 0;
  /// Sets `*data` to memory for `shape`; it may be null when the shape has no elements.
  virtual Status Allocate(int index, DType dtype, const Shape& shape, void** data) = 0;
  /// For kernels on a device, which find a pending extent after their launch function has returned: `shape` is the
  /// largest possible; the kernel writes the extent to `*count`, in the device's memory, and the elements as those of a
  /// tensor of that extent lie.
  virtual Status AllocateMost(int index, DType dtype, const Shape& shape, void** data, int64_t** count) {
    (void)dtype, (void)shape, (void)data, (void)count;
    return Internal("output ", index, " is found on a device, which this caller does not expect");
  }
};

/// An output whose size the kernel finds out ("keep: i64[K<=N]"). The kernel allocates it, exactly once.
template <class T, int R>
class Pending {
 public:
  using Element = T;
  static constexpr int kRank = R;

  Pending() = default;
  /// `shape` has kFound where the kernel finds an extent, `most` the most that it may be.
  Pending(OutputSource* source, int index, const Shape& shape, const Shape& most)
      : source_(source), index_(index), shape_(shape), most_(most) {}

  /// Allocates with every extent that is found set to `size`.
  Status Allocate(int64_t size, Tensor<T, R>* output) const {
    Shape shape = shape_;
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] != kFound) continue;
      if (size < 0 || size > most_[i]) return Internal("output ", index_, " has ", size, " rows of at most ", most_[i]);
      shape[i] = size;
    }
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(source_->Allocate(index_, kDTypeOf<T>, shape, &data));
    *output = Tensor<T, R>(static_cast<T*>(data), shape);
    return Status::Ok();
  }

  /// The most that the found extent may be.
  int64_t most() const {
    for (int i = 0; i < shape_.rank(); ++i) {
      if (shape_[i] == kFound) return most_[i];
    }
    return 0;
  }

  /// On a device: allocates room for the found extent to be `size`, of which the kernel writes the true one to
  /// `*count`.
  Status AllocateMost(int64_t size, Tensor<T, R>* output, int64_t** count) const {
    Shape shape = shape_;
    if (size < 0 || size > most()) return Internal("output ", index_, " has ", size, " rows of at most ", most());
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] == kFound) shape[i] = size;
    }
    void* data = nullptr;
    POLYOP_RETURN_IF_ERROR(source_->AllocateMost(index_, kDTypeOf<T>, shape, &data, count));
    *output = Tensor<T, R>(static_cast<T*>(data), shape);
    return Status::Ok();
  }

 private:
  OutputSource* source_ = nullptr;
  int index_ = 0;
  Shape shape_, most_;
};

}  // namespace polyop
