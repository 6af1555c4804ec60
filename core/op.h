// SPDX-License-Identifier: Apache-2.0
// The run-time record of an operator, and the registry of all operators. Adapters iterate over the records, contain no
// code for single operators, and call operators through core/call.h.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/definition.h"

namespace polyop {

/// A signature with its names resolved against the operator's attributes.
struct OpSignature {
  const Signature* signature = nullptr;
  std::array<int16_t, kMaxNames> attribute_of_name{};  // index into Op::attributes, or -1

  /// Returns true if values of input `i` determine a shape: a runtime must keep that input in host memory.
  bool needs_value(int i) const;
};

struct ParamsDeleter {
  void (*destroy)(void*) = nullptr;
  void operator()(void* p) const { destroy(p); }
};
using Params = std::unique_ptr<void, ParamsDeleter>;

/// Reads a node's attributes for Op::MakeParams. Adapters implement it.
class AttrSource {
 public:
  virtual ~AttrSource() = default;
  /// Returns false if the node does not have the attribute.
  virtual bool Get(const char* name, AttrValue* value) = 0;
};

/// What shape inference knows of an input. Unknown properties match every kernel.
struct KnownInput {
  bool present = false;
  std::optional<DType> dtype;
  std::optional<int> rank;
};

struct Op : Definition {
  std::vector<OpSignature> signatures;
  std::vector<Kernel> kernels;

  /// The operator's struct with its defaults.
  Params DefaultParams() const { return Params(create_params(), ParamsDeleter{destroy_params}); }

  /// Reads every attribute (with aliases and the node name's renames and presets), converts it to the kernel's type,
  /// and checks the converted value.
  Status MakeParams(const NodeName& node, AttrSource& source, Params* params) const;

  const AttrInfo* FindAttribute(std::string_view attribute) const;

  /// Finds the kernel for a device and inputs of these types and ranks. The error lists the available kernels.
  Status FindKernel(Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) const;
  /// Like above, for inputs that are not fully known; null if no kernel matches.
  const Kernel* FindKernel(Device device, std::span<const KnownInput> inputs) const;
};

/// Reads an attribute of a node into `value`. Returns the name that the node uses for it; null if it has no such
/// attribute.
const char* FindNodeAttribute(const AttrInfo& info, const NodeName& node, AttrSource& source, AttrValue* value);

/// Returns the kernel's input types as text: "(input: f32, rois: f32)".
std::string InputTypesText(const Op& op, const Kernel& kernel);

/// Returns all registered operators, sorted by name.
std::span<const Op* const> AllOps();
/// Returns the operator of this folder name, or null.
const Op* FindOp(std::string_view name);

/// Returns an error if two operators have the same name, or share a node name and cannot be distinguished
/// (core/node_resolution.h), or if a text of a definition is not UTF-8. Adapters call it once, when operators are
/// loaded.
Status CheckRegistry();
/// Like CheckRegistry, for the given operators.
Status CheckNames(std::span<const Op* const> ops);

/// Sets one attribute by name, for the CLI and tests. Unknown names are errors.
Status SetAttribute(const Op& op, void* params, std::string_view name, const AttrValue& value);

}  // namespace polyop
