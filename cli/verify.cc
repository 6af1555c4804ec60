// SPDX-License-Identifier: Apache-2.0
// polyop verify: compares a model's results with a reference.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/model_check.h"
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
#include "cli/loaded_model.h"
#include "cli/openvino.h"
#include "cli/progress.h"
#include "cli/python.h"
#include "kernels/cpu/simd.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

using Outputs = std::map<std::string, Array>;

// A tensor to compare, and its producer.
struct Checked {
  std::string tensor, node;
};

std::string NodeText(const onnx::NodeProto& node) {
  return TypeOf(node) + (node.name().empty() ? "" : " '" + node.name() + "'");
}

// What is compared, and what is not.
struct Plan {
  std::vector<Checked> tensors;
  std::vector<std::string> added;   // outputs that the model gets for this
  std::vector<std::string> inside;  // nodes with subgraphs, whose inner nodes are compared only through their outputs
};

int CountNodes(const onnx::GraphProto& graph) {
  int count = 0;
  for (const onnx::NodeProto& node : graph.node()) {
    ++count;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) count += CountNodes(attribute.g());
    }
  }
  return count;
}

// Returns the model's outputs. With `layers`, makes the outputs of all nodes outputs of the model and returns them.
Plan ChooseTensors(onnx::ModelProto& model, bool layers) {
  std::map<std::string, std::string> producer;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& output : node.output()) producer[output] = NodeText(node);
  }
  Plan plan;
  if (!layers) {
    for (const auto& output : model.graph().output()) plan.tensors.push_back({output.name(), producer[output.name()]});
    return plan;
  }
  std::map<std::string, bool> is_output;
  for (const auto& output : model.graph().output()) is_output[output.name()] = true;
  const auto nodes = model.graph().node();
  for (const onnx::NodeProto& node : nodes) {
    if (node.op_type() == "Constant") continue;
    int inner = 0;
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) inner += CountNodes(attribute.g());
    }
    if (inner > 0) plan.inside.push_back(Concat(NodeText(node), " (", inner, ")"));
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      plan.tensors.push_back({output, NodeText(node)});
      if (is_output[output]) continue;
      model.mutable_graph()->add_output()->set_name(output);
      plan.added.push_back(output);
    }
  }
  return plan;
}

// Removes the tensors that the session has no output for, because they are sequences, optional values or texts, from
// the plan and from the model's outputs. Returns them.
std::vector<Checked> RemoveOthers(const std::vector<TensorInfo>& outputs, onnx::ModelProto& model, Plan* plan) {
  const auto is_missing = [&](const std::string& name) {
    return std::none_of(outputs.begin(), outputs.end(), [&](const TensorInfo& info) { return info.name == name; });
  };
  std::vector<Checked> removed;
  std::copy_if(plan->tensors.begin(), plan->tensors.end(), std::back_inserter(removed),
               [&](const Checked& checked) { return is_missing(checked.tensor); });
  std::erase_if(plan->tensors, [&](const Checked& checked) { return is_missing(checked.tensor); });
  auto& declared = *model.mutable_graph()->mutable_output();
  declared.erase(std::remove_if(declared.begin(), declared.end(), [&](const auto& o) { return is_missing(o.name()); }),
                 declared.end());
  return removed;
}

Outputs ByName(const std::vector<TensorInfo>& infos, std::vector<Array> arrays) {
  Outputs outputs;
  for (size_t i = 0; i < arrays.size(); ++i) outputs[infos[i].name] = std::move(arrays[i]);
  return outputs;
}

Outputs RunHere(const VerifyOptions& options, const SessionOptions& session_options, const std::vector<Array>& inputs) {
  Session session(options.model, session_options);
  return ByName(session.outputs(), session.Run(inputs));
}

// Runs in a separate process, because a process can have only one ONNX Runtime.
Outputs RunElsewhere(const VerifyOptions& options, const std::string& runtime, const Feeds& feeds,
                     const std::vector<TensorInfo>& inputs) {
  constexpr double kGigabyte = 1e9;
  const TemporaryFolder folder;
  std::map<std::string, Array> named;
  double gigabytes = 1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    named[inputs[i].name] = feeds.arrays[i];
    gigabytes += static_cast<double>(feeds.arrays[i].bytes.size()) / kGigabyte;
  }
  WriteNpz(folder.File("inputs.npz"), named);
  std::string model = options.model;
  if (!options.session.model.empty()) {
    model = folder.File("model.onnx");
    WriteFile(model, options.session.model.data(), options.session.model.size());
  }
  std::vector<std::string> words = {
      OwnProgramFile().string(),  "run",           model,   "-i",       folder.File("inputs.npz"),    "-o",
      folder.File("outputs.npz"), "--onnxruntime", runtime, "--memory", NumberText(gigabytes, "%.9g")};
  for (const std::string& library : options.session.libraries) words.insert(words.end(), {"--ops", library});
  if (options.session.accelerate) words.emplace_back("--accelerate");
  RunProgram(words, "is it an ONNX Runtime? Its message is above", "");
  return ReadNpz(folder.File("outputs.npz"), {}, /*is_own=*/true);
}

