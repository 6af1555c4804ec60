// SPDX-License-Identifier: Apache-2.0
// polyop new: writes a new operator in a folder of operators, or a new project with one.
#include <filesystem>
#include <iostream>
#include <regex>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/operators.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/new_operator.h"
#include "cli/new_project.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

void CheckName(const std::string& kind, const std::string& name) {
  constexpr size_t kMaxLength = 100;  // file systems allow about twice that, and std::regex recurses
  if (name.size() > kMaxLength)
    throw Failure(kUsage, Concat("the name of ", kind, " has more than ", kMaxLength, " characters"));
}

void CheckWords(const std::string& kind, const std::string& name) {
  CheckName(kind, name);
  if (!std::regex_match(name, std::regex("[a-z][a-z0-9]*(_[a-z0-9]+)*"))) {
    throw Failure(kUsage, "the name of " + kind + ": expected lower_case_words, got '" + name + "'");
  }
}

void CheckNode(const std::string& node) {
  CheckName("an operator's node", node);
  if (!std::regex_match(node, std::regex("[A-Za-z_][\\w.]*::[A-Za-z_]\\w*"))) {
    throw Failure(kUsage, "--node: expected DOMAIN::TYPE, got '" + node + "'");
  }
  const size_t colons = node.find("::");
  const OperatorInfo* other = FindOperator(node.substr(0, colons), node.substr(colons + 2));
  if (other != nullptr) {
    throw Failure(kUsage, node + " is a node of " + other->FullName(), "give it another name by --node DOMAIN::TYPE");
  }
}

// Returns the library of the operators of a folder called ops, from the CMakeLists.txt next to it, or "".
std::string LibraryOf(const fs::path& ops) {
  const fs::path lists = ops / ".." / "CMakeLists.txt";
  std::error_code error;
  if (!fs::is_regular_file(lists, error)) return "";
  const std::vector<uint8_t> bytes = ReadFile(lists.string());
  const std::string text(bytes.begin(), bytes.end());
  constexpr std::string_view kCall = "polyop_add_library(";
  const size_t call = text.find(kCall);
  if (call == std::string::npos) return "";
  const size_t begin = call + kCall.size();
  return text.substr(begin, text.find_first_of(" \n)", begin) - begin);
}

int NewProject(const NewOptions& options) {
  CheckWords("a project", options.name);
  if (options.name == "polyop") throw Failure(kUsage, "the project 'polyop' exists already");
  CheckWords("an operator", options.op);
  const std::string node = options.node.empty() ? options.name + "::" + StructName(options.op) : options.node;
  CheckNode(node);
  const fs::path folder = fs::path(options.into) / options.name;
  std::error_code error;
  if (fs::exists(folder, error)) throw Failure(kUsage, folder.string() + " exists; nothing was written");
  std::vector<std::string> files = WriteProject(folder.string(), options.name, options.op, options.gradient);
  const std::vector<std::string> of_operator =
      WriteOperator((folder / "ops").string(), options.op, node, options.gradient);
  files.insert(files.end(), of_operator.begin(), of_operator.end());
  std::cout << Join(files, "\n") << "\n\n"
            << "Its operator " << options.op << " multiplies by a number, as " << node << ". In " << folder.string()
            << ":\n"
            << "  pip install -v . build it and install it as the Python package " << options.name << "\n"
            << "  polyop test      run the tests of its operators\n"
            << "  polyop new NAME  write another operator\n";
  return kOk;
}

int NewOperator(const NewOptions& options) {
  CheckWords("an operator", options.name);
  const fs::path folder = options.into.empty() ? "ops" : options.into;
  const std::string included = IncludeFolder(folder.string());
  if (included.empty()) {
    throw Failure(kUsage, "--into: expected a folder called ops, or a folder of it, got '" + options.into + "'",
                  "files are included as ops/" + options.name + "/" + options.name + ".h, wherever ops is");
  }
  const fs::path ops = included == "ops" ? folder : folder / "..";
  const std::string library = LibraryOf(ops);
  const std::string node =
      options.node.empty() ? (library.empty() ? "custom" : library) + "::" + StructName(options.name) : options.node;
  CheckNode(node);
  for (const OperatorInfo& other : Operators()) {
    if (other.own() && other.name == options.name) {
      throw Failure(kUsage, "the operator '" + options.name + "' exists already");
    }
  }
  std::error_code error;
  const bool inside = fs::exists(ops / ".." / "core" / "operator.h", error);
  if (inside && included == "ops") {
    throw Failure(kUsage,
                  "--into: expected a room of polyop's operators, such as ops/boxes, got '" + folder.string() + "'");
  }
  if (fs::exists(folder / options.name, error)) {
    throw Failure(kUsage, (folder / options.name).string() + " exists; nothing was written");
  }
  std::cout << Join(WriteOperator(folder.string(), options.name, node, options.gradient), "\n")
            << "\n\nIt multiplies by a number, as " << node << "; change it to your operator. Then";
  if (!library.empty()) {
    std::cout << ":\n  polyop test\n";
    return kOk;
  }
  std::cout << ", in polyop's checkout:\n"
            << (inside ? "  make build\n"
                       : "  cmake --preset release -DPOLYOP_EXTRA_OPS_DIRS=" +
                             fs::absolute(ops).lexically_normal().string() + "\n  tools/build.sh\n")
            << "  build/release/bin/" << options.name << "_test\n"
            << (options.gradient ? "  build/release/bin/" + options.name + "_backward_test\n" : "");
  return kOk;
}

}  // namespace

int New(const NewOptions& options) { return options.project ? NewProject(options) : NewOperator(options); }

}  // namespace polyop::cli
