// SPDX-License-Identifier: Apache-2.0
// What a model's file shows about whether a session can load it: operators that nobody provides, attributes that
// polyop's nodes do not have or values out of range, and external data that is missing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/base/failure.h"
#include "onnx/onnx.pb.h"

namespace polyop::cli {

struct Fault {
  ExitCode code = kBadFile;
  std::string message;  // names the node or the tensor
  std::string hint;
};

/// Returns the faults in the attributes of nodes of polyop and of packages. ONNX Runtime itself ignores unknown
/// attributes of custom operators, so that a misspelt one would silently have its default value. Attributes that
/// exporters are known to add are valid.
std::vector<Fault> AttributeFaults(const onnx::ModelProto& model);

/// Makes a model readable as bytes: names the files of its external data as they are after links, which ONNX Runtime
/// does not follow out of the folder that it is given. Returns this folder.
std::filesystem::path FollowLinks(onnx::ModelProto* model, const std::string& path);

/// Returns the tensors whose external file is missing, too short, or outside of the model's folder and of that of the
/// file that the model is a link to: data that others wrote must not read other files. `path` is the model's.
std::vector<Fault> ExternalDataFaults(const onnx::ModelProto& model, const std::string& path);

/// Throws Failure for the first fault: kNotProvided for operators that neither polyop, nor a package, nor ONNX Runtime,
/// nor a function of the model provides, unless `libraries` may provide them; kBadFile for the others.
void CheckModel(const onnx::ModelProto& model, const std::string& path, const std::vector<std::string>& libraries);

}  // namespace polyop::cli