// Runs another model, or the model in another runtime. Its inputs are a subset of the first one's, because
// `polyop convert --set` fixes inputs; its outputs have the same names.
Outputs RunOther(const LoadedModel& other, const Feeds& feeds, const std::vector<TensorInfo>& inputs) {
  std::vector<Array> arrays;
  for (const TensorInfo& input : other.inputs()) arrays.push_back(feeds.arrays[IndexOf(inputs, input.name, "input")]);
  return ByName(other.outputs(), other.Run(arrays, 1).outputs);
}

// Throws Failure for --layers with a reference whose nodes are not the model's.
void RefuseLayers(const VerifyOptions& options, const std::string& why) {
  if (options.layers) throw Failure(kUsage, "--layers and --reference " + why);
}

Outputs RunTorch(const VerifyOptions& options, const std::string& program, const Feeds& feeds,
                 const std::vector<TensorInfo>& inputs, const std::vector<Checked>& tensors) {
  RefuseLayers(options, "torch=FILE: torch has no outputs of ONNX nodes");
  Json input_names = Json::array(), output_names = Json::array();
  for (const TensorInfo& input : inputs) input_names.push_back(input.name);
  std::vector<TensorInfo> outputs;
  for (const Checked& tensor : tensors) {
    output_names.push_back(tensor.tensor);
    outputs.emplace_back().name = tensor.tensor;
  }
  std::vector<Array> arrays;
  AskPython("run_torch",
            {{"program", fs::absolute(program).string()}, {"input_names", input_names}, {"output_names", output_names}},
            "polyop, torch and a FILE that torch.export.save or torch.jit.save wrote", inputs, feeds.arrays, outputs,
            &arrays);
  Outputs named;
  for (size_t i = 0; i < arrays.size(); ++i) named[outputs[i].name] = std::move(arrays[i]);
  return named;
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
      throw Failure(kUsage,
                    Concat("--reference threads=N: '", kind.value, "' is not an integer in [1 - ", kMaxThreads, "]"));
    }
    session.threads = static_cast<int>(*threads);
    return RunHere(options, session, feeds.arrays);
  }
  if (kind.name == "npz") return ReadNpz(kind.value);
  if (kind.name == "onnx") {
    RefuseLayers(options, "onnx=FILE: the models' nodes may differ");
    return RunOther(*LoadInOnnxRuntime(kind.value, session), feeds, inputs);
  }
  if (kind.name == "engine") {
    RefuseLayers(options, "engine=FILE: an engine has no outputs of nodes");
    return RunOther(Engine(kind.value), feeds, inputs);
  }
  if (kind.name == "openvino") {
    RefuseLayers(options, "openvino: OpenVINO has other nodes");
    return RunOther(OpenVinoModel(kind.value.empty() ? options.model : kind.value, session, {}), feeds, inputs);
  }
  if (kind.name == "onnxruntime") return RunElsewhere(options, kind.value, feeds, inputs);
  if (kind.name == "torch") return RunTorch(options, kind.value, feeds, inputs, tensors);
  throw Failure(
      kUsage, "--reference: '" + options.reference + "' is unknown",
      "expected kernels, functions, isa=NAME, threads=N, npz=FILE, onnx=FILE, onnxruntime=LIBRARY, engine=FILE, "
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
  return Concat(d.differing, " of ", d.count, " elements differ, most at element ", d.worst_at, ": expected ",
                d.worst_want, ", got ", d.worst_got);
}

// Throws Failure if no element of a tensor was compared, which would prove nothing.
void CheckCompared(const std::vector<Result>& results, const std::string& reference) {
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const Result& r) { return r.difference.count > 0 || !r.difference.ok(); });
  if (any) return;
  throw Failure(kFailed,
                results.empty() ? "nothing was compared: the reference '" + reference + "' has none of the tensors"
                                : Concat("nothing was compared: all of ", results.size(), " tensor(s) are empty"),
                results.empty() ? "" : "inputs that give results: -i NAME=FILE or --set");
}

