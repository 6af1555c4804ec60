// SPDX-License-Identifier: Apache-2.0
// Random calls of any operator, generated from its definition, and the checks on them. The robustness test draws from a
// random generator, the fuzzer from libFuzzer's bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/op.h"
#include "testing/testing.h"

namespace polyop::testing {

/// Returns a random number in [0, n). Requires: n > 0.
using Draw = std::function<uint32_t(uint32_t n)>;

/// The kind of a random call.
struct CallKind {
  enum class Values : uint8_t {
    kFinite,     // moderate
    kNonFinite,  // +-inf and NaN in a real input
    kExtreme,    // magnitudes such as 1e30, and denormal numbers
  };
  Values values = Values::kFinite;
  bool huge_extents = false;  // extents of 2^31 and more, in tensors without elements
  /// An extent of about 2^24, which float does not count exactly, in one tensor, and indices near it in the others.
  /// Only for extents that occur once in the signature and that values of other inputs address; see HasLongExtent.
  bool long_extent = false;
  bool many_tensors = false;  // 0 to 40 tensors for a variadic input
  bool misaligned = false;    // inputs and outputs are aligned to their element size only
  bool broken = false;        // one type, rank or extent violates the signature
};

struct RandomCall {
  const Op* op = nullptr;
  Params params;
  std::vector<testing::HostTensor> inputs;
  bool optional_outputs = false;
  CallKind kind;
  bool extreme = false;  // an attribute or an element is far from 1
  bool extreme_attribute = false;
  bool has_non_finite = false;  // an element is NaN or infinite

  /// Returns "op(attributes; inputs)", for messages.
  std::string Text() const;
};

/// Returns the names of the signature whose extents are only the first ones of inputs and of all outputs: items, such
/// as images or matrices, that are computed independently, unless the operator's definition says otherwise. One name
/// stands for all groups of extents (...B).
std::vector<int> BatchNames(const Signature& s);
/// Returns whether the first extent of a tensor is that of a name of BatchNames().
bool IsBatch(const Signature& s, const TensorSpec& spec, int name);

/// Returns whether some signature of the operator has an extent for CallKind::long_extent.
bool HasLongExtent(const Op& op);

/// Returns a call of this kind, as far as the operator supports it.
RandomCall MakeRandomCall(const Op& op, const Draw& draw, const CallKind& kind);
/// Returns a call of a random kind.
RandomCall MakeRandomCall(const Op& op, const Draw& draw);
/// Returns the first of up to `tries` calls that the operator accepts, or the last call.
RandomCall MakeValidCall(const Op& op, const Draw& draw, const CallKind& kind, int tries);

/// Returns the test time per operator in seconds: POLYOP_FUZZ_SECONDS, or `usual`.
double SecondsEach(double usual);
/// Returns the number of calls per operator: `usual` times POLYOP_CALLS_FACTOR.
uint32_t CallsEach(uint32_t usual);

/// Larger outputs fail to allocate, as in a runtime that is out of memory.
inline constexpr int64_t kMaxOutputElements = int64_t{1} << 18;

/// Runs the call once, with the best instruction set and one thread.
Status RunOnce(const RandomCall& call, std::vector<testing::HostTensor>* outputs);

/// The outcome of a call without failures.
struct Outcome {
  std::string error;      // the message, or empty
  bool compared = false;  // the outputs were compared with the reference
  bool excused = false;   // AgainstReference accepted a difference
};

/// Computes a few items alone, along each of the BatchNames() that has several in this call, on every instruction set.
/// Returns an empty text, or an item whose results are not bit for bit those that it has with the others. Two NaN are
/// equal. `compared` is increased by the number of items.
std::string DifferenceOfItems(const RandomCall& call, int* compared);

/// Expects that the items of a call do not depend on each other: see DifferenceOfItems.
template <class P>
void ExpectIndependentItems(const P& params, const std::vector<HostTensor>& inputs) {
  RandomCall call;
  call.op = FindOp(P::kName);
  call.params = Params(const_cast<P*>(&params), ParamsDeleter{[](void*) {}});
  call.inputs = inputs;
  call.optional_outputs = true;
  int compared = 0;
  EXPECT_EQ(DifferenceOfItems(call, &compared), "") << call.Text();
  EXPECT_GT(compared, 0);
}

/// Runs the call on every instruction set with one and several threads, and the emulated CUDA kernel. Returns an empty
/// text, or a failure: an outcome that depends on the number of threads or differs from the reference
/// (AgainstReference), a missing output, an error without a message, or an error that differs from the reference's.
/// Sanitizers detect accesses out of bounds.
std::string RunRandomCall(const RandomCall& call, Outcome* outcome);

}  // namespace polyop::testing
