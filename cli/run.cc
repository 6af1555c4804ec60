// SPDX-License-Identifier: Apache-2.0
// polyop run: runs a model on files.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/image.h"
#include "cli/base/model.h"
#include "cli/base/npy.h"
#include "cli/base/packages.h"
#include "cli/base/process.h"
#include "cli/base/runtime.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/feeds.h"
#include "cli/json.h"
#include "cli/loaded_model.h"
#include "cli/progress.h"
#include "cli/python.h"
#include "cli/read_image.h"
#include "kernels/cpu/simd.h"

namespace polyop::cli {
namespace {

// Checks the kinds of the files of --output, and creates their folders.
void PrepareOutputs(const RunOptions& options) {
  for (const std::string& text : options.outputs) {
    const std::string file = Split(text).value, extension = Extension(file);
    if (!IsWritableImage(file) && extension != ".npy" && extension != ".npz") {
      throw Failure(kUsage, "'" + file + "' is of an unknown kind", "outputs are .png, .jpg, .npy or .npz files");
    }
    PrepareOutput(file);
  }
  if (!options.draw.empty() && !IsWritableImage(options.draw)) {
    throw Failure(kUsage, "--draw: '" + options.draw + "' is of an unknown kind", "drawings are .png or .jpg files");
  }
  for (const std::string& file : {options.draw, options.csv}) {
    if (!file.empty()) PrepareOutput(file);
  }
}

// Returns the detections of a file with an attached head, and draws and writes them as the options say.
Json Detections(const RunOptions& options, const onnx::ModelProto& model, const std::vector<Array>& inputs,
                const std::vector<TensorInfo>& output_infos, const std::vector<Array>& outputs) {
  const auto is_photo = [](const Array& a) { return a.dtype == DType::kU8 && a.shape.size() == 4 && a.shape[3] == 3; };
  const auto photo = std::find_if(inputs.begin(), inputs.end(), is_photo);
  if (photo == inputs.end()) {
    throw Failure(kUsage, "--draw, --csv, --names: expected an input of pixels u8[1, H, W, 3], got none",
                  "`polyop attach --image` writes a file with such an input");
  }
  std::map<std::string, Array> arrays = {{"photo", *photo}};
  for (size_t i = 0; i < outputs.size(); ++i) arrays[output_infos[i].name] = outputs[i];
  const TemporaryFolder folder;
  WriteNpz(folder.File("arrays.npz"), arrays);
  return AskPython("draw_detections",
                   {{"arrays", folder.File("arrays.npz")},
                    {"noted", Metadata(model, "polyop.detections")},
                    {"names", options.names},
                    {"draw", options.draw},
                    {"csv", options.csv}},
                   "polyop and Pillow (pip install 'polyop[batch,optimize]') for detections")
      .at("detections");
}

std::string DetectionTable(const Json& detections) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& detection : detections) {
    std::vector<std::string> box;
    for (const Json& coordinate : detection.at("box")) box.push_back(NumberText(coordinate.get<double>(), "%.1f"));
    rows.push_back({detection.at("name").get<std::string>(), NumberText(detection.at("score").get<double>(), "%.3f"),
                    Join(box, ", ")});
  }
  return rows.empty() ? "  no detections\n" : Table({"class", "score", "box"}, rows);
}

// Writes the outputs of --output. Returns the file of each output, or "".
std::vector<std::string> WriteOutputs(const std::vector<TensorInfo>& infos, const onnx::ModelProto& model,
                                      const std::vector<Array>& arrays, const RunOptions& options) {
  std::vector<std::string> files(arrays.size());
  std::map<std::string, std::map<std::string, Array>> archives;
  for (const std::string& text : options.outputs) {
    const Named target = Split(text);
    const std::string extension = Extension(target.value);
    if (extension == ".npz") {
      for (size_t i = 0; i < arrays.size(); ++i) {
        const std::string& name = infos[i].name;
        if (!target.name.empty() && target.name != name) continue;
        archives[target.value][name] = arrays[i];
        files[i] = target.value;
      }
      if (!archives.contains(target.value)) IndexOf(infos, target.name, "output");
      continue;
    }
    const size_t index = target.name.empty() ? 0 : IndexOf(infos, target.name, "output");
    const TensorInfo& output = infos[index];
    if (IsWritableImage(target.value)) {
      WriteImage(target.value, FromTensor(arrays[index], FormatOf(output, model, options.input), output.name));
    } else {
      const std::vector<uint8_t> bytes = FormatNpy(arrays[index]);
      WriteFile(target.value, bytes.data(), bytes.size());
    }
    files[index] = target.value;
  }
  for (const auto& [path, named] : archives) {
    AtomicFile file(path);
    WriteNpz(file.partial(), named);
    file.Commit();
  }
  return files;
}