// What was not compared, and why, a line each.
std::vector<std::string> NotCompared(const Plan& plan, const std::vector<Checked>& others,
                                     const std::vector<Checked>& missing) {
  std::vector<std::string> lines;
  const auto add = [&](const std::vector<Checked>& tensors, const std::string& why) {
    std::vector<std::string> names;
    for (const Checked& tensor : tensors) names.push_back("'" + tensor.tensor + "' of " + tensor.node);
    if (!names.empty()) lines.push_back(why + ": " + Join(names, ", "));
  };
  add(others, "not numbers");
  add(missing, "not in the reference");
  if (!plan.inside.empty()) lines.push_back("nodes inside, alone: " + Join(plan.inside, ", "));
  return lines;
}

void PrintTable(const std::vector<Result>& results, const VerifyOptions& options,
                const std::vector<std::string>& not_compared) {
  std::vector<std::vector<std::string>> rows;
  for (const Result& r : results) {
    const bool numbers = r.difference.mismatch.empty();
    rows.push_back({r.what.tensor, r.what.node, r.type, numbers ? Scientific(r.difference.max) : "-",
                    numbers ? Scientific(r.difference.mean) : "-",
                    r.difference.ok() ? Green("equal") : Red("differs")});
  }
  std::cout << Table({"tensor", "producer", "type", "max error", "mean error", ""}, rows);
  std::cout << "  reference: " << options.reference << "; tolerance " << options.tolerance.absolute << " + "
            << options.tolerance.relative << " * |reference|; " << KernelsText() << "\n";
  for (const std::string& line : not_compared) std::cout << "  not compared, " << Escaped(line) << "\n";
  for (const Result& r : results) {
    if (r.difference.ok()) continue;
    std::cout << Red("first difference: ") << Escaped(r.what.node + ", tensor '" + r.what.tensor + "'") << ": "
              << Explain(r) << "\n";
    return;
  }
  std::cout << Green("equal") << ": all of " << results.size() << " tensor(s)\n";
}

void PrintJson(const std::vector<Result>& results, const VerifyOptions& options,
               const std::vector<std::string>& not_compared, bool equal) {
  Json report = {
      {"model", options.model}, {"reference", options.reference}, {"equal", equal}, {"not_compared", not_compared}};
  report["tensors"] = Json::array();
  for (const Result& r : results) {
    const Difference& d = r.difference;
    Json entry = {{"tensor", r.what.tensor}, {"node", r.what.node}, {"type", r.type}, {"equal", d.ok()}};
    if (d.mismatch.empty()) {
      entry.update({{"max_error", d.max}, {"mean_error", d.mean}, {"differing", d.differing}, {"count", d.count}});
    } else {
      entry["mismatch"] = d.mismatch;
    }
    report["tensors"].push_back(entry);
  }
  std::cout << ToText(report) << "\n";
}

// Compares what two files with attached heads find on photos.
int VerifyDetections(const VerifyOptions& options) {
  const bool has_truth = !options.truth.empty();
  if (has_truth && options.reference != VerifyOptions().reference) {
    throw Failure(kUsage, "--truth: expected no --reference, got '" + options.reference + "'");
  }
  Named kind = Split(options.reference).name.empty() ? Named{options.reference, ""} : Split(options.reference);
  if (has_truth) kind = {"truth", options.truth};
  const bool same_file = kind.name == "openvino" && kind.value.empty();
  if (!same_file && !has_truth && (kind.value.empty() || (kind.name != "onnx" && kind.name != "openvino"))) {
    throw Failure(kUsage, "--task detection: expected another reference, got '" + options.reference + "'",
                  "--reference onnx=FILE, openvino or openvino=FILE, or --truth annotations.json");
  }
  Json report;
  {
    const Progress progress("verifying " + options.model);
    report = AskPython("verify_detections",
                       {{"model", options.model},
                        {"reference", kind.name},
                        {"file", same_file ? options.model : kind.value},
                        {"inputs", options.input.inputs},
                        {"draw", options.draw},
                        {"memory", MemoryLimit()},
                        {"iou", options.iou},
                        {"threads", options.session.threads},
                        {"libraries", options.session.libraries}},
                       "polyop, ONNX Runtime and Pillow (pip install 'polyop[batch,optimize]')");
  }
  const double precision = report.at("average_precision").get<double>();
  const double expected = options.min_precision.value_or(has_truth ? 0 : 0.95);
  const bool ok = precision >= expected;
  report["reference"] = has_truth ? options.truth : options.reference;
  report["equal"] = ok;
  if (options.json) {
    std::cout << ToText(report) << "\n";
    return ok ? kOk : kFailed;
  }
  std::vector<std::vector<std::string>> rows;
  for (const Json& photo : report.at("worst")) {
    rows.push_back({photo.at("photo").get<std::string>(), Concat(photo.at("missing").get<int64_t>()),
                    Concat(photo.at("additional").get<int64_t>()), photo.at("drawing").get<std::string>()});
  }
  if (!rows.empty()) std::cout << Table({"photo", "missing", "additional", "drawing"}, rows) << "\n";
  std::cout << "  " << report.at("photos") << " photo(s), " << report.at("expected")
            << (has_truth ? " true objects, " : " detections of the reference, ") << report.at("found")
            << (has_truth ? " detections of the model, " : " of the model, ") << report.at("matched")
            << " of both (class, and IoU of at least " << NumberText(options.iou, "%g")
            << ")\n  mean average precision " << NumberText(precision, "%.4f") << ", over IoUs from 0.5 to 0.95 "
            << NumberText(report.at("coco_precision").get<double>(), "%.4f") << "\n"
            << (ok ? Green("agrees") : Red("differs")) << ": expected a mean average precision of at least "
            << NumberText(expected, "%g") << "\n";
  return ok ? kOk : kFailed;
}

}  // namespace

