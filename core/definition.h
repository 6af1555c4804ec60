// SPDX-License-Identifier: Apache-2.0
// The definition of an operator and of its kernels, with types erased. Operators register both with core/operator.h;
// callers read them through core/op.h.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attributes.h"
#include "core/signature.h"
#include "core/tensor.h"

namespace polyop {

enum class Device : uint8_t {
  kCpu,
  kCuda,
  kCudaEmulated,  // the CUDA kernels' source, compiled for the CPU: for tests
  kReference,     // naive kernels in double precision on one thread: the baseline of tests and `polyop verify`
};

/// The documentation of an operator, in addition to its signature and attributes. Markdown.
struct Doc {
  const char* summary = "";       // one sentence
  const char* semantics = "";     // what the signature does not state: edge cases, NaN, empty inputs
  const char* source = "";        // the paper, or the torch function with the same semantics
  const char* differences = "";   // from MMCV, MMDeploy, torch
  const char* not_portable = "";  // why standard operators cannot express it, if the folder has no formula
};

/// Returns documentation text, which may be a raw string that spans lines of source code, with one line per paragraph:
/// replaces each line break and the indentation around it by one space, keeps a blank line as "\n\n", and drops white
/// space at both ends. Every text of a Doc or an AttrSpec passes through it before anyone reads it.
std::string UnwrapText(std::string_view text);

/// A node name of the operator: "domain::OpType", or "::OpType" in ONNX's default domain, as in model files for
/// TensorRT's plugins. A name of a standard ONNX operator is not allowed in the default domain: it would replace that
/// operator.
struct NodeName {
  struct Pair {
    const char* first = nullptr;
    const char* second = nullptr;
  };
  /// A version of a standard ONNX operator.
  struct Standard {
    int since = 0;  // its first opset; 0: no version
    Pair preset;    // attribute name -> value: a default that differs in newer versions
  };
  /// The condition that selects this operator where several operators share the node name.
  struct Condition {
    static constexpr int64_t kAnyValue = std::numeric_limits<int64_t>::min();
    const char* attribute = nullptr;  // the operator's attribute name; null: nodes that fulfil no other condition
    int64_t min = kAnyValue;          // the attribute is an integer of at least this value
  };
  const char* name = "";
  std::array<Pair, 4> renames{};        // the operator's attribute name -> the name in such nodes
  std::array<Pair, 4> presets{};        // attribute name -> value (as text) that this node name implies
  std::array<Pair, 4> spellings{};      // a choice's name -> its spelling in such nodes, which write choices as strings
  std::array<Standard, 4> standards{};  // the standard operators that such nodes equal, oldest first
  Condition when{};

  constexpr NodeName() = default;  // for calls without a node: attributes have the operator's names
  /// Requires: `n` is "domain::OpType"; other texts fail to compile.
  constexpr NodeName(const char* n) : name(n) {  // NOLINT: implicit for plain strings
    const size_t colons = std::string_view(n).find("::");
    if (colons == std::string_view::npos || colons + 2 == std::string_view(n).size()) {
      throw "a node name is \"domain::OpType\"";
    }
  }
  /// Nodes of this name write the attribute `ours` as `theirs`.
  constexpr NodeName Rename(const char* ours, const char* theirs) const {
    NodeName copy = *this;
    for (Pair& p : copy.renames) {
      if (p.first == nullptr) {
        p = {ours, theirs};
        return copy;
      }
    }
    throw "too many renames";
  }
  /// Nodes of this name imply the value of an attribute: an integer or the name of a choice.
  constexpr NodeName Preset(const char* attribute, const char* value) const {
    NodeName copy = *this;
    for (Pair& p : copy.presets) {
      if (p.first == nullptr) {
        p = {attribute, value};
        return copy;
      }
    }
    throw "too many presets";
  }
  /// Nodes of this name write choices as strings, and the choice `ours` as `theirs`; both spellings are accepted.
  constexpr NodeName Spell(const char* ours, const char* theirs) const {
    NodeName copy = *this;
    for (Pair& p : copy.spellings) {
      if (p.first == nullptr) {
        p = {ours, theirs};
        return copy;
      }
    }
    throw "too many spellings";
  }
  /// Nodes of this name have the inputs, outputs, attributes and semantics of the standard ONNX operator of this type
  /// from opset `since` on, up to the next version given here.
  constexpr NodeName Mirror(int since, const char* attribute = nullptr, const char* value = nullptr) const {
    NodeName copy = *this;
    int last = 0;
    for (Standard& s : copy.standards) {
      if (s.since == 0 && since > last) {
        s = {since, {attribute, value}};
        return copy;
      }
      last = s.since;
    }
    throw "too many standards, or not oldest first";
  }
  /// Several operators have the name: a node selects this one if it has the attribute, with an integer of at least
  /// `min`. Requires: the attribute is required and accepts no other value, so that the selection is unambiguous.
  /// core/node_resolution.h states what operators of one name must have in common.
  constexpr NodeName When(const char* attribute, int64_t min = Condition::kAnyValue) const {
    NodeName copy = *this;
    copy.when = {attribute, min};
    return copy;
  }

