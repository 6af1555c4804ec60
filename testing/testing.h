// What operators' tests share: owned tensors, running an operator by its record, and comparing every
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

/// How many of `rounds` rounds of random calls a test makes: under AddressSanitizer, where each takes ten times as
/// long, the first quarter.
constexpr int Rounds(int rounds) {
#ifdef __SANITIZE_ADDRESS__
  return (rounds + 3) / 4;
#else
  return rounds;
#endif
}

/// A tensor that owns its memory. The memory ends exactly behind the last element, so that sanitizers
/// see a read beyond it.
class HostTensor {
 public:
  HostTensor() = default;  // absent
  /// Filled with garbage. If not `aligned`, it begins at a multiple of the elements' size, and of nothing larger.
  HostTensor(DType dtype, const Shape& shape, bool aligned = true);

  /// Elements converted from double (rounded to nearest for f16 and bf16).
  static HostTensor Of(DType dtype, const Shape& shape, const std::vector<double>& values);
  template <class T>
  static HostTensor Of(const Shape& shape, const std::vector<double>& values) {
    return Of(kDTypeOf<T>, shape, values);
  }
  /// Uniform in [low, high); integers are rounded down.
  static HostTensor Uniform(DType dtype, const Shape& shape, std::mt19937& rng, double low = -1.0, double high = 1.0);
  static HostTensor Full(DType dtype, const Shape& shape, double value);
  /// Left out.
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
  /// Drops all but the first elements: those of a tensor of this shape.
  void Keep(const Shape& shape);
  AnyTensor view() const;
  /// The same shape and bits.
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
  std::string isa;                                              // "" = best
  int wanted_outputs = 99;                                      // optional outputs from this index on are not wanted
  int64_t most_elements = std::numeric_limits<int64_t>::max();  // of an output; more is an error
  bool misaligned = false;  // on the GPU: tensors begin at multiples of their elements' size only
};

/// Runs the operator's kernel for the inputs' types. Outputs are filled with garbage before.
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
/// What a correctly rounded result in `dtype` needs at least: 1e-5 for f32, 2e-3 for f16, 2e-2 for bf16.
Tolerance ToleranceFor(DType dtype);

void ExpectNear(const HostTensor& got, const HostTensor& want, const Tolerance& tolerance, const std::string& what);

/// The reference kernel's outputs for these inputs: floating inputs are widened to f64 where the
/// signature has a type variable, integers to those that it takes.
Status RunReference(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                    std::vector<HostTensor>* outputs, int wanted_outputs = 99,
                    int64_t most_elements = std::numeric_limits<int64_t>::max());

/// Runs every available instruction set with 1, 2 and 8 threads, and the CUDA kernel: its source on the CPU with
/// threads in two orders, or, in a build with CUDA, on the GPU. Expects all thread counts and orders to give the same
/// bytes, integer outputs to equal the reference's, and real ones to be near them.
void ExpectMatchesReferenceOp(const Op& op, const void* params, const std::vector<HostTensor>& inputs,
                              const Tolerance& tolerance, int wanted_outputs);
template <class P>
void ExpectMatchesReference(const P& params, const std::vector<HostTensor>& inputs, const Tolerance& tolerance = {},
                            int wanted_outputs = 99) {
  ExpectMatchesReferenceOp(*FindOp(P::kName), &params, inputs, tolerance, wanted_outputs);
}

/// Whether the operator has kernels for GpuDevice(), and there is such a device. If there is none, says so, and fails
/// the test where POLYOP_NEEDS_GPU is set.
bool HasGpuKernels(const Op& op);

/// Expects an error whose message holds each of `parts`, on every instruction set.
template <class P>
void ExpectError(const P& params, const std::vector<HostTensor>& inputs, const std::vector<std::string>& parts) {
  std::vector<HostTensor> outputs;
  const Status status = Run(params, inputs, &outputs);
  EXPECT_FALSE(status.ok()) << "wanted an error with '" << (parts.empty() ? "" : parts[0]) << "'";
  for (const std::string& part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "message: " << status.message() << "\nlacks:   " << part;
  }
}

/// Attributes as a model file would give them, through MakeParams with the operator's first node name
/// (or `node`). For tests of ranges, choices, aliases and presets.
Status MakeParams(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes, Params* params,
                  const std::string& node = "");

/// Expects that these attributes are refused with a message that holds each of `parts`.
void ExpectAttributeError(const Op& op, const std::vector<std::pair<std::string, AttrValue>>& attributes,
                          const std::vector<std::string>& parts);

}  // namespace polyop::testing
