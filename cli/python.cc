// SPDX-License-Identifier: Apache-2.0
#include "cli/python.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>

#include "cli/base/environments.h"
#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/process.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

constexpr PythonCommand kCommands[] = {
    {"batch", "Run a model on many files, on all cores or on a Ray cluster"},
    {"triton", "Write a model repository for Triton Inference Server"},
    {"attach", "Put what comes before and after a detector into its file"},
    {"optimize", "Replace what polyop computes faster in a model"},
    {"convert", "Build a TensorRT engine from a model, or write it for OpenVINO or in half precision"},
    {"portable", "Give polyop's nodes functions of standard operators"},
    {"doctor", "Show what is installed, what does not load and why, and what to do"},
};

// The start of a program for `python -c`. Python puts the current folder, as "", before all others: a model's folder
// may have a file json.py. `-P` would prevent it, but Python 3.10 lacks it. A path that is no folder replaces it:
// OpenCV expects that what it is imported from is not the first entry.
constexpr const char* kWithoutCurrentFolder = "import sys; sys.path[:] = [p or sys.executable for p in sys.path]; ";

// Returns the command that runs a module like `python -m`, as polyop._base.isolation.command does.
std::vector<std::string> ModuleCommand(const std::string& python, const std::string& module) {
  return {python, "-c",
          kWithoutCurrentFolder +
              std::string("import runpy; del sys.argv[0]; runpy.run_module(sys.argv[0], run_name='__main__', "
                          "alter_sys=True)"),
          module};
}

// Keeps modules of the current folder out of every Python that this process starts, and that those start. An empty part
// of PYTHONPATH, as `PYTHONPATH=$PYTHONPATH:/more` leaves it, means that folder too.
void IsolatePython() {
  SetVariable("PYTHONSAFEPATH", "1");  // from Python 3.11 on
  const char* path = std::getenv("PYTHONPATH");
  if (path == nullptr) return;
  std::string kept;
  for (const std::string& folder : SplitAt(kListSeparator, path)) {
    if (!folder.empty()) kept += (kept.empty() ? "" : std::string(1, kListSeparator)) + folder;
  }
  SetVariable("PYTHONPATH", kept);
}

// A Python that may have the package, or where one was expected.
struct Candidate {
  std::string path, label;
};

Candidate PythonIn(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {"python", "python3"}) {
    const fs::path file = folder / ProgramFile(name);
    if (fs::exists(file, error)) return {file.string(), file.string()};
  }
  return {"", (folder / "python").string()};
}

std::vector<Candidate> Candidates() {
  std::vector<Candidate> found;
  for (const fs::path& folder : ProgramFolders()) {
    found.push_back(PythonIn(folder));
    if (folder.filename() == "Scripts") found.push_back(PythonIn(folder.parent_path()));  // Python itself on Windows
  }
  fs::path on_path = FindOnPath("python3");
  if (on_path.empty()) on_path = FindOnPath("python");
  found.push_back({on_path.string(), on_path.empty() ? "python3 on PATH" : on_path.string()});
  for (const fs::path& folder : CheckoutEnvironments()) found.push_back(PythonIn(folder));
  return found;
}

// Returns true if the files of an environment show that its Python has the package polyop: most often, no Python must
// be started to know it.
bool ShowsPackage(const fs::path& python) {
  std::error_code error;
  const fs::path version = fs::canonical(python, error).filename();  // "python3.11"
  const fs::path site = python.parent_path().parent_path() / "lib" / version / "site-packages";
  const auto has_package = [&](const fs::path& folder) { return fs::exists(folder / "polyop" / "__init__.py", error); };
  if (has_package(site)) return true;
  for (const auto& entry : fs::directory_iterator(site, error)) {  // a link to a checkout
    const fs::path& path = entry.path();
    if (path.extension() != ".pth" || path.filename().string().find("polyop") == std::string::npos) continue;
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) {
      if (has_package(line)) return true;
    }
  }
  return false;
}

// Returns the first Python that has the package polyop: of the environment that the program lies in, then PATH's, then
// of a .venv above the program.
const std::string& FindPython(const std::string& task) {
  static std::string python;
  if (!python.empty()) return python;
  IsolatePython();
  std::string tried;
  for (const Candidate& candidate : Candidates()) {
    int status = -1;
    if (!candidate.path.empty()) {
      const std::string search = "import importlib.util; sys.exit(importlib.util.find_spec('polyop') is None)";
      status = ShowsPackage(candidate.path) ? 0 : ExitStatusOf({candidate.path, "-c", kWithoutCurrentFolder + search});
      if (status == 0) return python = candidate.path;
    }
    tried += "\n  " + candidate.label + ": " +
             (candidate.path.empty() ? "does not exist"
              : status == 1          ? "has no package polyop"
                                     : "does not start");
  }
  throw Failure(kNoRuntime, task + " needs a Python with the package polyop. Tried:" + tried,
                "install polyop's wheel in one: pip install polyop-….whl (`make wheel` builds it into dist/)");
}

}  // namespace

std::span<const PythonCommand> PythonCommands() { return kCommands; }

void HandOver(const std::vector<std::string>& words) {
  const std::string& python = FindPython("`polyop " + words.front() + "`");
  std::vector<std::string> command = ModuleCommand(python, "polyop");
  command.insert(command.end(), words.begin(), words.end());
  std::cout.flush();
  Become(command);
  throw Failure(kNoRuntime, python + " does not start: " + std::strerror(errno));
}

Json AskPython(const std::string& module, const Json& request, const std::string& needs) {
  const std::string& python = FindPython("this");
  const TemporaryFolder folder;
  const std::string text = ToText(request);
  WriteFile(folder.File("request.json"), text.data(), text.size());
  std::vector<std::string> command = ModuleCommand(python, "polyop._commands." + module);
  command.insert(command.end(), {folder.File("request.json"), folder.File("reply.json")});
  if (Execute(command, Shown::kErrors) != 0) {
    throw Failure(kFailed, python + " cannot run polyop._commands." + module,
                  "it needs " + needs + "; its message is above");
  }
  Json reply = ParseJson(ReadFile(folder.File("reply.json")));
  if (reply.contains("error")) {
    throw Failure(static_cast<ExitCode>(reply.at("code").get<int>()), reply.at("error").get<std::string>(),
                  reply.at("hint").get<std::string>());
  }
  return reply;
}

Json AskPython(const std::string& module, Json request, const std::string& needs,
               const std::vector<TensorInfo>& input_infos, const std::vector<Array>& inputs,
               const std::vector<TensorInfo>& output_infos, std::vector<Array>* outputs) {
  const TemporaryFolder folder;
  std::map<std::string, Array> named;
  for (size_t i = 0; i < inputs.size(); ++i) named[input_infos[i].name] = inputs[i];
  WriteNpz(folder.File("inputs.npz"), named);
  request["inputs"] = folder.File("inputs.npz");
  request["outputs"] = folder.File("outputs.npz");
  Json reply = AskPython(module, request, needs);
  if (output_infos.empty()) return reply;
  std::map<std::string, Array> results = ReadNpz(folder.File("outputs.npz"), {}, /*is_own=*/true);
  for (const TensorInfo& info : output_infos) {
    if (!results.contains(info.name)) throw Failure(kFailed, "the model gave no output '" + info.name + "'");
    outputs->push_back(std::move(results[info.name]));
  }
  return reply;
}

}  // namespace polyop::cli
