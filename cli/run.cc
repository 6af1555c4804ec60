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

// Returns the file of each photo's drawing, if there are any. In a folder, photos with the same name get numbers.
std::vector<std::string> DrawingFiles(const RunOptions& options) {
  if (options.draw.empty()) return {};
  if (options.files.size() < 2) return {options.draw};
  std::vector<std::string> files;
  std::map<std::string, int> count;
  for (const std::string& photo : options.files) {
    const std::string name = std::filesystem::path(photo).stem().string();
    const int before = count[name]++;
    files.push_back(
        (std::filesystem::path(options.draw) / (name + (before > 0 ? Concat("-", before + 1) : "") + ".png")).string());
  }
  return files;
}

// Checks the kinds of the files of --output, and creates their folders.
void PrepareOutputs(const RunOptions& options) {
  for (const std::string& text : options.outputs) {
    const std::string file = Split(text).value, extension = Extension(file);
    if (!IsWritableImage(file) && extension != ".npy" && extension != ".npz") {
      throw Failure(kUsage, "'" + file + "' is of an unknown kind", "outputs are .png, .jpg, .npy or .npz files");
    }
    PrepareOutput(file);
  }
  const bool is_several = options.files.size() > 1;
  if (is_several && !options.outputs.empty()) {
    throw Failure(kUsage, Concat("--output: expected one file of an input, got ", options.files.size()),
                  "`polyop batch` writes the results of each file");
  }
  if (!options.draw.empty() && IsWritableImage(options.draw) == is_several) {
    throw Failure(kUsage,
                  is_several
                      ? "--draw: expected a folder for the drawings of several photos, got '" + options.draw + "'"
                      : "--draw: '" + options.draw + "' is of an unknown kind",
                  is_several ? "" : "drawings are .png or .jpg files");
  }
  if (!options.csv.empty()) PrepareOutput(options.csv);
  for (const std::string& file : DrawingFiles(options)) PrepareOutput(file);
}

// Writes the photo and the outputs of a run to a file, for DetectionsOf.
void WriteRun(const std::string& file, const std::vector<Array>& inputs, const std::vector<TensorInfo>& output_infos,
              const std::vector<Array>& outputs) {
  const auto is_photo = [](const Array& a) { return a.dtype == DType::kU8 && a.shape.size() == 4 && a.shape[3] == 3; };
  const auto photo = std::find_if(inputs.begin(), inputs.end(), is_photo);
  if (photo == inputs.end()) {
    throw Failure(kUsage, "--draw, --csv, --names: expected an input of pixels u8[1, H, W, 3], got none",
                  "`polyop attach --image` writes a file with such an input");
  }
  std::map<std::string, Array> arrays = {{"photo", *photo}};
  for (size_t i = 0; i < outputs.size(); ++i) arrays[output_infos[i].name] = outputs[i];
  WriteNpz(file, arrays);
}

// Returns the detections of each run of a file with an attached head, and draws and writes them as the options say.
Json DetectionsOf(const RunOptions& options, const onnx::ModelProto& model, const std::vector<std::string>& runs) {
  return AskPython("draw_detections",
                   {{"runs", runs},
                    {"files", options.files},
                    {"drawings", DrawingFiles(options)},
                    {"noted", Metadata(model, "polyop.detections")},
                    {"names", options.names},
                    {"csv", options.csv}},
                   "polyop and Pillow (pip install 'polyop[batch,optimize]') for detections")
      .at("detections");
}

