// polyop verify: a model by polyop's operators beside a reference.
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/packages.h"
#include "cli/base/process.h"
#include "cli/base/runtime.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/engine.h"
#include "cli/feeds.h"
#include "cli/json.h"
#include "cli/openvino.h"
#include "cli/progress.h"
#include "kernels/cpu/simd.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

using Outputs = std::map<std::string, Array>;

// True for nodes whose outputs may be no tensors.
bool MayGiveSequences(const onnx::NodeProto& node) {
  const std::string& type = node.op_type();
  return type.find("Sequence") != std::string::npos || type.find("Optional") != std::string::npos || type == "If" ||
         type == "Loop" || type == "Scan";
}

// One tensor to compare, and the node that makes it.
struct Checked {
  std::string tensor, node;
};

std::string NodeText(const onnx::NodeProto& node) {
  return TypeOf(node) + (node.name().empty() ? "" : " '" + node.name() + "'");
}

// The model's outputs, or with `layers` the outputs of its nodes, which then become outputs of the model.
std::vector<Checked> ChooseTensors(onnx::ModelProto& model, bool layers) {
  std::map<std::string, std::string> maker;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& output : node.output()) maker[output] = NodeText(node);
  }
  std::vector<Checked> chosen;
  if (!layers) {
    for (const auto& output : model.graph().output()) chosen.push_back({output.name(), maker[output.name()]});
    return chosen;
  }
  std::map<std::string, bool> is_output;
  for (const auto& output : model.graph().output()) is_output[output.name()] = true;
  const auto nodes = model.graph().node();
  for (const onnx::NodeProto& node : nodes) {
    if (node.op_type() == "Constant" || MayGiveSequences(node)) continue;
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      chosen.push_back({output, NodeText(node)});
      if (!is_output[output]) model.mutable_graph()->add_output()->set_name(output);
    }
  }
  return chosen;
}

// Of a session, an engine or a model in OpenVINO.
template <class Model>
Outputs ByName(const Model& model, std::vector<Array> arrays) {
  Outputs outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs[model.outputs()[i].name] = std::move(arrays[i]);
  return outputs;
}

// What another model takes of the first one's inputs.
template <class Model>
std::vector<Array> InputsOf(const Model& model, const Feeds& feeds, const std::vector<TensorInfo>& inputs) {
  std::vector<Array> arrays;
  for (const TensorInfo& input : model.inputs()) arrays.push_back(feeds.arrays[IndexOf(inputs, input.name, "input")]);
  return arrays;
}

Outputs RunHere(const VerifyOptions& options, const SessionOptions& session_options, const std::vector<Array>& inputs) {
  Session session(options.model, session_options);
  return ByName(session, session.Run(inputs));
}

Outputs Load(const std::string& path) {
  Outputs outputs;
  for (auto& [name, array] : ReadNpz(path)) outputs[name] = std::move(array);
  return outputs;
}

// In a process of its own: two ONNX Runtimes do not live in one.
Outputs RunElsewhere(const VerifyOptions& options, const std::string& runtime, const std::string& inputs,
                     const TemporaryFolder& folder) {
  std::string model = options.model;
  if (!options.session.model.empty()) {
    model = folder.File("model.onnx");
    WriteFile(model, options.session.model.data(), options.session.model.size());
  }
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe"), "run",           model,  "-i", inputs, "-o",
                                    folder.File("outputs.npz"),         "--onnxruntime", runtime};
  for (const std::string& library : options.session.libraries) words.insert(words.end(), {"--ops", library});
  if (options.session.accelerate) words.emplace_back("--accelerate");
  RunProgram(words, "is it an ONNX Runtime? Its message stands above", "");
  return Load(folder.File("outputs.npz"));
}

// The engine's inputs may be fewer: `polyop convert --set` fixed the others.
Outputs RunEngine(const VerifyOptions& options, const std::string& path, const Feeds& feeds,
                  const std::vector<TensorInfo>& inputs) {
  if (options.layers) throw Failure(kUsage, "--layers and --reference engine=FILE: an engine has no outputs of nodes");
  const Engine engine(path);
  return ByName(engine, engine.Run(InputsOf(engine, feeds, inputs)));
}

