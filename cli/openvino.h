// SPDX-License-Identifier: Apache-2.0
// Models in OpenVINO: their inputs and outputs, and running them.
#pragma once

#include <string>
#include <vector>

#include "cli/python_model.h"

namespace polyop::cli {

/// Returns true for .xml, the extension of OpenVINO's own files.
bool IsOpenVino(const std::string& path);

/// A model in OpenVINO's CPU plugin with polyop's operators. It runs in Python.
class OpenVinoModel : public PythonModel {
 public:
  /// Loads an ONNX file, whose inputs must have the names in `input`, or one of OpenVINO's. Uses the threads and the
  /// libraries of the options, and ignores the others. The precision is f32, or with the kind "openvino-default" the
  /// one that OpenVINO chooses. Throws Failure with OpenVINO's message.
  OpenVinoModel(const std::string& path, const SessionOptions& options, const InputOptions& input,
                const std::string& kind = "openvino");
};

}  // namespace polyop::cli
