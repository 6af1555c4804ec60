// The operators that the program knows, polyop's and those of packages, as their libraries describe them.
#pragma once

#include <cstdint>
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

/// A node name that an operator answers to.
struct NodeInfo {
  std::string domain, type;
  std::string label;  // "mmcv::MMCVRoiAlign", or the type alone in ONNX's default domain
  std::string note;   // what the name implies: preset and renamed attributes, an equal operator of ONNX's
  /// Which nodes of a name that operators share mean the operator; nothing: those that mean none of the others.
  struct Condition {
    std::vector<std::string> attribute;  // the names under which nodes write it
    std::optional<int64_t> least;

    /// "with nsample", "with output_z of 2 or more".
    std::string Text(bool markdown) const;
  };
  std::optional<Condition> when;
};

struct OperatorInfo {
  std::string package;  // "polyop", or the package's name
  std::string name;
  std::string summary, semantics, source, differences, not_portable;
  std::vector<std::string> signatures, types, runtimes;
  std::vector<AttributeInfo> attributes;
  std::vector<NodeInfo> nodes;
  std::vector<int> deciding_inputs;  // their values decide shapes

  bool own() const { return package == "polyop"; }
  /// "roi_align"; "my_ops::times", as PyTorch calls it, where it is a package's.
  std::string FullName() const { return own() ? name : package + "::" + name; }
};

/// polyop's by name, then the packages'.
const std::vector<OperatorInfo>& Operators();
/// An operator, and the name by which nodes mean it.
struct Candidate {
  const OperatorInfo* op;
  const NodeInfo* node;
};
/// Those that answer to nodes of this name, of one package: polyop's, if it has any. Of several the node's attributes
/// tell which is meant (OperatorOf in cli/base/model.h).
std::vector<Candidate> FindCandidates(std::string_view domain, std::string_view type);
/// The first of them, or null.
const OperatorInfo* FindOperator(std::string_view domain, std::string_view type);

}  // namespace polyop::cli
