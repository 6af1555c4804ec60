// SPDX-License-Identifier: Apache-2.0
// Resolves a node of a model to an operator. A node name belongs to one operator, or several operators share it and the
// node's attributes select one:
//
//   static constexpr NodeName kNodes[] = {"polyop::BallQuery"};                                // ball_query
//   static constexpr NodeName kNodes[] = {NodeName("polyop::BallQuery").When("nsample"), …};   // grid_ball_query
//
// A runtime registers one schema per node name. Operators that share a name must therefore fit one schema: one of them
// has all inputs and outputs of the others, and inputs and outputs at the same index have the same types and the same
// memory (host or device).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.h"

namespace polyop {

/// An operator that a node name may resolve to, and its entry of that name.
struct NodeCandidate {
  const Op* op = nullptr;
  const NodeName* node = nullptr;
};

/// Returns the candidates of each node name of `ops`; each name occurs once.
std::vector<std::vector<NodeCandidate>> CandidatesByName(std::span<const Op* const> ops);
/// The domain in which ONNX Runtime's provider for TensorRT has all plugins, by their names without a domain.
inline constexpr std::string_view kPluginDomain = "trt.plugins";
/// Returns the candidates of each node name in kPluginDomain. It has all names of `ops`, without their domains; where
/// several domains have a name, it has the meaning of domain "polyop", else of the first.
std::vector<std::vector<NodeCandidate>> CandidatesByPluginName(std::span<const Op* const> ops);
/// Returns the candidates of a node name among all registered operators; empty if no operator has the name.
std::vector<NodeCandidate> CandidatesFor(std::string_view domain, std::string_view op_type);

/// Returns an error if the candidates of a name cannot be distinguished or do not fit one schema.
Status CheckSharedName(std::span<const NodeCandidate> candidates);
/// Returns the candidate that has the inputs and outputs of all: the one whose schema a runtime registers.
const NodeCandidate& SchemaCandidate(std::span<const NodeCandidate> candidates);

/// Selects the candidate for a node with these attributes: the first whose condition the node fulfils, else the one
/// without a condition. A runtime that ignores domains may have several of the latter: then the first whose required
/// attributes the node has. Returns an error if the node also has an attribute that only another candidate requires.
Status ResolveNode(std::span<const NodeCandidate> candidates, AttrSource& attributes, NodeCandidate* resolved);
/// Returns an error if the name is shared and the node has too few or too many outputs for `resolved`.
Status CheckOutputCount(std::span<const NodeCandidate> candidates, const NodeCandidate& resolved, size_t count);

/// Returns the condition that selects the operator as text: "'nsample'", "'output_z' >= 2"; empty if there is none.
std::string ConditionText(const NodeName& node);

}  // namespace polyop