// The same model, or another file of it.
Outputs RunOpenVino(const VerifyOptions& options, const std::string& path, const Feeds& feeds,
                    const std::vector<TensorInfo>& inputs) {
  if (options.layers) throw Failure(kUsage, "--layers and --reference openvino: OpenVINO's nodes are others");
  const OpenVinoModel model(path.empty() ? options.model : path, options.session);
  return ByName(model, model.Run(InputsOf(model, feeds, inputs), 1).outputs);
}

// Another model, with outputs of the same names; its inputs are among the first one's.
Outputs RunOther(const VerifyOptions& options, const std::string& path, const Feeds& feeds,
                 const std::vector<TensorInfo>& inputs) {
  if (options.layers) throw Failure(kUsage, "--layers and --reference onnx=FILE: the models' nodes may differ");
  if (options.session.libraries.empty()) CheckProvided(LoadModel(path), path);
  Session session(path, options.session);
  return ByName(session, session.Run(InputsOf(session, feeds, inputs)));
}

Outputs RunTorch(const VerifyOptions& options, const std::string& program, const std::string& saved,
                 const std::vector<TensorInfo>& inputs, const std::vector<Checked>& tensors,
                 const TemporaryFolder& folder) {
  if (options.layers) throw Failure(kUsage, "--layers and --reference torch=FILE: torch has no outputs of ONNX nodes");
  Json input_names = Json::array(), output_names = Json::array();
  for (const TensorInfo& input : inputs) input_names.push_back(input.name);
  for (const Checked& tensor : tensors) output_names.push_back(tensor.tensor);
  RunProgram({"python3", "-m", "polyop.run_torch", program, saved, folder.File("outputs.npz"), input_names.dump(),
              output_names.dump()},
             "python3 needs torch and polyop; FILE is what torch.export.save or torch.jit.save wrote",
             "torch=FILE needs a python3 on the PATH that has torch and polyop");
  return Load(folder.File("outputs.npz"));
}

Outputs RunReference(const VerifyOptions& options, const Feeds& feeds, const std::vector<TensorInfo>& inputs,
                     const std::vector<Checked>& tensors) {
  const Named kind = Split(options.reference).name.empty() ? Named{options.reference, ""} : Split(options.reference);
  SessionOptions session = options.session;
  if (kind.name == "kernels") {
    session.reference_kernels = true;
    return RunHere(options, session, feeds.arrays);
  }
  if (kind.name == "functions") {
    session.functions_alone = true;
    return RunHere(options, session, feeds.arrays);
  }
  if (kind.name == "isa") {
    Check(ForceIsaEverywhere(kind.value), kUsage);
    Outputs outputs = RunHere(options, session, feeds.arrays);
    Check(ForceIsaEverywhere(""), kFailed);
    return outputs;
  }
  if (kind.name == "threads") {
    const std::optional<int64_t> threads = ParseInteger(kind.value);
    if (!threads || *threads < 1 || *threads > kMaxThreads) {
      throw Failure(kUsage, Concat("--reference threads=N: '", kind.value, "' is no number from 1 to ", kMaxThreads));
    }
    session.threads = static_cast<int>(*threads);
    return RunHere(options, session, feeds.arrays);
  }
  if (kind.name == "npz") return Load(kind.value);
  if (kind.name == "onnx") return RunOther(options, kind.value, feeds, inputs);
  if (kind.name == "engine") return RunEngine(options, kind.value, feeds, inputs);
  if (kind.name == "openvino") return RunOpenVino(options, kind.value, feeds, inputs);
  const TemporaryFolder folder;
  std::map<std::string, Array> named;
  for (size_t i = 0; i < inputs.size(); ++i) named[inputs[i].name] = feeds.arrays[i];
  const std::string saved = folder.File("inputs.npz");
  WriteNpz(saved, named);
  if (kind.name == "onnxruntime") return RunElsewhere(options, kind.value, saved, folder);
  if (kind.name == "torch") return RunTorch(options, kind.value, saved, inputs, tensors, folder);
  throw Failure(
      kUsage, "--reference: '" + options.reference + "' is unknown",
      "wanted kernels, functions, isa=NAME, threads=N, npz=FILE, onnx=FILE, onnxruntime=LIBRARY, engine=FILE, "
      "openvino, openvino=FILE or torch=FILE");
}

std::string Scientific(double value) { return value == 0 ? "0" : NumberText(value, "%.2e"); }

struct Result {
  Checked what;
  std::string type;
  Difference difference;
};