  /// Returns the name of an attribute in nodes of this name.
  const char* NameOf(const char* attribute) const {
    for (const Pair& p : renames) {
      if (p.first != nullptr && std::string_view(p.first) == attribute) return p.second;
    }
    return attribute;
  }

  /// Returns the name for messages; it has no "::" in the default domain.
  std::string_view label() const { return domain().empty() ? op_type() : std::string_view(name); }
  std::string_view domain() const {
    const std::string_view s = name;
    return s.substr(0, s.find("::"));
  }
  std::string_view op_type() const {
    const std::string_view s = name;
    return s.substr(s.find("::") + 2);
  }
};

/// The arguments of a kernel, with types erased.
struct Launch {
  const void* params;
  const void* context;  // Context of the device
  std::span<const AnyTensor> inputs;
  std::span<const AnyTensor> outputs;  // data is null if the kernel finds an extent; such extents are kFound
  std::span<const Shape> max_shapes;   // the outputs' shapes with the upper bounds of found extents
  OutputSource* source;
};

struct Kernel {
  Device device = Device::kCpu;
  int signature = 0;                        // index into Op::signatures
  std::array<DType, kMaxTensors> inputs{};  // per tensor of the signature; `any` inputs: unused
  std::array<DType, kMaxTensors> outputs{};
  Status (*launch)(const Launch&) = nullptr;
};

/// The operator's struct with types erased.
struct Definition {
  std::string_view name;  // its folder: "roi_align"
  Doc doc;
  std::span<const Signature> texts;  // its signatures
  std::vector<AttrInfo> attributes;
  std::span<const NodeName> nodes;
  std::string_view gradient_of;  // the operator whose gradient this is, or empty (core/gradient.h)
  int64_t (*output_mask)(const void* params) = nullptr;  // of a gradient: bit i is set if output i is computed
  void* (*create_params)() = nullptr;
  void (*destroy_params)(void*) = nullptr;
  Status (*check_params)(const void*) = nullptr;  // calls the struct's Check(), if it has one
  // The struct's CheckInputs(), if it has one: conditions on the inputs in addition to the signature. It may read data
  // of inputs whose values determine shapes, if it is not null: a runtime may not expose it.
  Status (*check_inputs)(const void*, std::span<const AnyTensor>) = nullptr;
  // The struct's LeaveToStandard(), if it has one. It is called if the operator overrides a standard operator, and
  // returns true if the runtime's own kernel should run this call, because its semantics differ or it is faster. It
  // does not read data.
  bool (*leave_to_standard)(const void*, std::span<const AnyTensor>) = nullptr;

  /// Returns false for an optional output of a gradient that the attribute `output_mask` deselects.
  bool Computes(const void* params, int output) const {
    return output_mask == nullptr || (output_mask(params) >> output & 1) != 0;
  }
};

/// Returns input `i` of a call, or null if it is missing.
inline const AnyTensor* GivenInput(std::span<const AnyTensor> inputs, size_t i) {
  return i < inputs.size() && inputs[i].present ? &inputs[i] : nullptr;
}

/// Adds a kernel to the operator of this definition. Called by static initialisers.
void AddKernel(const Definition& definition, const Kernel& kernel);

}  // namespace polyop
