// What an operator's folder states, types erased: the definition, and each kernel. Operators register both by
// core/operator.h; whoever runs operators reads them by core/op.h.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "core/attributes.h"
#include "core/signature.h"
#include "core/tensor.h"

namespace polyop {

enum class Device : uint8_t {
  kCpu,
  kCuda,
  kCudaEmulated,  // the CUDA kernels' source on the CPU: for tests
  kReference,     // naive, double precision, one thread: the truth that tests and `polyop verify` use
};

/// What a reader of the documentation wants to know beyond signature and attributes. Markdown.
struct Doc {
  const char* summary = "";       // one sentence
  const char* semantics = "";     // what the signature does not say: edge cases, NaN, empty inputs
  const char* source = "";        // the paper, or the torch function whose semantics hold
  const char* differences = "";   // from MMCV, MMDeploy, torch
  const char* not_portable = "";  // why standard operators cannot say it, where the folder has no formula
};

/// A node name that the operator answers to: "domain::OpType", or "::OpType" in ONNX's default domain, as files for
/// TensorRT's plugins write it. In the default domain a name of ONNX's own would take that operator's place: never one
/// of those.
struct NodeName {
  struct Pair {
    const char* first = nullptr;
    const char* second = nullptr;
  };
  /// A version of an operator of ONNX's default domain.
  struct Standard {
    int since = 0;  // its first opset; 0: none
    Pair preset;    // attribute name -> value: a default that newer versions changed
  };
  /// Which nodes of a name that operators share mean this one.
  struct Condition {
    static constexpr int64_t kAnyValue = std::numeric_limits<int64_t>::min();
    const char* attribute = nullptr;  // the operator's name of it; null: those that mean none of the others
    int64_t least = kAnyValue;        // the integer that it is at least
  };
  const char* name = "";
  std::array<Pair, 4> renames{};        // the operator's attribute name -> the name in such nodes
  std::array<Pair, 4> presets{};        // attribute name -> value (as text) that this node name implies
  std::array<Pair, 4> spellings{};      // a choice's name -> the name in such nodes, which write choices as strings
  std::array<Standard, 4> standards{};  // what such nodes are equal to, oldest first
  Condition when{};

  constexpr NodeName() = default;  // of a call without a node: attributes have the operator's own names
  /// A name without colons or without a type fails to compile.
  constexpr NodeName(const char* n) : name(n) {  // NOLINT: a plain string is the usual case
    const size_t colons = std::string_view(n).find("::");
    if (colons == std::string_view::npos || colons + 2 == std::string_view(n).size()) {
      throw "a node name is \"domain::OpType\"";
    }
  }
  /// Such nodes write the attribute `ours` as `theirs`.
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
  /// Such nodes imply a value: an integer or the name of a choice.
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
  /// Such nodes write choices as strings, and `ours` as `theirs`; both are read.
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
  /// Such nodes have the inputs, outputs, attributes and meaning of the operator of this type that ONNX's default
  /// domain has since opset `since`, until the next that is named here.
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
    throw "too many standards, or not the oldest first";
  }
  /// Another operator has the name, too: this one is meant where the node gives the attribute, with an integer of
  /// `least` or more. The operator requires the attribute and takes no other value, so that no node of it is mistaken.
  /// core/meaning.h says what such operators have in common.
  constexpr NodeName When(const char* attribute, int64_t least = Condition::kAnyValue) const {
    NodeName copy = *this;
    copy.when = {attribute, least};
    return copy;
  }

  /// How such nodes call an attribute.
  const char* NameOf(const char* attribute) const {
    for (const Pair& p : renames) {
      if (p.first != nullptr && std::string_view(p.first) == attribute) return p.second;
    }
    return attribute;
  }

  /// For people: the type alone in the default domain.
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

/// What a kernel is started with, types erased.
struct Launch {
  const void* params;
  const void* context;  // Context of the device
  std::span<const AnyTensor> inputs;
  std::span<const AnyTensor> outputs;  // extents that the kernel finds are kFound, and data is null there
  std::span<const Shape> most;         // the outputs' shapes with the most that such extents may be
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
  void* (*create_params)() = nullptr;
  void (*destroy_params)(void*) = nullptr;
  Status (*check_params)(const void*) = nullptr;  // the struct's Check(), if it has one
  // The struct's CheckInputs(), if it has one: what inputs that fit the signature must satisfy beyond it. Of data it
  // may read values that decide shapes, where they are not null: a runtime may keep them to itself.
  Status (*check_inputs)(const void*, std::span<const AnyTensor>) = nullptr;
  // The struct's LeaveToStandard(), if it has one: whether, where a node stands in the place of a standard operator,
  // the runtime's own kernel is to answer this call, since it means something else or is faster. Data is not read.
  bool (*leave_to_standard)(const void*, std::span<const AnyTensor>) = nullptr;
};

/// Input `i` of a call, or null where it was left out.
inline const AnyTensor* GivenInput(std::span<const AnyTensor> inputs, size_t i) {
  return i < inputs.size() && inputs[i].present ? &inputs[i] : nullptr;
}

/// Adds a kernel to the operator of this definition, when the program or library that holds it is loaded.
void AddKernel(const Definition& definition, const Kernel& kernel);

}  // namespace polyop
