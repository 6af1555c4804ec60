// SPDX-License-Identifier: Apache-2.0
// Patterns: several nodes of a graph that one operator of polyop computes. A pattern is a file
// <room>/patterns/<name>.cc:
//
//   POLYOP_PATTERN(corner_pool, {"corner pooling", {"Concat", "ScatterND"}, Match, MakeKernel, 0});
//
// It sees a graph of ONNX Runtime, when a session is created, or of a file, for `polyop optimize`. It may guess: both
// compare what it finds with the nodes themselves before they replace them.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/standard_node.h"

namespace polyop {

struct Graph;
struct GraphNode;

/// A tensor of a graph.
struct GraphValue {
  std::string name;
  /// Extents below kUnknownExtent are unknown, too; equal ones are equal when the graph runs.
  KnownTensor known;
  bool is_constant = false;               // an initializer, also one whose elements are not known
  bool is_output = false;                 // the graph returns it
  const GraphNode* producer = nullptr;    // null: an input, a constant, or a tensor of an outer graph
  std::vector<const GraphNode*> readers;  // once for each input; also nodes whose subgraphs read it
  /// Integers that follow from extents, of a vector or a scalar, as FindExtents finds them: unknown ones are negative.
  std::optional<std::vector<int64_t>> integers;

  const Shape* shape() const { return known.shape.has_value() ? &*known.shape : nullptr; }
  int rank() const { return known.rank(); }
};

/// A node of a graph.
struct GraphNode {
  std::string type;  // "Conv", or "mmcv::cummax"
  std::string name;
  std::vector<const GraphValue*> inputs, outputs;  // null: omitted
  std::vector<const GraphValue*> captured;         // what its subgraphs read
  std::vector<std::unique_ptr<Graph>> subgraphs;   // the body of a Loop or a Scan, the branches of an If
  std::unique_ptr<AttrSource> attributes;          // a tensor of one element is a number
  const Graph* graph = nullptr;                    // to which the node belongs
  const void* of_runtime = nullptr;                // the runtime's node

  /// Returns null if the node has fewer, or omits it.
  const GraphValue* input(size_t i) const { return i < inputs.size() ? inputs[i] : nullptr; }
  int64_t Int(const char* attribute, int64_t otherwise) const;
  std::string Text(const char* attribute, const char* otherwise) const;
  bool Is(std::initializer_list<std::string_view> types) const;
};

/// Pointers to its elements stay valid.
struct Graph {
  std::deque<GraphNode> nodes;  // each after those that it reads from
  std::deque<GraphValue> values;
  std::vector<const GraphValue*> inputs, outputs;  // of a subgraph
  int opset = 0;
  bool sizes_are_fixed = true;  // false: of a file whose inputs have several sizes; extents are those of one run
};

/// Adds integers that the graph computes from shapes, and extents that follow from them.
void FindExtents(Graph* graph);

/// What a pattern found: an operator of polyop, or nodes around it, compute `outputs` from `inputs`.
struct PatternMatch {
  const GraphNode* at = nullptr;  // the node that reports name
  std::vector<const GraphValue*> inputs;
  std::vector<const GraphValue*> outputs;
  std::string node;  // of polyop: "mmcv::MMCVCornerPool"
  std::vector<std::pair<std::string, AttrValue>> attributes;
  /// What else the kernel and the writer of files need.
  std::vector<std::pair<std::string, AttrValue>> parameters;
  double work = 0;        // in the unit of Pattern::min_work
  bool is_exact = false;  // it follows from the definitions of all its nodes; else sessions compare it with these
  std::string refused;    // why it cannot be replaced, in a few words
  /// The range of the values with which the match is compared, for each input; by default [-2, 2] for real numbers.
  std::vector<std::pair<double, double>> ranges;
  /// The shapes of the inputs, if the pattern knows more of them than the graph.
  std::vector<Shape> shapes;

