// SPDX-License-Identifier: Apache-2.0
// The operators of polyop and of packages, from the catalogues of their libraries.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

struct AttributeInfo {
  std::string name, type, value;  // the default
  std::string range, meaning;
  std::vector<std::string> aliases;
  bool required = false;
};

/// A node name of an operator.
struct NodeInfo {
  std::string domain, type;
  std::string label;       // "mmcv::MMCVRoiAlign", or the type alone in ONNX's default domain
  std::string note;        // preset and renamed attributes, and an equal operator of ONNX
  bool is_plugin = false;  // the type also exists in kPluginDomain
  /// The condition under which a node of a shared name resolves to the operator. The operator without one gets the
  /// remaining nodes.
  struct Condition {
    std::string attribute;  // its name on nodes
    std::optional<int64_t> least;

    /// "with nsample", "with output_z of 2 or more".
    std::string Text(bool markdown) const;
  };
  std::optional<Condition> when;
  std::map<std::string, std::string> renames;  // the operator's attribute name -> the name in such nodes
};

/// What computes an operator's gradients in PyTorch.
struct GradientInfo {
  std::vector<std::string> inputs;  // the inputs that have gradients
  std::vector<std::string>
      kernels;  // the devices that have a gradient kernel, "CPU" or "CUDA"; the formula serves others
};

struct OperatorInfo {
  std::string package;                                 // "polyop" or the name of the package
  const char* (*resolve_node)(const char*) = nullptr;  // as adapters/resolve.h, for the operators of the package
  std::string name;
  std::string room;  // the folder of ops/ that its folder is in, or ""
  std::string summary, semantics, source, differences, not_portable;
  std::vector<std::string> signatures, types, runtimes;
  std::vector<AttributeInfo> attributes;
  std::vector<NodeInfo> nodes;
  std::optional<GradientInfo> gradient;
  std::vector<int> deciding_inputs;      // inputs whose values decide shapes
  std::vector<std::string> input_roles;  // of each input, as core/input_role.h states them

  bool own() const { return package == "polyop"; }
  /// Returns the names that attributes may have in nodes of this name.
  std::vector<std::string> AttributeNames(const NodeInfo& node) const;
  /// "roi_align", or for an operator of a package "my_ops::times", as in PyTorch.
  std::string FullName() const { return own() ? name : package + "::" + name; }
};

/// Returns polyop's operators by name, then those of the packages.
const std::vector<OperatorInfo>& Operators();
/// An operator that nodes of a name may resolve to, and its entry for that name.
struct NodeCandidate {
  const OperatorInfo* op;
  const NodeInfo* node;
};
/// Returns the operators that nodes of this name may resolve to. All are of one package: polyop, if it has any.
/// Resolve in cli/base/model.h chooses between several by the node's attributes.
std::vector<NodeCandidate> FindCandidates(std::string_view domain, std::string_view type);
/// Returns the first of FindCandidates, or null.
const OperatorInfo* FindOperator(std::string_view domain, std::string_view type);

}  // namespace polyop::cli
