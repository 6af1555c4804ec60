// SPDX-License-Identifier: Apache-2.0
// polyop bench: times a model, its nodes, and another model.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/model.h"
#include "cli/base/model_check.h"
#include "cli/base/packages.h"
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
#include "cli/python_model.h"
#include "kernels/cpu/simd.h"

namespace polyop::cli {
namespace {

struct Timed {
  std::string model, runtime;
  int threads = 0;              // 0: a GPU
  std::vector<double> seconds;  // ascending
  std::string synthetic;        // Feeds::SyntheticText()

  double minimum() const { return seconds.front(); }
  double median() const { return Percentile(seconds, 50); }
};

struct Contender {
  std::string model;
  std::unique_ptr<Session> session;
  std::vector<Array> inputs;
  std::string synthetic;  // Feeds::SyntheticText()
};

// `integer_bound` is 0 for the first contender, which finds it. All others get the same values.
Contender Open(const std::string& model, const SessionOptions& session, const BenchOptions& options,
               int* integer_bound) {
  onnx::ModelProto proto;
  if (IsOrt(model)) {
    (void)FileSize(model);
  } else {
    proto = LoadModel(model);
    CheckModel(proto, model, session.libraries);
    CheckInputNames(proto, options.input);
  }
  Contender contender{model, std::make_unique<Session>(model, session), {}, ""};
  std::vector<Array> outputs;
  Feeds feeds = *integer_bound == 0
                    ? ReadFeedsThatRun(*contender.session, proto, options.input, &outputs, integer_bound)
                    : ReadFeeds(contender.session->inputs(), proto, options.input, *integer_bound);
  contender.synthetic = feeds.SyntheticText();
  contender.inputs = std::move(feeds.arrays);
  return contender;
}

// Integers are 0 and 1, which are valid indices of any tensor of two rows.
Feeds FeedsOf(const LoadedModel& model, const BenchOptions& options) {
  return ReadFeeds(model.inputs(), model.model(), options.input, 2);
}

void CheckEqual(const std::vector<Array>& got, const std::vector<Array>& want, const BenchOptions& options) {
  bool equal = got.size() == want.size();
  for (size_t i = 0; equal && i < got.size(); ++i) equal = Compare(got[i], want[i], options.tolerance).ok();
  if (equal) return;
  throw Failure(kFailed, "'" + options.model + "' and '" + options.against + "' do not agree; nothing is timed",
                "--rtol and --atol set the tolerance");
}

// Runs are interleaved, so that a change of the machine's speed affects all contenders.
std::vector<Timed> TimeAll(const BenchOptions& options, int threads, int* integer_bound) {
  SessionOptions session = options.session;
  session.threads = threads;
  std::vector<Contender> contenders;
  contenders.push_back(Open(options.model, session, options, integer_bound));
  if (!options.against.empty()) contenders.push_back(Open(options.against, session, options, integer_bound));
  std::vector<std::vector<Array>> outputs;
  std::vector<Timed> timed;
  for (size_t c = 0; c < contenders.size(); ++c) {
    outputs.push_back(contenders[c].session->Run(contenders[c].inputs));
    timed.push_back({contenders[c].model,
                     "ONNX Runtime " + contenders[c].session->runtime_version(),
                     threads,
                     {},
                     contenders[c].synthetic});
  }
  if (contenders.size() > 1) CheckEqual(outputs[0], outputs[1], options);
  const auto run = [&](size_t c) { outputs[c] = contenders[c].session->Run(contenders[c].inputs); };
  const auto each = [&](const auto& function) {
    for (size_t c = 0; c < contenders.size(); ++c) function(c);
  };
  for (int i = 1; i < options.timing.warmup; ++i) each(run);
  const double seconds = options.timing.seconds * static_cast<double>(contenders.size());
  TimeRuns({0, options.timing.repeat, seconds},
           [&] { each([&](size_t c) { timed[c].seconds.push_back(TimeRuns({}, [&] { run(c); }).front()); }); });
  for (Timed& t : timed) std::sort(t.seconds.begin(), t.seconds.end());
  return timed;
}

bool RunsInPython(const std::string& path) { return IsOpenVino(path) || IsEngine(path); }

// Times models one after the other, for those that Python runs.
std::vector<Timed> TimeElsewhere(const BenchOptions& options, int threads) {
  SessionOptions session = options.session;
  session.threads = threads;
  std::vector<Timed> timed;
  std::vector<Array> first;
  for (const std::string& path : {options.model, options.against}) {
    if (path.empty()) continue;
    const std::unique_ptr<LoadedModel> model = LoadAny(path, options.target, session, options.input);
    const Feeds feeds = FeedsOf(*model, options);
    LoadedModel::Runs runs = model->Run(feeds.arrays, options.timing);
    if (timed.empty()) {
      first = std::move(runs.outputs);
    } else {
      CheckEqual(first, runs.outputs, options);
    }
    std::sort(runs.seconds.begin(), runs.seconds.end());
    const std::string note = runs.note.empty() ? "" : "  " + Escaped(runs.note) + "\n";
    timed.push_back({path, model->runtime(), model->runs_on_cpu() ? threads : 0, std::move(runs.seconds),
                     note + feeds.SyntheticText()});
  }
  return timed;
}

struct NodeTime {
  std::string node, type;
  double seconds = 0;  // per run
};

std::vector<NodeTime> TimeNodesElsewhere(const BenchOptions& options) {
  SessionOptions session = options.session;
  session.threads = options.threads.front();
  const std::unique_ptr<LoadedModel> loaded = LoadAny(options.model, options.target, session, options.input);
  const auto& model = dynamic_cast<const PythonModel&>(*loaded);
  std::vector<NodeTime> nodes;
  for (const Json& node : model.TimeLayers(FeedsOf(model, options).arrays)) {
    nodes.push_back({node.at("node"), node.at("operator"), node.at("mean_seconds")});
  }
  return nodes;
}

// Times nodes by ONNX Runtime's profiler, the slowest first.
std::vector<NodeTime> TimeNodes(const BenchOptions& options, int integer_bound) {
  constexpr int kRuns = 10;
  SessionOptions session = options.session;
  session.threads = options.threads.front();
  session.profile = (std::filesystem::temp_directory_path() / "polyop-profile").string();
  Contender contender = Open(options.model, session, options, &integer_bound);
  std::vector<Array> outputs;
  for (int i = 0; i < kRuns; ++i) outputs = contender.session->Run(contender.inputs);
  const std::string path = contender.session->EndProfile();
  const std::vector<uint8_t> bytes = ReadFile(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  const Json events = ParseJson(bytes, /*may_fail=*/true);
  std::map<std::string, NodeTime> nodes;
  constexpr std::string_view kSuffix = "_kernel_time";
  for (const Json& event : events) {
    if (!event.is_object() || event.value("cat", "") != "Node") continue;
    const std::string name = event.value("name", "");
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    NodeTime& node = nodes[name];
    node.node = name.substr(0, name.size() - kSuffix.size());
    node.type = event.contains("args") ? event["args"].value("op_name", "") : "";
    node.seconds += event.value("dur", 0.0) * 1e-6 / kRuns;
  }
  std::vector<NodeTime> sorted;
  sorted.reserve(nodes.size());
  for (auto& [name, node] : nodes) sorted.push_back(std::move(node));
  std::sort(sorted.begin(), sorted.end(), [](const NodeTime& a, const NodeTime& b) { return a.seconds > b.seconds; });
  return sorted;
}

// Returns how the speed of the second model compares with the first's, as `polyop optimize --measure` does.
std::string SpeedText(const Timed& first, const Timed& second) {
  const double ratio = first.median() / second.median(), factor = std::max(ratio, 1 / ratio);
  if (factor < 1.005) return "as fast";
  return NumberText(factor, ratio > 1 ? "%.2fx faster" : "%.2fx slower");
}

void Print(const std::vector<Timed>& timed, const std::vector<NodeTime>& nodes, const BenchOptions& options) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < timed.size(); ++i) {
    const bool is_second = !options.against.empty() && i % 2 == 1;
    rows.push_back({timed[i].model, timed[i].threads > 0 ? std::to_string(timed[i].threads) : "-",
                    TimeText(timed[i].minimum()), TimeText(timed[i].median()),
                    TimeText(Percentile(timed[i].seconds, 90)), TimeText(Percentile(timed[i].seconds, 99)),
                    std::to_string(timed[i].seconds.size()), is_second ? SpeedText(timed[i - 1], timed[i]) : ""});
  }
  std::vector<std::string> header = {"model", "threads", "min", "median", "p90", "p99", "runs"};
  header.push_back(options.against.empty() ? "" : "speed");
  std::cout << Table(header, rows) << "  " << timed.front().runtime << ", " << KernelsText() << "\n"
            << timed.front().synthetic;
  if (nodes.empty()) return;
  double total = 0;
  for (const NodeTime& node : nodes) total += node.seconds;
  rows.clear();
  constexpr size_t kShown = 20;
  for (size_t i = 0; i < std::min(nodes.size(), kShown); ++i) {
    rows.push_back({nodes[i].node, nodes[i].type, TimeText(nodes[i].seconds),
                    NumberText(100 * nodes[i].seconds / total, "%.1f %%")});
  }
  std::cout << "\n" << Table({"node", "operator", "mean", "share"}, rows);
  if (nodes.size() > kShown) std::cout << "  and " << nodes.size() - kShown << " faster ones\n";
}

void PrintJson(const std::vector<Timed>& timed, const std::vector<NodeTime>& nodes) {
  Json report = {{"isa", CurrentIsa()}};
  for (const Timed& t : timed) {
    report["runs"].push_back({{"model", t.model},
                              {"runtime", t.runtime},
                              {"threads", t.threads},
                              {"min_seconds", t.minimum()},
                              {"median_seconds", t.median()},
                              {"p90_seconds", Percentile(t.seconds, 90)},
                              {"p99_seconds", Percentile(t.seconds, 99)},
                              {"count", t.seconds.size()}});
  }
  for (const NodeTime& n : nodes) {
    report["nodes"].push_back({{"node", n.node}, {"operator", n.type}, {"mean_seconds", n.seconds}});
  }
  std::cout << ToText(report) << "\n";
}

}  // namespace

