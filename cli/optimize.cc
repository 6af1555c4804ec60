// `polyop optimize`: what polyop computes faster in a model becomes its nodes. Graphs are rewritten in Python, where
// ONNX's own libraries for that are: `python3 -m polyop.optimizing` does the work, this is its command line.
#include <filesystem>
#include <iostream>
#include <map>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/process.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/python.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

Json ParseShapes(const std::vector<std::string>& texts) {
  Json shapes = Json::object();
  for (const std::string& text : texts) {
    const Named named = SplitNamed("--shape", text);
    shapes[named.name] = ParseShape(named.value, "--shape " + text);
  }
  return shapes;
}

// What the command line says of values, as a file; "" if it says nothing.
std::string WriteInputs(const OptimizeOptions& options, const TemporaryFolder& folder) {
  if (options.input.inputs.empty() && options.input.sets.empty()) return "";
  const onnx::ModelProto model = LoadModel(options.model);
  const Session session(options.model, options.session);
  const Feeds feeds = ReadFeeds(session.inputs(), model, options.input);
  std::map<std::string, Array> named;
  for (size_t i = 0; i < feeds.arrays.size(); ++i) named[session.inputs()[i].name] = feeds.arrays[i];
  WriteNpz(folder.File("inputs.npz"), named);
  return folder.File("inputs.npz");
}

void PrintReport(const OptimizeOptions& options, const Json& report) {
  const Json& table = report.at("table");
  const auto rows = table.at("rows").get<std::vector<std::vector<std::string>>>();
  if (!rows.empty()) std::cout << Table(table.at("header").get<std::vector<std::string>>(), rows) << "\n";
  for (const Json& line : report.at("lines")) std::cout << line.get<std::string>() << "\n";
  std::cout << Green("wrote") << " " << options.output << " ("
            << BytesText(static_cast<double>(fs::file_size(options.output))) << ")"
            << (report.at("replaced").empty() ? ": the same file" : "") << "\n";
}

}  // namespace

int Optimize(const OptimizeOptions& options) {
  std::vector<std::string> libraries;
  libraries.reserve(options.session.libraries.size());
  for (const std::string& library : options.session.libraries) libraries.push_back(fs::absolute(library));
  const TemporaryFolder folder;
  const Json request = {{"model", fs::absolute(options.model)},
                        {"output", fs::absolute(options.output)},
                        {"shapes", ParseShapes(options.input.shapes)},
                        {"inputs", WriteInputs(options, folder)},
                        {"all", options.all},
                        {"allow_fix", options.allow_fix},
                        {"measure", options.measure},
                        {"tolerance", options.tolerance},
                        {"threads", options.session.threads},
                        {"libraries", libraries}};
  const Json report = AskPython(
      "polyop.optimizing", request,
      "python3 needs polyop, onnx, onnx-ir and onnxruntime (pip install 'polyop[optimize]'); its message stands above",
      "optimising needs a python3 on the PATH that has polyop, onnx, onnx-ir and onnxruntime");
  CheckReport(report);
  if (options.json) {
    std::cout << ToText(report) << "\n";
  } else {
    PrintReport(options, report);
  }
  return kOk;
}

}  // namespace polyop::cli
