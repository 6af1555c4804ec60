// An ONNX file as its protobuf says, without running it.
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

/// "float32[1, 3, H, W]", "sequence", …
std::string TypeText(const onnx::TypeProto& type);
std::string TypeText(const onnx::TensorProto& tensor);
/// An attribute's value, shortened: "7", "avg", "[1, 1]", "tensor float32[4]".
std::string AttributeText(const onnx::AttributeProto& attribute);

/// Value of a key of the model's metadata, or "".
std::string Metadata(const onnx::ModelProto& model, const std::string& key);

/// True for the domains whose operators ONNX itself defines.
bool IsStandardDomain(const std::string& domain);
/// True for nodes of ONNX's own operators: of those domains, but for names in them that polyop or a package answers to.
bool IsStandard(const onnx::NodeProto& node);
/// The operator that the node means, of polyop or a package, or null. Operators may share a name: then the attributes
/// tell.
const OperatorInfo* OperatorOf(const onnx::NodeProto& node);
/// "domain::Type", or the type alone in the default domain.
std::string TypeOf(const onnx::NodeProto& node);
/// True for domains that ONNX Runtime brings along (com.microsoft…).
bool IsRuntimeDomain(const std::string& domain);
/// True if the model defines the operator by a function of its own.
bool IsLocalFunction(const onnx::ModelProto& model, const onnx::NodeProto& node);

/// Throws Failure (kNotProvided) if the model has nodes that neither polyop, nor a package, nor ONNX Runtime provides.
void CheckProvided(const onnx::ModelProto& model, const std::string& path);

}  // namespace polyop::cli
