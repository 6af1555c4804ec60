// Which operator a node means. A name belongs to one operator, or several share it and the node's attributes tell:
//
//   static constexpr NodeName kNodes[] = {"polyop::BallQuery"};                                // ball_query
//   static constexpr NodeName kNodes[] = {NodeName("polyop::BallQuery").When("nsample"), …};   // grid_ball_query
//
// Runtimes make one type of nodes of a name. So one of the operators has the inputs and outputs of all; tensors that
// they have in common are of the same types, and in the same memory.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/op.h"

namespace polyop {

/// An operator, and the name by which nodes mean it.
struct Meaning {
  const Op* op = nullptr;
  const NodeName* node = nullptr;
};

/// The operators' node names, each once, with what nodes of the name may mean.
std::vector<std::vector<Meaning>> MeaningsByName(std::span<const Op* const> ops);
/// Of all registered operators; none if no operator answers to such nodes.
std::vector<Meaning> MeaningsOf(std::string_view domain, std::string_view op_type);

/// An error if operators share the name and cannot be told apart, or differ in what the head of this file says.
Status CheckShared(std::span<const Meaning> meanings);
/// The one that has the inputs and outputs of all.
const Meaning& Widest(std::span<const Meaning> meanings);

/// What a node with these attributes means: the first whose condition it fulfils, else the one that has none. A runtime
/// that knows no domains may have several of those: then the first whose required attributes the node gives. An error
/// if what one of them requires says that the node means another.
Status ChooseMeaning(std::span<const Meaning> meanings, AttrSource& attributes, Meaning* chosen);
/// An error, if a node of a shared name that means `chosen` has too few or too many outputs for it.
Status CheckOutputCount(std::span<const Meaning> meanings, const Meaning& chosen, size_t count);

/// "'nsample'", "'output_z' of 2 or more": what a node has that means the operator; "" where there is no condition.
std::string ConditionText(const NodeName& node);

}  // namespace polyop
