// SPDX-License-Identifier: Apache-2.0
// polyop run: runs a model on files.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/image.h"
#include "cli/base/model.h"
#include "cli/base/model_check.h"
#include "cli/base/npy.h"
#include "cli/base/packages.h"
#include "cli/base/process.h"
#include "cli/base/runtime.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/engine.h"
#include "cli/feeds.h"
#include "cli/json.h"
#include "cli/openvino.h"
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

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

int Run(const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.isa.empty()) Check(ForceIsaEverywhere(options.isa), kUsage);
  PrepareOutputs(options);
  onnx::ModelProto model;  // only metadata for an engine or a file of OpenVINO's
  std::optional<Engine> engine;
  std::optional<OpenVinoModel> openvino;
  std::optional<Session> session;
  Clock::time_point start = Clock::now();
  if (IsEngine(options.model)) {
    engine.emplace(options.model);
  } else if (options.runtime == "openvino" || IsOpenVino(options.model)) {
    if (!IsOpenVino(options.model)) model = LoadModel(options.model);
    openvino.emplace(options.model, options.session);
  } else {
    model = LoadModel(options.model);
    CheckModel(model, options.model, options.session.libraries);
    start = Clock::now();
    session.emplace(options.model, options.session);
  }
  double load_seconds = Seconds(start);
  const MetadataMap noted = engine ? engine->metadata() : openvino ? openvino->metadata() : MetadataMap();
  for (const auto& [key, value] : noted) {
    onnx::StringStringEntryProto& entry = *model.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  const std::vector<TensorInfo>& input_infos = engine     ? engine->inputs()
                                               : openvino ? openvino->inputs()
                                                          : session->inputs();
  const std::vector<TensorInfo>& output_infos = engine     ? engine->outputs()
                                                : openvino ? openvino->outputs()
                                                           : session->outputs();
  const std::string runtime = engine     ? engine->runtime()
                              : openvino ? openvino->runtime()
                                         : "ONNX Runtime " + session->runtime_version();
  std::vector<double> times;
  std::vector<Array> outputs;
  Feeds feeds = ReadFeeds(input_infos, model, options.input);
  if (session && feeds.integers_are_drawn) {
    int integer_bound = 0;
    feeds = ReadFeedsThatRun(*session, model, options.input, &outputs, &integer_bound);
  }
  const std::vector<Array>& inputs = feeds.arrays;
  const std::vector<std::string>& sources = feeds.sources;

  {
    const Progress progress("running " + options.model);
    if (openvino) {
      OpenVinoModel::Runs runs = openvino->Run(inputs, options.repeat);
      outputs = std::move(runs.outputs);
      times = std::move(runs.seconds);
      load_seconds = runs.load_seconds;
    }
    for (int i = 0; i < options.repeat && !openvino; ++i) {
      start = Clock::now();
      outputs = engine ? engine->Run(inputs) : session->Run(inputs);
      times.push_back(Seconds(start));
    }
  }
  const std::vector<std::string> files = WriteOutputs(output_infos, model, outputs, options);
  const bool detects = !options.draw.empty() || !options.csv.empty() || !options.names.empty();
  const Json detections = detects ? Detections(options, model, inputs, output_infos, outputs) : Json();
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());

  if (options.json) {
    Json report = {{"model", options.model},       {"runtime", runtime},
                   {"isa", CurrentIsa()},          {"threads", options.session.threads},
                   {"load_seconds", load_seconds}, {"run_seconds", times}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      report["inputs"].push_back({{"name", input_infos[i].name},
                                  {"dtype", NameOf(inputs[i].dtype)},
                                  {"shape", inputs[i].shape},
                                  {"source", sources[i]}});
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      report["outputs"].push_back({{"name", output_infos[i].name},
                                   {"dtype", NameOf(outputs[i].dtype)},
                                   {"shape", outputs[i].shape},
                                   {"file", files[i]}});
    }
    if (detects) report["detections"] = detections;
    std::cout << ToText(report) << "\n";
    return kOk;
  }
  if (detects) std::cout << DetectionTable(detections) << "\n";
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    rows.push_back(
        {"in", input_infos[i].name, std::string(NameOf(inputs[i].dtype)) + ShapeText(inputs[i].shape), sources[i]});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    rows.push_back({"out", output_infos[i].name, std::string(NameOf(outputs[i].dtype)) + ShapeText(outputs[i].shape),
                    files[i].empty() ? Summary(outputs[i]) : "-> " + files[i]});
  }
  std::cout << Table({"", "tensor", "type", "file"}, rows);
  std::cout << "  load " << TimeText(load_seconds) << ", ";
  if (times.size() > 1) {
    std::cout << "first run " << TimeText(times[0]) << ", min " << TimeText(sorted[0]) << ", median "
              << TimeText(sorted[sorted.size() / 2]) << " of " << times.size();
  } else {
    std::cout << "run " << TimeText(times[0]);
  }
  std::cout << "; " << runtime;
  if (!engine) {
    std::cout << ", "
              << (options.session.threads > 0 ? std::to_string(options.session.threads) + " thread(s)"
                                              : std::string("all cores"))
              << ", " << KernelsText();
  }
  std::cout << "\n";
  return kOk;
}

}  // namespace polyop::cli
