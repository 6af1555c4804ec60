// Files that `polyop new` writes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace polyop::cli {

/// A file's name and text, in which @place@ stands for a value.
struct Template {
  const char* file;
  const char* text;
};
using Places = std::vector<std::pair<std::string_view, std::string>>;

std::string Filled(std::string_view text, const Places& places);

/// Returns the paths of the files. Throws Failure if one cannot be written.
std::vector<std::string> WriteFiles(const std::string& folder, std::span<const Template> templates,
                                    const Places& places);

/// "hard_swish" -> "HardSwish": the name of an operator's struct.
std::string StructName(const std::string& name);

/// The folder of an operator that multiplies by a number: definition, kernels, reference and test.
std::vector<std::string> WriteOperator(const std::string& ops, const std::string& name, const std::string& node);

}  // namespace polyop::cli
