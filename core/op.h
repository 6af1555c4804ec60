// The record of one operator at run time, and the registry of all. Adapters loop over records and
// know no operator by name; they call operators by core/call.h.
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

  /// True if a value inside input `i` decides a shape: a runtime must keep that input in host memory.
  bool needs_value(int i) const;
};

struct ParamsDeleter {
  void (*destroy)(void*) = nullptr;
  void operator()(void* p) const { destroy(p); }
};
using Params = std::unique_ptr<void, ParamsDeleter>;

/// Where a node's attributes come from: the adapter's side of Op::MakeParams.
class AttrSource {
 public:
  virtual ~AttrSource() = default;
  /// False when the node does not have the attribute.
  virtual bool Get(const char* name, AttrValue* value) = 0;
};

/// An input before there is a tensor, as shape inference sees it. What is not known fits every kernel.
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

  /// Reads every attribute (aliases and the node's renames and presets applied), converts it to the type that the
  /// kernel will see, and checks that.
  Status MakeParams(const NodeName& node, AttrSource& source, Params* params) const;

  const AttrInfo* FindAttribute(std::string_view attribute) const;

  /// The kernel for a device and inputs of these types and ranks, or an error that says what there is.
  Status FindKernel(Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) const;
  /// The same before there are tensors; null where none fits.
  const Kernel* FindKernel(Device device, std::span<const KnownInput> inputs) const;
};

/// The name under which the node gives an attribute, its value in `value`; null if it does not.
const char* GivenAs(const AttrInfo& info, const NodeName& node, AttrSource& source, AttrValue* value);

/// "(input: f32, rois: f32)": what the kernel takes.
std::string InputTypesText(const Op& op, const Kernel& kernel);

/// All registered operators, by name.
std::span<const Op* const> AllOps();
/// By folder name, or null.
const Op* FindOp(std::string_view name);

/// An error if two operators have the same name, or answer to the same node and cannot be told apart (core/meaning.h).
/// Whoever loads operators asks once.
Status CheckRegistry();
/// The same for any operators.
Status CheckNames(std::span<const Op* const> ops);

/// Applies "name: value" pairs; the program and tests use it. Unknown names are errors.
Status SetAttribute(const Op& op, void* params, std::string_view name, const AttrValue& value);

}  // namespace polyop
