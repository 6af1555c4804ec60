// SPDX-License-Identifier: Apache-2.0
// polyop verify: compares a model's results with a reference.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/model_check.h"
#include "cli/base/packages.h"
#include "cli/base/runtime.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/feeds.h"
#include "cli/json.h"
#include "cli/progress.h"
#include "cli/python.h"
#include "cli/verifying.h"

namespace polyop::cli {
namespace {

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
// Throws Failure if two outputs have one name: ONNX forbids it, but ONNX Runtime runs such models.
Plan ChooseTensors(onnx::ModelProto& model, bool layers) {
  std::map<std::string, std::string> producer;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& output : node.output()) producer[output] = NodeText(node);
  }
  std::map<std::string, bool> is_output;
  for (const auto& output : model.graph().output()) {
    if (std::exchange(is_output[output.name()], true)) {
      throw Failure(kBadFile, "expected outputs of different names, got '" + output.name() + "' twice");
    }
  }
  Plan plan;
  if (!layers) {
    for (const auto& output : model.graph().output()) plan.tensors.push_back({output.name(), producer[output.name()]});
    return plan;
  }
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

std::string Scientific(double value) { return value == 0 ? "0" : NumberText(value, "%.2e"); }

std::string Explain(const Difference& d) {
  if (!d.mismatch.empty()) return d.mismatch;
  return Concat(d.differing, " of ", d.count, " elements differ, most at element ", d.worst_at, ": expected ",
                d.worst_want, ", got ", d.worst_got);
}

Json Entry(const Checked& what, const Array& got, const Difference& d) {
  Json entry = {{"tensor", what.tensor},
                {"node", what.node},
                {"type", std::string(NameOf(got.dtype)) + ShapeText(got.shape)},
                {"equal", d.ok()}};
  if (!d.mismatch.empty()) {
    entry["mismatch"] = d.mismatch;
    return entry;
  }
  entry.update({{"max_error", d.max}, {"mean_error", d.mean}, {"differing", d.differing}, {"count", d.count}});
  entry["scale"] = d.scale;
  entry["relative_error"] = d.relative() ? Json(*d.relative()) : Json();
  if (!d.ok()) entry["difference"] = Explain(d);
  return entry;
}

// Throws Failure if no element of a tensor was compared, which would prove nothing.
void CheckCompared(const Json& tensors, const std::string& reference) {
  const auto is_compared = [](const Json& t) { return t.value("count", 0) > 0 || !t.at("equal").get<bool>(); };
  if (std::any_of(tensors.begin(), tensors.end(), is_compared)) return;
  throw Failure(kFailed,
                tensors.empty() ? "nothing was compared: the reference '" + reference + "' has none of the tensors"
                                : Concat("nothing was compared: all of ", tensors.size(), " tensor(s) are empty"),
                tensors.empty() ? "" : "inputs that give results: -i NAME=FILE or --set");
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

// The model, ready to run, and what it gave.
struct Loaded {
  onnx::ModelProto model;
  Plan plan;
  std::vector<Checked> others;  // tensors that are not numbers
  Feeds feeds;
  std::vector<TensorInfo> inputs;
  Ran ran;
  int integer_bound = 0;
};

Loaded RunModel(VerifyOptions* options) {
  Loaded loaded;
  loaded.model = LoadModel(options->model);
  CheckModel(loaded.model, options->model, options->session.libraries);
  CheckInputNames(loaded.model, options->input);
  loaded.plan = ChooseTensors(loaded.model, options->layers);
  const auto pass_model = [&] {
    if (!loaded.model.SerializeToString(&options->session.model)) {
      throw Failure(kFailed, "the model is too large for --layers");
    }
  };
  if (options->layers) {
    options->session.model_folder = FollowLinks(&loaded.model, options->model).string();
    pass_model();
  }
  options->session.optional_outputs = loaded.plan.added;
  const Progress progress("verifying " + options->model);
  {
    Session session(options->model, options->session);
    loaded.inputs = session.inputs();
    if (options->layers) loaded.others = RemoveOthers(session.outputs(), loaded.model, &loaded.plan);
    std::vector<Array> arrays;
    loaded.feeds = ReadFeedsThatRun(session, loaded.model, options->input, &arrays, &loaded.integer_bound);
    loaded.ran.runtime = "ONNX Runtime " + session.runtime_version();
    for (size_t i = 0; i < arrays.size(); ++i) {
      loaded.ran.outputs[session.outputs()[i].name] = std::move(arrays[i]);
    }
  }
  if (!loaded.others.empty()) pass_model();
  if (options->provider.empty()) return loaded;
  try {
    loaded.ran = RunInProvider(options->provider, {*options, loaded.feeds, loaded.inputs, loaded.plan.tensors});
  } catch (const Failure& f) {
    throw Failure(f.code(), "--provider " + options->provider + ": " + f.what(), f.hint());
  }
  return loaded;
}

// Returns the comparison with a reference, as --json prints it.
Json CompareWith(const Reference& reference, const Loaded& model, const VerifyOptions& options) {
  Ran want;
  {
    const Progress progress("verifying " + options.model);
    want = RunReference(reference, {options, model.feeds, model.inputs, model.plan.tensors});
  }
  Json tensors = Json::array();
  std::vector<Checked> missing;
  bool equal = true;
  for (const Checked& tensor : model.plan.tensors) {
    const Array& ours = model.ran.outputs.at(tensor.tensor);
    const auto theirs = want.outputs.find(tensor.tensor);
    if (theirs == want.outputs.end()) {
      const std::vector<std::string>& added = model.plan.added;
      if (std::find(added.begin(), added.end(), tensor.tensor) != added.end()) {
        missing.push_back(tensor);  // saved outputs usually lack those of nodes
        continue;
      }
      std::string names;
      for (const auto& [name, array] : want.outputs) names += (names.empty() ? "" : ", ") + name;
      throw Failure(kBadFile, "the reference has no tensor '" + tensor.tensor + "'", "it has " + names);
    }
    tensors.push_back(Entry(tensor, ours, Compare(ours, theirs->second, options.tolerance)));
    equal &= tensors.back().at("equal").get<bool>();
  }
  CheckCompared(tensors, reference.text);
  std::vector<std::string> notes = model.ran.notes;
  notes.insert(notes.end(), want.notes.begin(), want.notes.end());
  if (!options.provider.empty() && reference.kind == "onnx" && options.against_provider.empty()) {
    notes.push_back("--provider is that of " + options.model + ": " + reference.value +
                    " ran in the CPU provider (--against-provider names another)");
  }
  return {{"reference", reference.text},
          {"equal", equal},
          {"not_compared", NotCompared(model.plan, model.others, missing)},
          {"runtime", model.ran.runtime},
          {"reference_runtime", want.runtime},
          {"notes", notes},
          {"tensors", tensors}};
}

void PrintComparison(const Json& comparison, const VerifyOptions& options) {
  PrintTensors(comparison, options);
  for (const Json& tensor : comparison.at("tensors")) {
    if (tensor.at("equal").get<bool>()) continue;
    std::cout << Red("first difference: ")
              << Escaped(Concat(tensor.at("node").get<std::string>(), ", tensor '",
                                tensor.at("tensor").get<std::string>(), "'"))
              << ": " << tensor.value(tensor.contains("mismatch") ? "mismatch" : "difference", "") << "\n";
    return;
  }
  std::cout << Green("equal") << ": all of " << comparison.at("tensors").size() << " tensor(s)\n";
}

// Searches for the first node whose output differs, and writes it to a file.
Json Bisect(const Json& comparison, const Reference& reference, const Loaded& model, const VerifyOptions& options) {
  Json outputs = Json::array();
  for (const Json& tensor : comparison.at("tensors")) {
    if (!tensor.at("equal").get<bool>()) outputs.push_back(tensor.at("tensor"));
  }
  std::vector<Array> none;
  const Progress progress("searching " + options.model);
  return AskPython(
      "bisect",
      {{"model", options.model},
       {"provider", options.provider},
       {"reference", {{"kind", reference.kind}, {"value", reference.value}, {"provider", options.against_provider}}},
       {"tensors", outputs},
       {"output", options.output},
       {"rtol", options.tolerance.relative},
       {"atol", options.tolerance.absolute},
       {"threads", options.session.threads},
       {"accelerate", options.session.accelerate},
       {"libraries", options.session.libraries}},
      "polyop, onnx and onnxruntime (pip install 'polyop[optimize]')", model.inputs, model.feeds.arrays, {}, &none);
}

// Throws Failure for options that belong to another kind of comparison.
void CheckOptions(VerifyOptions* options) {
  const bool has_photos = !options->images.empty() || !options->task.empty();
  if (options->images.empty() && !options->task.empty()) options->images = options->input.inputs;
  if (!has_photos && !options->truth.empty()) throw Failure(kUsage, "--truth: expected --images or --task detection");
  if (!has_photos && !options->draw.empty()) throw Failure(kUsage, "--draw: expected --images");
  if (has_photos && (options->bisect || options->layers)) {
    throw Failure(kUsage, "--bisect and --layers: expected the inputs of one run, got photos",
                  "-i NAME=PHOTO runs one of them");
  }
  if (options->bisect && options->layers)
    throw Failure(kUsage, "--bisect and --layers: expected one of them, got both");
  if (!options->output.empty() && !options->bisect) throw Failure(kUsage, "--output: expected --bisect");
  if (!options->truth.empty() && !options->references.empty()) {
    throw Failure(kUsage, "--truth: expected no --against, got '" + options->references.front() + "'");
  }
  const auto is_file = [](const std::string& text) { return ParseReference(text).kind == "onnx"; };
  if (!options->against_provider.empty() &&
      std::none_of(options->references.begin(), options->references.end(), is_file)) {
    throw Failure(kUsage, "--against-provider: expected --against FILE.onnx, got none",
                  "--against provider=NAME runs the model itself in a provider");
  }
  if (!options->task.empty() && options->truth.empty() && options->references.empty()) {
    throw Failure(kUsage, "--task detection: expected a reference, got none",
                  "--against FILE, openvino or provider=NAME, or --truth annotations.json");
  }
}

}  // namespace

void PrintTensors(const Json& comparison, const VerifyOptions& options) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& t : comparison.at("tensors")) {
    const bool numbers = !t.contains("mismatch");
    const auto number = [&](const char* key) {
      return numbers && t.at(key).is_number() ? Scientific(t.at(key).get<double>()) : "-";
    };
    rows.push_back({t.at("tensor").get<std::string>(), t.at("node").get<std::string>(), t.at("type").get<std::string>(),
                    number("max_error"), number("relative_error"), number("mean_error"),
                    t.at("equal").get<bool>() ? Green("equal") : Red("differs")});
  }
  if (!rows.empty()) {
    std::cout << Table({"tensor", "producer", "type", "max error", "of scale", "mean error", ""}, rows);
    std::cout << "  reference: " << comparison.at("reference").get<std::string>() << "; tolerance "
              << options.tolerance.absolute << " + " << options.tolerance.relative << " * |reference|; "
              << KernelsText() << "\n";
  }
  const auto print = [](const Json& lines, const char* before) {
    for (const Json& line : lines) std::cout << "  " << before << Escaped(line.get<std::string>()) << "\n";
  };
  print(comparison.value("notes", Json::array()), "");
  print(comparison.value("not_compared", Json::array()), "not compared, ");
}