  /// Returns 0 if there is none.
  int64_t Parameter(std::string_view name) const;
};

struct Pattern {
  const char* name = "";
  std::vector<std::string_view> ends;  // the types of the node at which `match` begins
  /// Returns nothing if the node does not belong to such a part.
  std::optional<PatternMatch> (*match)(const Graph& graph, const GraphNode& end) = nullptr;
  /// Returns the kernel, whose inputs and outputs are those of the match; null if there is none. Null: NodeKernelOf.
  std::unique_ptr<StandardKernel> (*make)(const PatternMatch& match) = nullptr;
  double min_work = 0;  // below, the nodes themselves are as fast
  bool files_only = false;
  /// Changes the random values with which a session compares a match: boxes must overlap.
  void (*draw)(const PatternMatch& match, std::mt19937& random, std::span<const AnyTensor> inputs) = nullptr;
};

/// Returns all registered patterns.
std::span<const Pattern> Patterns();
bool AddPattern(Pattern pattern);

#define POLYOP_PATTERN(NAME, ...) \
  [[maybe_unused]] static const bool NAME##_is_registered = ::polyop::AddPattern(__VA_ARGS__)

/// Returns a call of the match's node with its outputs; null if polyop has no kernel for the types.
std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match, const std::vector<KnownTensor>& inputs);
std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match, const std::vector<KnownTensor>& inputs,
                                             const std::vector<KnownTensor>& outputs);
/// Returns the call with the match's own inputs.
std::unique_ptr<StandardKernel> NodeKernelOf(const PatternMatch& match);
std::unique_ptr<StandardKernel> KernelOf(const Pattern& pattern, const PatternMatch& match);

/// Returns what the pattern finds at a node; an error of a pattern is a refused match. Nothing if the pattern does not
/// begin at nodes of this type.
std::optional<PatternMatch> FindAt(const Pattern& pattern, const Graph& graph, const GraphNode& node);

/// The nodes between a match's inputs and outputs.
struct Cone {
  std::vector<const GraphNode*> nodes;       // in the order of the graph
  std::vector<const GraphValue*> constants;  // that they read
  std::vector<const GraphValue*> sized;      // other values, of which they read the shape only
};

/// Returns nothing if the outputs depend on more than the inputs, constants and shapes.
std::optional<Cone> ConeOf(const Graph& graph, const PatternMatch& match);

/// Returns the nodes that one node with the match's outputs can replace: those of the cone whose other results nothing
/// else reads. Empty if these do not read all inputs, or not only them and constants.
std::vector<const GraphNode*> ReplaceableNodes(const PatternMatch& match, const Cone& cone);

// ---- For patterns ---------------------------------------------------------------------------------------------------

/// Returns the node that produces the value if it has one of these types, else null.
const GraphNode* Producer(const GraphValue* value, std::initializer_list<std::string_view> types);
/// Returns the value and the values that it was moved from, back to one that is computed.
std::vector<const GraphValue*> Trail(const GraphValue* value);
/// Returns the elements of a small constant of integers or real numbers.
std::optional<std::vector<double>> Numbers(const GraphValue* value);
/// Returns the element of a constant of one element.
std::optional<double> Scalar(const GraphValue* value);
/// Returns the number that all elements of a tensor are equal to.
std::optional<double> FilledWith(const GraphValue* value);
/// Returns true if a node reads the value, or if the graph returns it.
bool IsRead(const GraphValue* value);
/// Returns the values that this one is moved to, in up to `steps` movements, each of which is its only reader.
std::vector<const GraphValue*> MovedOn(const GraphValue* value, int steps);
/// Returns the value and the constant number of a node with two inputs, in either order.
std::optional<std::pair<const GraphValue*, double>> Operands(const GraphNode* node);
/// Returns true if both shapes are known and equal.
bool SameShape(const GraphValue* a, const GraphValue* b);

/// A value that a Loop or a Scan passes from step to step.
struct LoopState {
  const GraphValue* first = nullptr;   // before the first step
  const GraphValue* before = nullptr;  // in the body: at the start of a step
  const GraphValue* after = nullptr;   // in the body: at the end of a step
  const GraphValue* last = nullptr;    // after the last step
};

const Graph& BodyOf(const GraphNode& loop);
std::vector<LoopState> StatesOf(const GraphNode& loop);
/// Returns pairs: the result of a step in the body, and the joined results of all steps.
std::vector<std::pair<const GraphValue*, const GraphValue*>> ResultsOfSteps(const GraphNode& loop);

}  // namespace polyop
