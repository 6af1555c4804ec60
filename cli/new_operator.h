// SPDX-License-Identifier: Apache-2.0
// The files that `polyop new` writes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polyop::cli {

/// The name and the text of a file, with @NAME@ for the value of a variable.
struct Template {
  const char* file;
  const char* text;
};
using Variables = std::vector<std::pair<std::string_view, std::string>>;

/// Returns the text with the values of the variables.
std::string Filled(std::string_view text, const Variables& variables);

/// Writes the files and returns their paths. Throws Failure if one cannot be written.
std::vector<std::string> WriteFiles(const std::string& folder, std::span<const Template> templates,
                                    const Variables& variables);

/// Returns the name of an operator's struct: "HardSwish" for "hard_swish".
std::string StructName(const std::string& name);

/// Returns how files below the folder are included: "ops" for a folder called ops, "ops/ROOM" for a folder of it, ""
/// for others.
std::string IncludeFolder(const std::string& folder);

/// Writes the folder of an operator that multiplies by a number: definition, kernels, reference and test; if `gradient`
/// is set, also the formula and the same files of the gradient. Returns the paths of the files.
std::vector<std::string> WriteOperator(const std::string& ops, const std::string& name, const std::string& node,
                                       bool gradient);

}  // namespace polyop::cli
