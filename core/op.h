// The record of one operator at run time, and the registry of all. Adapters loop over records and
// know no operator by name.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attributes.h"
#include "core/context.h"
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
  const char* summary = "";      // one sentence
  const char* semantics = "";    // what the signature does not say: edge cases, NaN, empty inputs
  const char* source = "";       // the paper, or the torch function whose semantics hold
  const char* differences = "";  // from MMCV, MMDeploy, torch
};

/// A node name that the operator answers to: "domain::OpType".
struct NodeName {
  struct Pair {
    const char* first = nullptr;
    const char* second = nullptr;
  };
  const char* name = "";
  std::array<Pair, 4> renames{};  // the operator's attribute name -> the name in such nodes
  std::array<Pair, 4> presets{};  // attribute name -> value (as text) that this node name implies

  constexpr NodeName() = default;
  constexpr NodeName(const char* n) : name(n) {}  // NOLINT: a plain string is the usual case
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

  /// How such nodes call an attribute.
  const char* NameOf(const char* attribute) const {
    for (const Pair& p : renames) {
      if (p.first != nullptr && std::string_view(p.first) == attribute) return p.second;
    }
    return attribute;
  }

  std::string_view domain() const {
    const std::string_view s = name;
    return s.substr(0, s.find("::"));
  }
  std::string_view op_type() const {
    const std::string_view s = name;
    return s.substr(s.find("::") + 2);
  }
};

/// A signature with its names resolved against the operator's attributes.
struct OpSignature {
  const Signature* signature = nullptr;
  std::array<int16_t, kMaxNames> attribute_of_name{};  // index into Op::attributes, or -1

  /// True if a value inside input `i` decides a shape: a runtime must keep that input in host memory.
  bool needs_value(int i) const;
};

/// What a kernel is started with, types erased.
struct Launch {
  const void* params;
  const void* context;  // Context of the device
  std::span<const AnyTensor> inputs;
  std::span<const AnyTensor> outputs;  // pending extents are -1 and data is null
  OutputSource* source;
};

struct Kernel {
  Device device = Device::kCpu;
  int signature = 0;                        // index into Op::signatures
  std::array<DType, kMaxTensors> inputs{};  // per tensor of the signature; `any` inputs: unused
  std::array<DType, kMaxTensors> outputs{};
  Status (*launch)(const Launch&) = nullptr;
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

struct Op {
  std::string_view name;  // its folder: "roi_align"
  Doc doc;
  std::vector<OpSignature> signatures;
  std::vector<AttrInfo> attributes;
  std::vector<NodeName> nodes;
  std::vector<Kernel> kernels;
  void* (*create_params)() = nullptr;
  void (*destroy_params)(void*) = nullptr;
  Status (*check_params)(const void*) = nullptr;  // the struct's Check(), if it has one

  /// The operator's struct with its defaults.
  Params DefaultParams() const { return Params(create_params(), ParamsDeleter{destroy_params}); }

  /// Reads every attribute (aliases and the node's renames and presets applied) and checks it.
  Status MakeParams(const NodeName& node, AttrSource& source, Params* params) const;

  const AttrInfo* FindAttribute(std::string_view attribute) const;

  /// The kernel for a device and inputs of these types and ranks, or an error that says what there is.
  Status FindKernel(Device device, std::span<const AnyTensor> inputs, const Kernel** kernel) const;

  /// Checks inputs against the kernel's signature, allocates the outputs and launches.
  Status Run(const Kernel& kernel, const void* params, std::span<const AnyTensor> inputs, OutputSource& outputs,
             const void* context) const;
};

/// All registered operators, by name.
std::span<const Op* const> AllOps();
/// By folder name, or null.
const Op* FindOp(std::string_view name);
/// By node domain and type, or null. `node` may be null.
const Op* FindOpByNode(std::string_view domain, std::string_view op_type, const NodeName** node);

/// Applies "name: value" pairs; the program and tests use it. Unknown names are errors.
Status SetAttribute(const Op& op, void* params, std::string_view name, const AttrValue& value);

}  // namespace polyop
