// SPDX-License-Identifier: Apache-2.0
// The references of polyop verify, and how each of them runs.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/packages.h"
#include "cli/base/process.h"
#include "cli/base/text.h"
#include "cli/engine.h"
#include "cli/loaded_model.h"
#include "cli/openvino.h"
#include "cli/python.h"
#include "cli/verifying.h"
#include "core/elements.h"
#include "kernels/cpu/simd.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

using Outputs = std::map<std::string, Array>;

constexpr const char* kExpected =
    "expected a file (.onnx, .xml, .engine, .npz, .pt2), kernels, functions, openvino, openvino-default, "
    "provider=NAME, "
    "isa=NAME, threads=N, onnxruntime=LIBRARY, or KIND=FILE with the kind onnx, openvino, openvino-default, engine, "
    "npz "
    "or torch";

Outputs ByName(const std::vector<TensorInfo>& infos, std::vector<Array> arrays) {
  Outputs outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs[infos[i].name] = std::move(arrays[i]);
  return outputs;
}

Ran RunHere(const Given& given, const SessionOptions& session_options) {
  Session session(given.options.model, session_options);
  return {ByName(session.outputs(), session.Run(given.feeds.arrays)), "ONNX Runtime " + session.runtime_version(), {}};
}

// Returns the path of the model: with --layers, of a file in the folder that has the further outputs.
std::string FileOfModel(const VerifyOptions& options, const TemporaryFolder& folder) {
  if (options.session.model.empty()) return options.model;
  const std::string path = folder.File("model.onnx");
  WriteFile(path, options.session.model.data(), options.session.model.size());
  return path;
}

// Runs in a separate process, because a process can have only one ONNX Runtime.
Ran RunElsewhere(const std::string& runtime, const Given& given) {
  constexpr double kGigabyte = 1e9;
  const TemporaryFolder folder;
  Outputs named;
  double gigabytes = 1;
  for (size_t i = 0; i < given.inputs.size(); ++i) {
    named[given.inputs[i].name] = given.feeds.arrays[i];
    gigabytes += static_cast<double>(given.feeds.arrays[i].bytes.size()) / kGigabyte;
  }
  WriteNpz(folder.File("inputs.npz"), named);
  const SessionOptions& session = given.options.session;
  std::vector<std::string> words = {OwnProgramFile().string(),
                                    "run",
                                    FileOfModel(given.options, folder),
                                    "-i",
                                    folder.File("inputs.npz"),
                                    "-o",
                                    folder.File("outputs.npz"),
                                    "--onnxruntime",
                                    runtime,
                                    "--memory",
                                    NumberText(gigabytes, "%.9g")};
  for (const std::string& library : session.libraries) words.insert(words.end(), {"--ops", library});
  if (session.accelerate) words.emplace_back("--accelerate");
  RunProgram(words, "is it an ONNX Runtime? Its message is above", "");
  return {ReadNpz(folder.File("outputs.npz"), {}, /*is_own=*/true), runtime, {}};
}

// Pairs each name of the model with one of the other file, by name. What is left is paired in order, if both have as
// many, because exporters give other names; `notes` says so. Names without a partner are left out.
std::map<std::string, std::string> Pairs(const std::vector<std::string>& own, const std::vector<std::string>& others,
                                         const char* what, std::vector<std::string>* notes) {
  std::map<std::string, std::string> pairs;
  std::vector<std::string> left, others_left;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : own) has(others, name) ? void(pairs[name] = name) : left.push_back(name);
  for (const std::string& name : others) {
    if (!has(own, name)) others_left.push_back(name);
  }
  if (left.size() != others_left.size()) return pairs;
  for (size_t i = 0; i < left.size(); ++i) {
    pairs[left[i]] = others_left[i];
    notes->push_back(Concat(what, " '", left[i], "' is the reference's '", others_left[i], "', by position"));
  }
  return pairs;
}

std::vector<std::string> NamesOf(const std::vector<TensorInfo>& infos) {
  std::vector<std::string> names;
  for (const TensorInfo& info : infos) names.push_back(info.name);
  return names;
}

// Runs another model, or the model in another runtime. Its inputs may be a subset of the first one's, because
// `polyop convert --set` fixes inputs.
Ran RunOther(const LoadedModel& other, const Given& given) {
  Ran ran;
  ran.runtime = other.runtime();
  std::map<std::string, std::string> own_names;
  for (const auto& [own, name] : Pairs(NamesOf(given.inputs), NamesOf(other.inputs()), "input", &ran.notes)) {
    own_names[name] = own;
  }
  std::vector<Array> arrays;
  for (const TensorInfo& input : other.inputs()) {
    const auto own = own_names.find(input.name);
    const Array& array =
        given.feeds.arrays[IndexOf(given.inputs, own == own_names.end() ? input.name : own->second, "input")];
    if (IsReal(array.dtype) != IsReal(input.dtype)) {
      throw Failure(kFailed, Concat("its input '", input.name, "': expected ", input.Text(), ", got ",
                                    NameOf(array.dtype), ShapeText(array.shape), " of the model's input"));
    }
    arrays.push_back(Cast(array, input.dtype));  // an f16 file may have inputs of f16
  }
  LoadedModel::Runs runs = other.Run(arrays, Timing());
  if (!runs.note.empty()) ran.notes.push_back(runs.note);
  Outputs outputs = ByName(other.outputs(), std::move(runs.outputs));
  std::vector<std::string> names;
  for (const Checked& checked : given.tensors) names.push_back(checked.tensor);
  std::map<std::string, std::string> pairs = Pairs(names, NamesOf(other.outputs()), "output", &ran.notes);
  for (const TensorInfo& info : other.outputs()) {
    const auto pair = std::find_if(pairs.begin(), pairs.end(), [&](const auto& of) { return of.second == info.name; });
    ran.outputs[pair == pairs.end() ? info.name : pair->first] = std::move(outputs[info.name]);
  }
  return ran;
}

