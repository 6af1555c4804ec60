// SPDX-License-Identifier: Apache-2.0
// Helpers of operators' tests: owned tensors, calls of operators through their records, and comparisons of every
// instruction set and thread count with the reference kernel.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/op.h"
#include "core/operator.h"
#include "core/status.h"

namespace polyop::testing {

/// Returns the number of rounds of random calls of a test: `rounds`, or a quarter of them under AddressSanitizer, where
/// each takes ten times as long.
constexpr int Rounds(int rounds) {
#ifdef __SANITIZE_ADDRESS__
  return (rounds + 3) / 4;
#else
  return rounds;
#endif
}

/// A tensor that owns its memory. Under AddressSanitizer the memory ends exactly after the last element, so that reads
/// beyond it are detected. Otherwise valid indices, 0, or real numbers other than 0 follow, with which results are
/// wrong.
class HostTensor {
 public:
  HostTensor() = default;  // absent
  /// Creates a tensor filled with garbage. If not `aligned`, it is aligned to the element size only.
  HostTensor(DType dtype, const Shape& shape, bool aligned = true);

  /// Creates a tensor with these values, rounded to the type.
  static HostTensor Of(DType dtype, const Shape& shape, const std::vector<double>& values);
  template <class T>
  static HostTensor Of(const Shape& shape, const std::vector<double>& values) {
    return Of(kDTypeOf<T>, shape, values);
  }
  /// Creates a tensor of values uniform in [low, high); integers are rounded down.
  static HostTensor Uniform(DType dtype, const Shape& shape, std::mt19937& rng, double low = -1.0, double high = 1.0);
  static HostTensor Full(DType dtype, const Shape& shape, double value);
  /// Returns a missing optional tensor.
  static HostTensor Absent() { return {}; }

  bool present() const { return present_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t size() const { return shape_.NumElements().value(); }
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes_.data() + front_);
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes_.data() + front_);
  }
  double at(int64_t i) const;
  void set(int64_t i, double value);
  std::vector<double> ToDoubles() const;
  HostTensor Cast(DType dtype) const;
  /// Sets the shape and keeps only the first elements. Requires: `shape` has no more elements than the tensor.
  void Keep(const Shape& shape);
  AnyTensor view() const;
  /// Returns true if shape, type and bits are equal.
  bool SameBytes(const HostTensor& other) const;

 private:
  bool present_ = false;
  DType dtype_ = DType::kF32;
  Shape shape_;
  size_t front_ = 0;  // bytes before the first element
  std::vector<unsigned char> bytes_;
};

struct RunOptions {
  Device device = Device::kCpu;
  int threads = 1;
  std::string isa;                                             // "" = best
  int requested_outputs = 99;                                  // optional outputs from this index on are not requested
  int64_t max_elements = std::numeric_limits<int64_t>::max();  // per output; more is an error
  bool misaligned = false;  // on the GPU: tensors are aligned to their element size only
};

/// Runs the operator's kernel for the inputs' types. Outputs contain garbage before the call.
Status RunOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs,
             const RunOptions& options = {});
template <class P>
Status Run(const P& params, const std::vector<HostTensor>& inputs, std::vector<HostTensor>* outputs,
           const RunOptions& options = {}) {
  return RunOp(*FindOp(P::kName), &params, inputs, outputs, options);
}

/// |got - want| <= absolute + relative * |want|; NaN equals NaN, infinities of one sign are equal.
struct Tolerance {
  double relative = 1e-5;
  double absolute = 1e-5;
};
/// Returns the tolerance of a correctly rounded result in `dtype`: 1e-5 for f32, 2e-3 for f16, 2e-2 for bf16.
Tolerance ToleranceFor(DType dtype);

void ExpectNear(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance, const std::string& what);

/// Runs the reference kernel: real inputs with a type variable are widened to f64, and integers to the types that the
/// kernel accepts.
Status RunReference(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                    std::vector<HostTensor>* outputs, int requested_outputs = 99,
                    int64_t max_elements = std::numeric_limits<int64_t>::max());

/// Runs every available instruction set with 1, 2 and 8 threads, and the CUDA kernel: emulated on the CPU in two orders
/// of threads, or on the GPU in a build with CUDA. Expects integers equal to the reference's, real numbers within the
/// tolerance, and the same bytes for all thread counts and orders (not if SumsInThreadOrder marks the operator).
void ExpectMatchesReferenceOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                              const Tolerance& tolerance, int requested_outputs);
template <class P>
void ExpectMatchesReference(const P& params, const std::vector<HostTensor>& inputs, const Tolerance& tolerance = {},
                            int requested_outputs = 99) {
  ExpectMatchesReferenceOp(*FindOp(P::kName), &params, inputs, tolerance, requested_outputs);
}

/// Returns true if the operator has kernels for GpuDevice() and the device is available. If it is not, prints a
/// message, and fails the test if POLYOP_NEEDS_GPU is set.
bool HasGpuKernels(const Op& op);

/// Expects an error whose message contains each of `parts`.
template <class P>
void ExpectError(const P& params, const std::vector<HostTensor>& inputs, const std::vector<std::string>& parts) {
  std::vector<HostTensor> outputs;
  const Status status = Run(params, inputs, &outputs);
  EXPECT_FALSE(status.ok()) << "expected an error with '" << (parts.empty() ? "" : parts[0]) << "'";
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "message: " << status.message() << "\nlacks:   " << part;
  }
}

/// Reads attributes as from a model file, by Op::MakeParams with the operator's first node name (or `node`). For tests
/// of ranges, choices, aliases and presets.
Status MakeParams(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes, Params* params,
                  const std::string& node = "");

/// Expects an error for these attributes whose message contains each of `parts`.
void ExpectAttributeError(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes,
                          const std::vector<std::string>& parts);

}  // namespace polyop::testing