// Returns "min -1.2  max 3.4  mean 0.1".
std::string Summary(const Array& array) {
  if (array.size() == 0) return "empty";
  double low = array.at(0), high = low, sum = 0;
  int64_t nan = 0;
  for (int64_t i = 0; i < array.size(); ++i) {
    const double v = array.at(i);
    if (v != v) {
      ++nan;
      continue;
    }
    low = !(low <= v) ? v : low;
    high = !(high >= v) ? v : high;
    sum += v;
  }
  if (nan == array.size()) return "all NaN";
  std::ostringstream text;
  text.precision(4);
  text << "min " << low << "  max " << high << "  mean " << sum / static_cast<double>(array.size() - nan);
  if (nan > 0) text << "  NaN " << nan;
  return text.str();
}

// What `polyop run` reports.
struct Result {
  std::string model;
  std::unique_ptr<LoadedModel> loaded;
  Feeds feeds;
  LoadedModel::Runs runs;
  std::vector<std::string> files;  // of each output, or ""
  std::optional<Json> detections;  // if an option requests them
};

Result RunModel(const RunOptions& options) {
  Result result;
  result.model = options.model;
  result.loaded = LoadAny(options.model, options.runtime, options.session, options.input);
  const LoadedModel& loaded = *result.loaded;
  result.feeds = loaded.FeedsOf(options.input);
  {
    const Progress progress("running " + options.model);
    result.runs = loaded.Run(result.feeds.arrays, options.repeat);
  }
  const std::vector<Array>& outputs = result.runs.outputs;
  result.files = WriteOutputs(loaded.outputs(), loaded.model(), outputs, options);
  if (!options.draw.empty() || !options.csv.empty() || !options.names.empty()) {
    result.detections = Detections(options, loaded.model(), result.feeds.arrays, loaded.outputs(), outputs);
  }
  return result;
}

Json TensorJson(const TensorInfo& info, const Array& array, const char* origin_key, const std::string& origin) {
  return {{"name", info.name}, {"dtype", NameOf(array.dtype)}, {"shape", array.shape}, {origin_key, origin}};
}

void PrintJson(const Result& result, int threads) {
  const LoadedModel& loaded = *result.loaded;
  const std::vector<Array>&inputs = result.feeds.arrays, &outputs = result.runs.outputs;
  Json report = {{"model", result.model},
                 {"runtime", loaded.runtime()},
                 {"isa", CurrentIsa()},
                 {"threads", threads},
                 {"load_seconds", result.runs.load_seconds},
                 {"run_seconds", result.runs.seconds}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    report["inputs"].push_back(TensorJson(loaded.inputs()[i], inputs[i], "source", result.feeds.sources[i]));
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    report["outputs"].push_back(TensorJson(loaded.outputs()[i], outputs[i], "file", result.files[i]));
  }
  if (result.detections) report["detections"] = *result.detections;
  std::cout << ToText(report) << "\n";
}

std::string TypeText(const Array& array) { return std::string(NameOf(array.dtype)) + ShapeText(array.shape); }

// Returns "first run 3 ms, min 1 ms, median 2 ms of 10", or "run 3 ms".
std::string TimesText(const std::vector<double>& times) {
  if (times.size() == 1) return "run " + TimeText(times[0]);
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  return Concat("first run ", TimeText(times[0]), ", min ", TimeText(sorted[0]), ", median ",
                TimeText(sorted[sorted.size() / 2]), " of ", times.size());
}

void Print(const Result& result, int threads) {
  const LoadedModel& loaded = *result.loaded;
  const std::vector<Array>&inputs = result.feeds.arrays, &outputs = result.runs.outputs;
  if (result.detections) std::cout << DetectionTable(*result.detections) << "\n";
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    rows.push_back({"in", loaded.inputs()[i].name, TypeText(inputs[i]), result.feeds.sources[i]});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    rows.push_back({"out", loaded.outputs()[i].name, TypeText(outputs[i]),
                    result.files[i].empty() ? Summary(outputs[i]) : "-> " + result.files[i]});
  }
  std::cout << Table({"", "tensor", "type", "file"}, rows) << "  load " << TimeText(result.runs.load_seconds) << ", "
            << TimesText(result.runs.seconds) << "; " << loaded.runtime();
  if (loaded.runs_on_cpu()) {
    std::cout << ", " << (threads > 0 ? Concat(threads, " thread(s)") : "all cores") << ", " << KernelsText();
  }
  std::cout << "\n";
}

}  // namespace

int Run(const RunOptions& options) {
  if (!options.isa.empty()) Check(ForceIsaEverywhere(options.isa), kUsage);
  PrepareOutputs(options);
  const Result result = RunModel(options);
  options.json ? PrintJson(result, options.session.threads) : Print(result, options.session.threads);
  return kOk;
}

}  // namespace polyop::cli