std::string Explain(const Result& result) {
  const Difference& d = result.difference;
  if (!d.mismatch.empty()) return d.mismatch;
  return Concat(d.departing, " of ", d.count, " elements; the farthest, element ", d.worst_at, ", is ",
                NumberText(d.worst_got, "%.9g"), ", wanted ", NumberText(d.worst_want, "%.9g"));
}

void PrintTable(const std::vector<Result>& results, const VerifyOptions& options) {
  std::vector<std::vector<std::string>> rows;
  size_t departing = 0;
  for (const Result& r : results) {
    departing += !r.difference.ok();
    const bool numbers = r.difference.mismatch.empty();
    rows.push_back({r.what.tensor, r.what.node, r.type, numbers ? Scientific(r.difference.max) : "-",
                    numbers ? Scientific(r.difference.mean) : "-",
                    r.difference.ok() ? Green("equal") : Red("departs")});
  }
  std::cout << Table({"tensor", "made by", "type", "max error", "mean error", ""}, rows);
  std::cout << "  reference: " << options.reference << "; tolerance " << options.tolerance.absolute << " + "
            << options.tolerance.relative << " * |reference|; " << CurrentIsa() << "\n";
  for (const Result& r : results) {
    if (r.difference.ok()) continue;
    std::cout << Red("first to depart: ") << r.what.node << ", tensor '" << r.what.tensor << "': " << Explain(r)
              << "\n";
    return;
  }
  std::cout << Green("equal") << ": all of " << results.size() << " tensor(s)\n";
}

void PrintJson(const std::vector<Result>& results, const VerifyOptions& options, bool equal) {
  Json report = {{"model", options.model}, {"reference", options.reference}, {"equal", equal}};
  report["tensors"] = Json::array();
  for (const Result& r : results) {
    const Difference& d = r.difference;
    Json entry = {{"tensor", r.what.tensor}, {"node", r.what.node}, {"type", r.type}, {"equal", d.ok()}};
    if (d.mismatch.empty()) {
      entry.update({{"max_error", d.max}, {"mean_error", d.mean}, {"departing", d.departing}, {"count", d.count}});
    } else {
      entry["mismatch"] = d.mismatch;
    }
    report["tensors"].push_back(entry);
  }
  std::cout << ToText(report) << "\n";
}

}  // namespace

int Verify(VerifyOptions options) {
  onnx::ModelProto model = LoadModel(options.model);
  if (options.session.libraries.empty()) CheckProvided(model, options.model);
  const std::vector<Checked> tensors = ChooseTensors(model, options.layers);
  if (options.layers && !model.SerializeToString(&options.session.model)) {
    throw Failure(kFailed, "the model is too large for --layers");
  }
  Feeds feeds;
  std::vector<TensorInfo> inputs;
  Outputs got, want;
  int integers_below = 0;
  {
    Session session(options.model, options.session);
    inputs = session.inputs();
    const Progress progress("verifying " + options.model);
    std::vector<Array> arrays;
    feeds = ReadFeedsThatRun(session, model, options.input, &arrays, &integers_below);
    got = ByName(session, std::move(arrays));
  }
  {
    const Progress progress("verifying " + options.model);
    want = RunReference(options, feeds, inputs, tensors);
  }
  std::vector<Result> results;
  bool equal = true;
  for (const Checked& tensor : tensors) {
    const Array& ours = got.at(tensor.tensor);
    const auto theirs = want.find(tensor.tensor);
    if (theirs == want.end()) {
      std::string names;
      for (const auto& [name, array] : want) names += (names.empty() ? "" : ", ") + name;
      if (options.layers) continue;  // saved outputs are mostly those of the model alone
      throw Failure(kBadFile, "the reference has no tensor '" + tensor.tensor + "'", "it has " + names);
    }
    results.push_back({tensor, std::string(NameOf(ours.dtype)) + ShapeText(ours.shape),
                       Compare(ours, theirs->second, options.tolerance)});
    equal &= results.back().difference.ok();
  }
  if (options.json) {
    PrintJson(results, options, equal);
  } else {
    PrintTable(results, options);
    if (feeds.integers_are_drawn && integers_below < kIntegersBelow) {
      std::cout << "  note: the model refuses larger integers than 0 to " << integers_below - 1
                << " in the inputs that nothing was said of\n";
    }
  }
  return equal ? kOk : kFailed;
}

}  // namespace polyop::cli
