// SPDX-License-Identifier: Apache-2.0
// What the program leaves to Python: whole commands, and models that run in runtimes with Python bindings only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/base/array.h"
#include "cli/base/runtime.h"
#include "cli/json.h"

namespace polyop::cli {

/// A command of `python -m polyop`. Its options, help and errors are those of python/polyop/_commands/.
struct PythonCommand {
  const char* name;
  const char* summary;
};
std::span<const PythonCommand> PythonCommands();

/// Replaces this process by the command in Python. No Python that the program starts imports modules from the current
/// folder. Throws Failure (kNoRuntime) if there is no Python
/// with the package polyop. The message lists which were tried.
[[noreturn]] void HandOver(const std::vector<std::string>& words);

/// Runs the module polyop._commands.MODULE with REQUEST and REPLY, where both are files of JSON, and returns the reply.
/// Throws Failure with the error, hint and exit code that the reply has, or with `needs` ("openvino: pip install
/// openvino") if the module does not start.
Json AskPython(const std::string& module, const Json& request, const std::string& needs);

/// Like AskPython for modules that run a model. The request gets "inputs" and "outputs", the paths of .npz files;
/// `outputs` gets the arrays that the module wrote, in the order of `output_infos`; if these are empty, it writes none.
Json AskPython(const std::string& module, Json request, const std::string& needs,
               const std::vector<TensorInfo>& input_infos, const std::vector<Array>& inputs,
               const std::vector<TensorInfo>& output_infos, std::vector<Array>* outputs);

}  // namespace polyop::cli