std::string DetectionTable(const Json& detections) {
  std::vector<std::vector<std::string>> rows;
  const bool is_map = !detections.empty() && detections.front().contains("share");
  for (const Json& detection : detections) {
    std::vector<std::string> box;
    for (const Json& coordinate : detection.at("box")) box.push_back(NumberText(coordinate.get<double>(), "%.1f"));
    const double score = detection.at(is_map ? "share" : "score").get<double>();
    rows.push_back({detection.at("name").get<std::string>(),
                    is_map ? NumberText(100 * score, "%.1f %%") : NumberText(score, "%.3f"), Join(box, ", ")});
  }
  return rows.empty() ? "  no detections\n" : Table({"class", is_map ? "share" : "score", "box"}, rows);
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

// An input or output as it is reported.
struct Reported {
  std::string name, type;
  std::string text;  // where an input is from, or the file or a summary of an output
  Json json;
};

// What `polyop run` reports of a run.
struct Result {
  std::vector<Reported> inputs, outputs;
  double load_seconds = 0;
  std::vector<double> seconds;
  std::string note;
  std::optional<Json> detections;  // if an option requests them
};

Reported Report(const TensorInfo& info, const Array& array, const std::string& text, const char* key,
                const std::string& value) {
  return {info.name,
          std::string(NameOf(array.dtype)) + ShapeText(array.shape),
          text,
          {{"name", info.name}, {"dtype", NameOf(array.dtype)}, {"shape", array.shape}, {key, value}}};
}

// Runs the model on the inputs of `input`. With a path `archive`, writes the photo and the outputs to it.
Result RunOnce(const RunOptions& options, const LoadedModel& loaded, const InputOptions& input,
               const std::string& archive) {
  const Feeds feeds = loaded.FeedsOf(input);
  const Progress progress("running " + options.model);
  const LoadedModel::Runs runs = loaded.Run(feeds.arrays, options.timing);
  const std::vector<std::string> files = WriteOutputs(loaded.outputs(), loaded.model(), runs.outputs, options);
  if (!archive.empty()) WriteRun(archive, feeds.arrays, loaded.outputs(), runs.outputs);
  Result result;
  for (size_t i = 0; i < feeds.arrays.size(); ++i) {
    const std::string& source = feeds.sources[i];
    result.inputs.push_back(Report(loaded.inputs()[i], feeds.arrays[i], source, "source", source));
  }
  for (size_t i = 0; i < runs.outputs.size(); ++i) {
    const std::string text = files[i].empty() ? Summary(runs.outputs[i]) : "-> " + files[i];
    result.outputs.push_back(Report(loaded.outputs()[i], runs.outputs[i], text, "file", files[i]));
  }
  result.load_seconds = runs.load_seconds;
  result.seconds = runs.seconds;
  result.note = runs.note;
  return result;
}

// Runs the model on every file, or once without any.
std::vector<Result> RunModel(const RunOptions& options, const LoadedModel& loaded) {
  const bool finds = !options.draw.empty() || !options.csv.empty() || !options.names.empty();
  const TemporaryFolder folder;
  std::vector<std::string> archives;
  std::vector<Result> results;
  for (size_t i = 0; i < std::max<size_t>(options.files.size(), 1); ++i) {
    InputOptions input = options.input;
    if (!options.files.empty()) input.inputs.push_back("=" + options.files[i]);
    if (finds) archives.push_back(folder.File(Concat(i, ".npz")));
    results.push_back(RunOnce(options, loaded, input, finds ? archives.back() : ""));
    if (options.files.size() > 1) ReleaseMemory(options.files[i]);
  }
  if (!finds) return results;
  const Json detections = DetectionsOf(options, loaded.model(), archives);
  for (size_t i = 0; i < results.size(); ++i) results[i].detections = detections.at(i);
  return results;
}

Json ToJson(const Result& result) {
  Json report = {{"run_seconds", result.seconds}};
  for (const Reported& tensor : result.inputs) report["inputs"].push_back(tensor.json);
  for (const Reported& tensor : result.outputs) report["outputs"].push_back(tensor.json);
  if (result.detections) report["detections"] = *result.detections;
  return report;
}

void PrintJson(const std::vector<Result>& results, const RunOptions& options, const LoadedModel& loaded) {
  Json report = {{"model", options.model},
                 {"runtime", loaded.runtime()},
                 {"isa", CurrentIsa()},
                 {"threads", options.session.threads},
                 {"load_seconds", results.front().load_seconds}};
  if (results.size() == 1) {
    report.update(ToJson(results.front()));
  } else {
    for (const Result& result : results) report["runs"].push_back(ToJson(result));
  }
  std::cout << ToText(report) << "\n";
}

// Returns "first run 3 ms, min 1 ms, median 2 ms, p90 2 ms, p99 3 ms of 10", or "run 3 ms".
std::string TimesText(const std::vector<double>& times, bool is_cold) {
  if (times.size() == 1) return "run " + TimeText(times[0]);
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const auto text = [&](double percent) { return TimeText(Percentile(sorted, percent)); };
  return Concat(is_cold ? "first run " + TimeText(times[0]) + ", " : "", "min ", TimeText(sorted[0]), ", median ",
                text(50), ", p90 ", text(90), ", p99 ", text(99), " of ", times.size());
}

std::string TensorTable(const Result& result) {
  std::vector<std::vector<std::string>> rows;
  for (const Reported& tensor : result.inputs) rows.push_back({"in", tensor.name, tensor.type, tensor.text});
  for (const Reported& tensor : result.outputs) rows.push_back({"out", tensor.name, tensor.type, tensor.text});
  return Table({"", "tensor", "type", "file"}, rows);
}

void Print(const std::vector<Result>& results, const RunOptions& options, const LoadedModel& loaded) {
  std::vector<double> seconds;
  for (size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    const bool is_one = results.size() == 1;
    if (!is_one) std::cout << Escaped(options.files[i]) << "\n";
    if (result.detections) std::cout << DetectionTable(*result.detections) << "\n";
    if (is_one || !result.detections) std::cout << TensorTable(result) << (is_one ? "" : "\n");
    seconds.insert(seconds.end(), result.seconds.begin(), result.seconds.end());
  }
  std::cout << "  load " << TimeText(results.front().load_seconds) << ", "
            << TimesText(seconds, options.timing.warmup == 0) << "; " << loaded.runtime();
  const int threads = options.session.threads;
  if (loaded.runs_on_cpu()) {
    std::cout << ", " << (threads > 0 ? Concat(threads, " thread(s)") : "all cores") << ", " << KernelsText();
  }
  std::cout << "\n";
  if (!results.front().note.empty()) std::cout << "  " << Escaped(results.front().note) << "\n";
}

}  // namespace

int Run(const RunOptions& options) {
  if (!options.isa.empty()) Check(ForceIsaEverywhere(options.isa), kUsage);
  PrepareOutputs(options);
  const std::unique_ptr<LoadedModel> loaded = LoadAny(options.model, options.target, options.session, options.input);
  const std::vector<Result> results = RunModel(options, *loaded);
  options.json ? PrintJson(results, options, *loaded) : Print(results, options, *loaded);
  return kOk;
}

}  // namespace polyop::cli