int Bench(BenchOptions options) {
  if (options.files.size() > 1) {
    throw Failure(kUsage, Concat("expected a file for one input, got ", options.files.size()), "-i NAME=FILE for each");
  }
  if (options.layers && IsEngine(options.model)) {
    throw Failure(kUsage,
                  "--layers: expected a model that runs in ONNX Runtime or OpenVINO, got '" + options.model + "'",
                  "TensorRT's `trtexec --loadEngine=" + options.model + " --dumpProfile` times layers");
  }
  for (const std::string& file : options.files) options.input.inputs.push_back("=" + file);
  if (!options.isa.empty()) Check(ForceIsaEverywhere(options.isa), kUsage);
  std::vector<Timed> timed;
  std::vector<NodeTime> nodes;
  int integer_bound = 0;
  {
    const Progress progress("timing " + options.model);
    const bool elsewhere =
        options.target.is_elsewhere() || RunsInPython(options.model) || RunsInPython(options.against);
    const bool on_gpu = IsEngine(options.model) && (options.against.empty() || IsEngine(options.against));
    if (on_gpu) options.threads = {1};  // which it does not use
    for (int threads : options.threads) {
      for (Timed& t : elsewhere ? TimeElsewhere(options, threads) : TimeAll(options, threads, &integer_bound)) {
        timed.push_back(std::move(t));
      }
    }
    const bool layers_elsewhere = options.target.is_elsewhere() || IsOpenVino(options.model);
    if (options.layers) nodes = layers_elsewhere ? TimeNodesElsewhere(options) : TimeNodes(options, integer_bound);
  }
  options.json ? PrintJson(timed, nodes) : Print(timed, nodes, options);
  return kOk;
}

}  // namespace polyop::cli
