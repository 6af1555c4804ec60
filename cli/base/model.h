// SPDX-License-Identifier: Apache-2.0
// ONNX files as protobuf messages.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/base/image.h"
#include "cli/base/operators.h"
#include "onnx/onnx.pb.h"

namespace polyop::cli {

/// Throws Failure (kBadFile) if the file is missing, damaged or not ONNX. External data is not loaded.
onnx::ModelProto LoadModel(const std::string& path);

/// Calls `visit` for every node: of the graph, of subgraphs (If, Loop, Scan) and of the model's functions.
void ForEachNode(const onnx::ModelProto& model, const std::function<void(const onnx::NodeProto&)>& visit);

/// Returns "float32[1, 3, H, W]", "sequence", …
std::string TypeText(const onnx::TypeProto& type);
std::string TypeText(const onnx::TensorProto& tensor);
/// Returns an attribute's value, shortened: "7", "avg", "[1, 1]", "tensor float32[4]".
std::string AttributeText(const onnx::AttributeProto& attribute);

/// Returns the value of a key of the model's metadata, or "".
std::string Metadata(const onnx::ModelProto& model, const std::string& key);

/// Returns true for the domains of ONNX's own operators.
bool IsStandardDomain(const std::string& domain);
/// Returns true for nodes of ONNX's own operators: nodes of these domains whose name no operator of polyop or of a
/// package has.
bool IsStandard(const onnx::NodeProto& node);
/// Returns the operator that the node resolves to, of polyop or a package, or null. Where operators share a name, the
/// node's attributes decide.
const OperatorInfo* ResolveNode(const onnx::NodeProto& node);
/// Like ResolveNode, with the operator's entry for the node's name, and the error with which a runtime would refuse the
/// node's attributes. `op` and `node` are null if there is no such operator, or the attributes select none.
struct Resolution {
  const OperatorInfo* op = nullptr;
  const NodeInfo* node = nullptr;
  std::string error;
};
Resolution Resolve(const onnx::NodeProto& node);
/// Returns "domain::Type", or the type alone in the default domain.
std::string TypeOf(const onnx::NodeProto& node);
/// Returns true for the domains of ONNX Runtime's contrib operators (com.microsoft…).
bool IsRuntimeDomain(const std::string& domain);
/// Returns true if the model has a function that defines the operator.
bool IsLocalFunction(const onnx::ModelProto& model, const onnx::NodeProto& node);

}  // namespace polyop::cli
