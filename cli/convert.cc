// `polyop convert`: an ONNX model to a TensorRT engine. The classes of a program that builds engines differ between
// TensorRT's generations, and the headers of some are not to be had; its Python bindings are the same for all. So the
// building is done by `python3 -m polyop.build_engine`, and this program starts without any TensorRT.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/number.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/openvino.h"
#include "cli/python.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

// "input=1x3x224x224:1x3x512x512:4x3x1024x1024", or one shape for all three.
Json ParseShapes(const std::vector<std::string>& texts) {
  Json shapes = Json::object();
  for (const std::string& text : texts) {
    const Named named = SplitNamed("--shapes", text);
    Json three = Json::array();
    for (const std::string& one : SplitAt(':', named.value)) {
      const std::vector<int64_t> shape = ParseShape(one, "--shapes " + text);
      for (int64_t extent : shape) {
        if (extent > INT32_MAX) throw Failure(kUsage, Concat("--shapes ", text, ": ", extent, " is too large"));
      }
      three.push_back(shape);
    }
    if (three.size() != 1 && three.size() != 3) {
      throw Failure(kUsage, "--shapes " + text + ": " + std::to_string(three.size()) + " shapes, wanted 1 or 3",
                    "the least, the usual and the largest, with ':' between them");
    }
    shapes[named.name] = three;
  }
  return shapes;
}

Json ParseConstants(const std::vector<std::string>& texts) {
  Json constants = Json::object();
  for (const std::string& text : texts) {
    const Named named = SplitNamed("--set", text);
    Json values = Json::array();
    for (const std::string& part : SplitAt(',', named.value)) {
      const std::optional<int64_t> integer = ParseInteger(part);
      const std::optional<double> real = ParseReal(part);
      if (integer) {
        values.push_back(*integer);
      } else if (real && std::isfinite(*real)) {
        values.push_back(*real);
      } else {
        throw Failure(kUsage, Concat("--set ", text, ": '", part, "' is not a number"));
      }
    }
    constants[named.name] = values;
  }
  return constants;
}

void PrintReport(const ConvertOptions& options, const Json& report) {
  if (options.layers) {
    std::vector<std::vector<std::string>> rows;
    for (const Json& layer : report.at("layers")) {
      rows.push_back({layer.at("name"), layer.at("type"), layer.at("output")});
    }
    std::cout << Table({"Layer", "Type", "Output"}, rows) << "\n";
  }
  const Json& needs = report.at("needs");
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, shapes] : needs.at("inputs").items()) {
    rows.push_back({name, shapes.at("least").dump(), shapes.at("usual").dump(), shapes.at("largest").dump()});
  }
  std::cout << Table({"Input", "Least", "Usual", "Largest"}, rows) << "\n"
            << Green("made") << " " << options.engine << " (" << BytesText(report.at("bytes").get<double>()) << ") for "
            << needs.at("runtime").get<std::string>() << "\n"
            << "     " << options.engine << ".json says what it needs: " << needs.at("plugin_libraries").dump() << "\n";
}

// Shapes and values stay as they are in the file: OpenVINO takes them when the model is compiled.
int ConvertToOpenVino(const ConvertOptions& options) {
  if (!IsOpenVino(options.engine)) {
    throw Failure(kUsage, "'" + options.engine + "' is no .xml file",
                  "OpenVINO's files are: -o model.xml --to openvino");
  }
  if (!options.shapes.empty() || !options.sets.empty() || options.workspace != 0 || !options.timing_cache.empty() ||
      options.layers) {
    throw Failure(kUsage, "--shapes, --set, --workspace, --timing-cache and --layers are for TensorRT");
  }
  SessionOptions session;
  session.libraries = options.plugins;
  const OpenVinoModel model(options.model, session);
  model.Convert(options.engine, options.fp16);
  const std::string weights = fs::path(options.engine).replace_extension(".bin");
  if (options.json) {
    std::cout << ToText({{"model", options.engine}, {"weights", weights}, {"runtime", model.runtime()}}) << "\n";
  } else {
    std::cout << Green("made") << " " << options.engine << " and " << weights << " for " << model.runtime()
              << "; polyop.openvino.core() reads it\n";
  }
  return kOk;
}

}  // namespace

int Convert(const ConvertOptions& options) {
  (void)LoadModel(options.model);  // a damaged file is told of here, by name
  if (options.runtime == "openvino") return ConvertToOpenVino(options);
  if (options.engine.empty()) throw Failure(kUsage, "-o is missing", "where the engine goes: -o model.engine");
  std::vector<std::string> plugins;
  plugins.reserve(options.plugins.size());
  for (const std::string& library : options.plugins) plugins.push_back(fs::absolute(library));
  const Json request = {
      {"model", fs::absolute(options.model)},
      {"engine", fs::absolute(options.engine)},
      {"shapes", ParseShapes(options.shapes)},
      {"constants", ParseConstants(options.sets)},
      {"fp16", options.fp16},
      {"workspace", static_cast<int64_t>(options.workspace) << 20},
      {"plugins", plugins},
      {"timing_cache", options.timing_cache.empty() ? "" : fs::absolute(options.timing_cache).string()},
      {"verbose", options.verbose}};
  const Json report = AskPython(
      "polyop.build_engine", request, "python3 needs polyop and tensorrt or tensorrt-rtx; its message stands above",
      "building an engine needs a python3 on the PATH that has polyop and tensorrt or tensorrt-rtx");
  if (report.contains("error")) throw Failure(kFailed, options.model + ": " + report.at("error").get<std::string>());
  if (options.json) {
    std::cout << ToText(report) << "\n";
  } else {
    PrintReport(options, report);
  }
  return kOk;
}

}  // namespace polyop::cli