int Verify(VerifyOptions options) {
  if (!options.isa.empty()) Check(ForceIsaEverywhere(options.isa), kUsage);
  if (options.files.size() > 1 && !options.images.empty()) {
    throw Failure(kUsage, "--images: expected all photos behind it, got " + Join(options.files, ", "));
  }
  if (options.files.size() > 1) options.images = options.files;
  if (options.files.size() == 1) options.input.inputs.push_back("=" + options.files.front());
  CheckOptions(&options);
  std::vector<Reference> references;
  for (const std::string& text : options.references) references.push_back(ParseReference(text));
  if (!options.truth.empty()) references.push_back({options.truth, "truth", options.truth});
  if (references.empty()) references.push_back(ParseReference("kernels"));
  if (!options.report.empty()) PrepareOutput(options.report);
  std::optional<Loaded> model;
  if (options.images.empty()) model = RunModel(&options);
  std::vector<Json> comparisons;
  std::optional<Failure> failure;
  for (const Reference& reference : references) {
    try {
      Json comparison = model ? CompareWith(reference, *model, options) : VerifyPhotos(options, reference);
      if (model && !options.json) PrintComparison(comparison, options);
      if (options.bisect && !comparison.at("equal").get<bool>()) {
        comparison["bisect"] = Bisect(comparison, reference, *model, options);
        if (!options.json) {
          for (const Json& line : comparison.at("bisect").at("lines")) {
            std::cout << Escaped(line.get<std::string>()) << "\n";
          }
        }
      }
      comparisons.push_back(std::move(comparison));
    } catch (const Failure& f) {  // the other references still tell
      if (references.size() == 1) throw;
      if (!failure) failure = f;
      std::cerr << "polyop: error: " << f.what() << "\n" << (f.hint().empty() ? "" : "  hint: " + f.hint() + "\n");
      comparisons.push_back(
          {{"reference", reference.text}, {"equal", false}, {"error", f.what()}, {"tensors", Json::array()}});
    }
  }
  const bool equal =
      std::all_of(comparisons.begin(), comparisons.end(), [](const Json& c) { return c.at("equal").get<bool>(); });
  Json report = {{"model", options.model}};
  if (!options.report.empty()) {
    report.update(AskPython("verify_report",
                            {{"model", options.model},
                             {"command", options.command},
                             {"comparisons", comparisons},
                             {"file", options.report}},
                            "polyop and onnx (pip install 'polyop[optimize]')"));
    for (Json& comparison : comparisons) comparison.erase("shown");  // the images of the page
  }
  if (comparisons.size() == 1) {
    report.update(comparisons.front());
  } else {
    report.update({{"equal", equal}, {"comparisons", comparisons}});
  }
  if (options.json) {
    std::cout << ToText(report) << "\n";
  } else if (model) {
    std::cout << model->feeds.SyntheticText();
    if (model->feeds.integers_are_drawn && model->integer_bound < kIntegerBound) {
      std::cout << "  note: the model rejects integers greater than " << model->integer_bound - 1
                << " in its synthetic inputs\n";
    }
  }
  if (!options.json && !options.report.empty()) std::cout << Green("wrote") << " " << options.report << "\n";
  return failure ? failure->code() : equal ? kOk : kFailed;
}

}  // namespace polyop::cli