int Verify(VerifyOptions options) {
  if (options.task.empty() && !options.truth.empty()) throw Failure(kUsage, "--truth: expected --task detection");
  if (!options.task.empty()) return VerifyDetections(options);
  onnx::ModelProto model = LoadModel(options.model);
  CheckModel(model, options.model, options.session.libraries);
  CheckInputNames(model, options.input);
  Plan plan = ChooseTensors(model, options.layers);
  const auto pass_model = [&] {
    if (!model.SerializeToString(&options.session.model)) {
      throw Failure(kFailed, "the model is too large for --layers");
    }
  };
  if (options.layers) {
    options.session.model_folder = FollowLinks(&model, options.model).string();
    pass_model();
  }
  options.session.optional_outputs = plan.added;
  Feeds feeds;
  std::vector<TensorInfo> inputs;
  std::vector<Checked> others, missing;
  Outputs got, want;
  int integer_bound = 0;
  {
    Session session(options.model, options.session);
    inputs = session.inputs();
    if (options.layers) others = RemoveOthers(session.outputs(), model, &plan);
    const Progress progress("verifying " + options.model);
    std::vector<Array> arrays;
    feeds = ReadFeedsThatRun(session, model, options.input, &arrays, &integer_bound);
    got = ByName(session.outputs(), std::move(arrays));
  }
  if (!others.empty()) pass_model();
  {
    const Progress progress("verifying " + options.model);
    want = RunReference(options, feeds, inputs, plan.tensors);
  }
  std::vector<Result> results;
  bool equal = true;
  for (const Checked& tensor : plan.tensors) {
    const Array& ours = got.at(tensor.tensor);
    const auto theirs = want.find(tensor.tensor);
    if (theirs == want.end()) {
      const bool was_added = std::find(plan.added.begin(), plan.added.end(), tensor.tensor) != plan.added.end();
      if (was_added) {  // saved outputs usually lack those of nodes
        missing.push_back(tensor);
        continue;
      }
      std::string names;
      for (const auto& [name, array] : want) names += (names.empty() ? "" : ", ") + name;
      throw Failure(kBadFile, "the reference has no tensor '" + tensor.tensor + "'", "it has " + names);
    }
    results.push_back({tensor, std::string(NameOf(ours.dtype)) + ShapeText(ours.shape),
                       Compare(ours, theirs->second, options.tolerance)});
    equal &= results.back().difference.ok();
  }
  CheckCompared(results, options.reference);
  const std::vector<std::string> not_compared = NotCompared(plan, others, missing);
  if (options.json) {
    PrintJson(results, options, not_compared, equal);
  } else {
    PrintTable(results, options, not_compared);
    std::cout << feeds.SyntheticText();
    if (feeds.integers_are_drawn && integer_bound < kIntegerBound) {
      std::cout << "  note: the model rejects integers greater than " << integer_bound - 1
                << " in its synthetic inputs\n";
    }
  }
  return equal ? kOk : kFailed;
}

}  // namespace polyop::cli