Ran RunTorch(const std::string& program, const Given& given) {
  Json input_names = Json::array(), output_names = Json::array();
  for (const TensorInfo& input : given.inputs) input_names.push_back(input.name);
  std::vector<TensorInfo> outputs;
  for (const Checked& tensor : given.tensors) {
    output_names.push_back(tensor.tensor);
    outputs.emplace_back().name = tensor.tensor;
  }
  std::vector<Array> arrays;
  AskPython("run_torch",
            {{"program", fs::absolute(program).string()}, {"input_names", input_names}, {"output_names", output_names}},
            "polyop, torch and a FILE that torch.export.save or torch.jit.save wrote", given.inputs, given.feeds.arrays,
            outputs, &arrays);
  return {ByName(outputs, std::move(arrays)), "PyTorch", {}};
}

Ran RunInIsa(const std::string& isa, const Given& given) {
  Check(ForceIsaEverywhere(isa), kUsage);
  Ran ran = RunHere(given, given.options.session);
  Check(ForceIsaEverywhere(given.options.isa), kFailed);
  return ran;
}

int ThreadsOf(const std::string& text) {
  const std::optional<int64_t> threads = ParseInteger(text);
  if (!threads || *threads < 1 || *threads > kMaxThreads) {
    throw Failure(kUsage, Concat("threads=N: '", text, "' is not an integer in [1 - ", kMaxThreads, "]"));
  }
  return static_cast<int>(*threads);
}

Ran Run(const Reference& reference, const Given& given) {
  const auto& [text, kind, value] = reference;
  SessionOptions session = given.options.session;
  const std::string& model = given.options.model;
  if (kind == "kernels" || kind == "functions" || kind == "threads") {
    session.reference_kernels = kind == "kernels";
    session.functions_alone = kind == "functions";
    if (kind == "threads") session.threads = ThreadsOf(value);
    return RunHere(given, session);
  }
  if (kind == "isa") return RunInIsa(value, given);
  if (kind == "npz") return {ReadNpz(value), "", {}};
  if (kind == "onnxruntime") return RunElsewhere(value, given);
  if (kind == "provider") return RunInProvider(value, given);
  if (given.options.layers) throw Failure(kUsage, "--layers: expected a reference with the outputs of the same nodes");
  if (kind == "torch") return RunTorch(value, given);
  if (kind == "engine") return RunOther(Engine(value), given);
  if (kind == "onnx" && !given.options.against_provider.empty()) {
    return RunOther(ProviderModel(value, {given.options.against_provider, "", session}), given);
  }
  if (kind == "onnx") return RunOther(*LoadInOnnxRuntime(value, session), given);
  return RunOther(OpenVinoModel(value.empty() ? model : value, session, {}, kind), given);
}

}  // namespace

Reference ParseReference(const std::string& text) {
  const auto is_one_of = [](const std::string& word, std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (is_one_of(text, {"kernels", "functions", "openvino", "openvino-default"})) return {text, text, ""};
  const Named named = Split(text);
  if (is_one_of(named.name, {"isa", "threads", "npz", "onnx", "onnxruntime", "engine", "openvino", "openvino-default",
                             "provider", "torch"})) {
    return {text, named.name, named.value};
  }
  const std::string extension = Extension(text);
  if (extension == ".onnx") return {text, "onnx", text};
  if (IsOpenVino(text)) return {text, "openvino", text};
  if (IsEngine(text)) return {text, "engine", text};
  if (extension == ".npz") return {text, "npz", text};
  if (is_one_of(extension, {".pt", ".pt2", ".ts"})) return {text, "torch", text};
  throw Failure(kUsage, "--against: '" + text + "' is unknown", kExpected);
}

Ran RunInProvider(const std::string& provider, const Given& given) {
  const TemporaryFolder folder;
  SessionOptions session = given.options.session;
  const std::string model_folder = session.model.empty() ? "" : session.model_folder;
  const ProviderModel model(FileOfModel(given.options, folder), {provider, model_folder, session});
  LoadedModel::Runs runs = model.Run(given.feeds.arrays, Timing());
  return {ByName(model.outputs(), std::move(runs.outputs)), model.runtime(), {runs.note}};
}

Ran RunReference(const Reference& reference, const Given& given) {
  try {
    return Run(reference, given);
  } catch (const Failure& f) {
    throw Failure(f.code(), "--against " + reference.text + ": " + f.what(), f.hint());
  }
}

}  // namespace polyop::cli
