// SPDX-License-Identifier: Apache-2.0
// The command line of `polyop`, which runs, inspects, converts and explains ONNX models with custom operators, and
// creates new operators. All of it is in this file, because CLI11 takes long to compile.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "cli/base/environments.h"
#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/number.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/licenses.h"
#include "cli/python.h"
#include "cli/shell.h"
#include "core/reference.h"
#include "kernels/cpu/simd.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

// The action of a parsed command. Returns the exit code.
using Action = std::function<int()>;

constexpr const char* kDescription =
    "polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO.";
constexpr const char* kFooter =
    "Examples:\n"
    "  polyop inspect model.onnx                      the operators that a model needs, and who provides them\n"
    "  polyop inspect model.onnx --html model.html    an image of the graph\n"
    "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,3,3\n"
    "  polyop run model.onnx -i x=x.npy -o y=y.npy --threads 2 --repeat 20\n"
    "  polyop verify model.onnx -i x=x.npy --layers   compare with the reference kernels, node by node\n"
    "  polyop bench model.onnx --layers               time a model and its nodes\n"
    "  polyop batch model.onnx -i 'photos/*.jpg' -o out    run a folder of files, on all cores or on a cluster\n"
    "  polyop triton model.onnx -o repository         a model repository for Triton Inference Server\n"
    "  polyop attach yolo.onnx -o app.onnx --image    from a photo to boxes in one file\n"
    "  polyop optimize model.onnx -o fast.onnx        use polyop's nodes where they are faster\n"
    "  polyop convert model.onnx -o model.engine      a TensorRT engine\n"
    "  polyop portable old.onnx -o new.onnx           a file that also runs without polyop\n"
    "  polyop doctor                                  what of all this works here, and how to fix the rest\n"
    "  polyop ops roi_align                           one operator: shapes, attributes, semantics\n"
    "  polyop new my_ops --project                    a project for your own operators\n"
    "  polyop test                                    build and test such a project's operators\n"
    "  polyop help run                                the options of a command\n"
    "\n"
    "attach, batch, convert, doctor, optimize, portable and triton run in Python, as `python -m polyop COMMAND`.\n"
    "\n"
    "Exit codes:\n"
    "  0  done                                  3  a file is missing, damaged or of the wrong kind\n"
    "  1  the model failed, or differs          4  the model needs operators that nobody provides\n"
    "  2  the command line is wrong             5  a runtime is missing or too old";

// Returns the text with its later lines indented: a line break in a model's name must not begin what looks like other
// output.
std::string Indented(std::string text) {
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) {
    if (text[at + 1] != '\n') text.insert(at + 1, "  ");
  }
  return text;
}

int Report(const std::string& message, const std::string& hint, int code) {
  const bool colors = ColorsOnStderr();
  std::cerr << (colors ? "\033[1;31m" : "") << "polyop: error: " << (colors ? "\033[0m" : "") << Indented(message)
            << "\n";
  if (!hint.empty()) std::cerr << "  hint: " << Indented(hint) << "\n";
  return code;
}

// Checks the text itself: CLI11 accepts nan in any range, and reads 0x10 as 16 and 010 as 8.
CLI::Validator Integer(int64_t min, int64_t max) {
  const std::string range = Concat("[", min, " - ", max, "]");
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<int64_t> value = ParseInteger(text);
        if (!value || *value < min || *value > max) return "'" + text + "' is not an integer in " + range;
        text = std::to_string(*value);
        return "";
      },
      "INT in " + range);
}

CLI::Validator RealNumber(double min, double max) {
  const std::string range = std::isfinite(max) ? Concat("[", min, " - ", max, "]") : "[0 - …]";
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<double> value = ParseReal(text);
        const bool good = value && std::isfinite(*value) && *value >= min && *value <= max;
        return good ? "" : "'" + text + "' is not a number in " + range;
      },
      "FLOAT in " + range);
}

constexpr double kGigabyte = 1e9;
constexpr double kMaxGigabytes = 1e6;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

void AddImageOptions(CLI::App& command, InputOptions& options) {
  command.add_option("--layout", options.layout, "images as NCHW or NHWC (default: from the model)")
      ->check(CLI::IsMember({"NCHW", "NHWC"}));
  command.add_option("--range", options.range,
                     "BLACK,WHITE: values of images (default: the model's, else 0,1 or 0,255 for uint8)");
  command.add_option("--color", options.color, "RGB, BGR or GRAY (default: from the model)")
      ->check(CLI::IsMember({"RGB", "BGR", "GRAY"}));
  CLI::Option* const resize =
      command.add_option("--resize", options.resize, "HEIGHTxWIDTH: scale images to this size, or to the `model`'s");
  command
      .add_option("--letterbox", options.letterbox,
                  "HEIGHTxWIDTH or model: like --resize, with the aspect ratio, on gray")
      ->excludes(resize);
  command.add_option("--mean", options.mean, "V or V,V,V: subtracted from images, after --range, for each channel");
  command.add_option("--std", options.std, "V or V,V,V: images are divided by it, after --mean");
}

void AddFiles(CLI::App& command, std::vector<std::string>& files, const std::string& several) {
  command.add_option("files", files, "an image, .npy or .npz, as -i FILE; or NAME=FILE" + several);
}

void AddInputOptions(CLI::App& command, InputOptions& options) {
  command
      .add_option("-i,--input", options.inputs,
                  "NAME=FILE: an image (.png .jpg .bmp .webp .tif), .npy or .npz; or NAME=random, NAME=zeros")
      ->take_all()
      ->expected(1);
  command.add_option("--set", options.sets, "NAME=V,V,…: an input from numbers")->take_all()->expected(1);
  command.add_option("--shape", options.shapes, "NAME=1x3x224x224: the shape of a `random` or `zeros` input")
      ->take_all()
      ->expected(1);
  AddImageOptions(command, options);
  command
      .add_option_function<double>(
          "--memory", [](double gigabytes) { SetMemoryLimit(static_cast<uint64_t>(gigabytes * kGigabyte)); },
          "GB: how much memory the contents of the files of -i may take (default: 0.27, and 64 times the files' sizes)")
      ->check(RealNumber(0.001, kMaxGigabytes));
}

void AddLibraryOptions(CLI::App& command, SessionOptions& options) {
  command.add_option("--ops", options.libraries, "a further library of custom operators")->take_all()->expected(1);
  command.add_option("--onnxruntime", options.onnxruntime, "path of ONNX Runtime's library (default: searched for)");
  command.add_flag("--accelerate", options.accelerate,
                   "replace ONNX Runtime's own kernels by polyop's (RoiAlign, GridSample, …)");
}

void AddProviderOption(CLI::App& command, std::string& provider) {
  command.add_option(
      "--provider", provider,
      "NAME[:key=value,…]: run the model in this execution provider of the package onnxruntime: cpu, "
      "cuda, tensorrt, webgpu, openvino, …, polyop, or the path of a plugin library; cuda:1 is the second "
      "GPU");
}

void AddTargetOptions(CLI::App& command, Target& target) {
  command.add_option("--runtime", target.runtime, "onnxruntime (default) or openvino, which runs in Python")
      ->check(CLI::IsMember({"onnxruntime", "openvino"}));
  AddProviderOption(command, target.provider);
}

void AddIsaOption(CLI::App& command, std::string& isa) {
  command.add_option(
      "--isa", isa, "force an instruction set: " + [] {
        std::vector<std::string> names(AvailableIsas().begin(), AvailableIsas().end());
        return Join(names, ", ");
      }());
}

// Call EndTiming when the options are parsed.
void AddTimingOptions(CLI::App& command, Timing& timing) {
  constexpr int kMaxRuns = 1000000;
  constexpr double kMaxSeconds = 3600;
  command
      .add_option("--warmup", timing.warmup,
                  Concat("number of runs before those that are timed (default ", timing.warmup, ")"))
      ->transform(Integer(timing.warmup, kMaxRuns));
  command
      .add_option("--repeat", timing.repeat,
                  Concat("number of timed runs (default ", timing.repeat,
                         timing.seconds > 0 ? ", and more until --seconds have passed)" : ")"))
      ->transform(Integer(1, kMaxRuns));
  command
      .add_option("--seconds", timing.seconds,
                  Concat("the minimum time of the timed runs (default ", timing.seconds,
                         timing.seconds > 0 ? ", and 0 with --repeat)" : ")"))
      ->check(RealNumber(0.01, kMaxSeconds));
}

void EndTiming(const CLI::App& command, Timing* timing) {
  if (command.count("--repeat") > 0 && command.count("--seconds") == 0) timing->seconds = 0;
}

void AddThreadsOption(CLI::App& command, SessionOptions& options) {
  command.add_option("--threads", options.threads, "threads of the runtime (default: all cores)")
      ->transform(Integer(1, kMaxThreads));
}

void AddToleranceOptions(CLI::App& command, Tolerance& tolerance, const std::string& of) {
  command.add_option("--rtol", tolerance.relative, "relative tolerance" + of + " (default 1e-4)")
      ->check(RealNumber(0, kNoLimit));
  command.add_option("--atol", tolerance.absolute, "absolute tolerance" + of + " (default 1e-5)")
      ->check(RealNumber(0, kNoLimit));
}

void AddRunCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "Run a model on images, .npy and .npz files");
  run->add_option("model", options->model, "the ONNX file, or model.ort, model.xml, model.engine")->required();
  AddFiles(*run, options->files, "; of several files each has its run");
  AddInputOptions(*run, options->input);
  run->add_option("-o,--output", options->outputs, "NAME=FILE: the file of an output (.png .jpg .npy .npz)")
      ->take_all()
      ->expected(1);
  AddTargetOptions(*run, options->target);
  AddThreadsOption(*run, options->session);
  AddTimingOptions(*run, options->timing);
  AddIsaOption(*run, options->isa);
  run->add_option(
      "--draw", options->draw,
      "draw the detections of a file of `polyop attach` on its photo (.png .jpg), or on several in a folder");
  run->add_option("--csv", options->csv, "write a table of these detections");
  run->add_option("--names", options->names,
                  "the names of their classes: coco, or a text file with a name in each line");
  AddLibraryOptions(*run, options->session);
  run->add_flag("--json", options->json, "print a report in JSON");
  run->footer(
      kSyntheticInputHelp + std::string("\n\n") +
      "Examples:\n"
      "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,2.5,2.5\n"
      "  polyop run classifier.onnx -i x=photo.jpg --resize 224x224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225\n"
      "  polyop run head.onnx -i inputs.npz -o outputs.npz --threads 2 --repeat 20\n"
      "  polyop run net.onnx -i x=random --shape x=1x3x224x224\n"
      "  polyop run app.onnx photo.jpg --draw found.png --names coco\n"
      "  polyop run app.onnx first.jpg second.jpg --draw found --csv found.csv\n"
      "  polyop run net.onnx x.npy --provider cuda:1 --warmup 5 --repeat 100");
  run->callback([run, options, &action] {
    EndTiming(*run, &options->timing);
    TakeNamed(&options->files, &options->input);
    action = [options] { return Run(*options); };
  });
}

void AddInspectCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = app.add_subcommand("inspect", "Show the operators that a model needs and who provides them");
  inspect->add_option("model", options->model, "the ONNX file")->required();
  inspect->add_flag("-v,--verbose", options->verbose,
                    "also list every node of a non-standard operator and every operator of PyTorch");
  inspect->add_flag("--json", options->json, "print a report in JSON");
  inspect->add_option("--svg", options->svg, "draw the graph to this file; attributes are tooltips");
  inspect->add_option("--html", options->html, "draw the graph as a page with a search field");
  inspect->add_flag("--open", options->open, "show the drawing");
  AddLibraryOptions(*inspect, options->session);
  inspect->footer(
      "Checks the model as a session does: operators, attributes, types, opsets and external data. Ends with exit "
      "code\n"
      "4 if the model needs an operator that nobody provides, and with 3 if it has another fault.");
  inspect->callback([options, &action] { action = [options] { return Inspect(*options); }; });
}

void AddVerifyCommand(CLI::App& app, Action& action, const std::vector<std::string>& words) {
  auto options = std::make_shared<VerifyOptions>();
  options->input.random = true;
  CLI::App* verify = app.add_subcommand("verify", "Compare a model's results with a reference");
  verify->add_option("model", options->model, "the ONNX file")->required();
  AddFiles(*verify, options->files, "; several photos are as those of --images");
  AddInputOptions(*verify, options->input);
  verify
      ->add_option(
          "--against", options->references,
          "FILE: another model (.onnx), a TensorRT engine (.engine), a file of OpenVINO's (.xml), saved outputs (.npz) "
          "or "
          "a program saved by torch.export or torch.jit (.pt2, .pt); or the model itself: kernels: with the operators' "
          "reference kernels, naive and in double precision (default); functions: by its functions, without polyop; "
          "openvino: in OpenVINO in f32; openvino-default: with the precision that OpenVINO chooses; "
          "provider=NAME[:key=value,…]: in an execution provider (see --provider); isa=NAME or threads=N: with another "
          "instruction set or number of threads; onnxruntime=LIBRARY: in another ONNX Runtime. KIND=FILE states a "
          "file's kind: onnx, engine, openvino, npz, torch. May be given several times")
      ->take_all()
      ->expected(1);
  AddProviderOption(*verify, options->provider);
  verify->add_option("--against-provider", options->against_provider,
                     "NAME[:key=value,…]: run the ONNX files of --against in this execution provider (default: the "
                     "CPU's, in this process)");
  AddIsaOption(*verify, options->isa);
  verify->add_flag("--layers", options->layers, "compare the outputs of every node, and name the first that differs");
  verify->add_flag(
      "--bisect", options->bisect,
      "search for the first node whose output differs, also inside of If, Loop, Scan and functions, and write it "
      "with its inputs to a file that shows the difference alone");
  verify->add_option("-o,--output", options->output,
                     "with --bisect: that file (default: MODEL-first.onnx in the current folder)");
  verify->add_option("--report", options->report, "write a page: FILE.html");
  verify
      ->add_option("--images", options->images,
                   "a folder, a file or a pattern of photos: compare the outputs on each, and what detectors find")
      ->take_all()
      ->expected(1);
  verify->add_option("--task", options->task, "detection: the photos of -i, on which both must find something")
      ->check(CLI::IsMember({"detection"}));
  verify->add_option("--truth", options->truth,
                     "with --images: the photos' annotations in COCO's form, a .json file, instead of --against");
  verify->add_option("--match-iou", options->iou, "with --images: the IoU of a match (default 0.5)")
      ->check(RealNumber(0.01, 1));
  verify
      ->add_option(
          "--min-map", options->min_precision,
          "with --images: the smallest mean average precision of success, or mean IoU of maps (default 0.95; with "
          "--truth 0)")
      ->check(RealNumber(0, 1));
  verify->add_option("--draw", options->draw, "with --images: a folder for drawings of the photos that differ most");
  AddToleranceOptions(*verify, options->tolerance, "");
  AddThreadsOption(*verify, options->session);
  AddLibraryOptions(*verify, options->session);
  verify->add_flag("--json", options->json, "print a report in JSON");
  verify->footer(kSyntheticInputHelp + std::string("\n--set and -i give other values.\n\n") +
                 "The exit code is 1 if an output differs.\n\n"
                 "Examples:\n"
                 "  polyop verify head.onnx -i inputs.npz --layers\n"
                 "  polyop verify net.onnx --shape x=1x3x224x224 --against isa=sse4\n"
                 "  polyop verify net.onnx -i x=x.npy --against outputs_of_torch.npz\n"
                 "  polyop verify new.onnx --against old.onnx --bisect\n"
                 "  polyop verify net.onnx --provider webgpu --images photos --report same.html\n"
                 "  polyop verify int8.onnx --against app.onnx --images photos --draw worst\n"
                 "  polyop verify app.onnx --truth instances_val2017.json --images val2017");
  verify->callback([options, &action, &words] {
    options->command = "polyop " + Join(words, " ");
    TakeNamed(&options->files, &options->input);
    action = [options] { return Verify(*options); };
  });
}

void AddBenchCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  options->input.random = true;
  CLI::App* bench = app.add_subcommand("bench", "Time a model and its nodes, or compare it with another model");
  bench->add_option("model", options->model, "the ONNX file, or model.ort, model.xml, model.engine")->required();
  AddFiles(*bench, options->files, "");
  bench->add_option(
      "--against", options->against,
      "another model with the same inputs and outputs; their runs are interleaved, and the results must agree");
  AddInputOptions(*bench, options->input);
  AddTargetOptions(*bench, options->target);
  bench->add_option("--threads", options->threads, "numbers of threads, separated by commas (default 1,2)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(Integer(1, kMaxThreads));
  AddTimingOptions(*bench, options->timing);
  bench->add_flag("--layers", options->layers, "time every node by the runtime's profiler");
  AddIsaOption(*bench, options->isa);
  AddToleranceOptions(*bench, options->tolerance, " of --against");
  AddLibraryOptions(*bench, options->session);
  bench->add_flag("--json", options->json, "print a report in JSON");
  bench->footer(kSyntheticInputHelp + std::string("\n\n") +
                "Examples:\n"
                "  polyop bench net.onnx --shape x=1x3x224x224 --layers\n"
                "  polyop bench srcnn3.onnx --against srcnn2.onnx --shape input=1x3x360x640 --set factor=1,1,3,3");
  bench->callback([bench, options, &action] {
    EndTiming(*bench, &options->timing);
    TakeNamed(&options->files, &options->input);
    action = [options] { return Bench(*options); };
  });
}

// Returns the commands with their summaries.
std::vector<CommandSummary> CommandsOf(const CLI::App& app) {
  std::vector<CommandSummary> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.push_back({command->get_name(), command->get_description()});
  }
  return commands;
}

// Lists the commands that run in Python in `polyop --help`. They are never parsed here.
void AddPythonCommands(CLI::App& app) {
  for (const PythonCommand& command : PythonCommands()) app.add_subcommand(command.name, command.summary);
}

bool IsPythonCommand(std::string_view name) {
  const std::span<const PythonCommand> commands = PythonCommands();
  return std::any_of(commands.begin(), commands.end(), [&](const PythonCommand& c) { return name == c.name; });
}

void AddOpsCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand("ops", "List polyop's operators, or explain one");
  ops->add_option("name", options->name, "a folder's name (roi_align) or a node's (mmcv::MMCVRoiAlign)");
  ops->add_option("--search", options->search, "only operators whose names or description have these words");
  ops->add_flag("--long", options->all, "node names, types, runtimes and gradients of all");
  ops->add_flag("--markdown", options->markdown, "as Markdown");
  ops->add_flag("--json", options->json, "for machines");
  ops->callback([options, &action] { action = [options] { return Ops(*options); }; });
}

void AddNewCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* command =
      app.add_subcommand("new", "Write the folder of a new operator, ready to build, or a project for one");
  command->add_option("name", options->name, "in lower_case_words: the folder's name, and in PyTorch")->required();
  command->add_flag("--project", options->project,
                    "a project of that name: a Python package of operators, with one of them");
  command->add_option("--operator", options->op, "the name of the project's operator")->capture_default_str();
  command->add_flag("--gradient", options->gradient,
                    "also its gradient: kernels, reference, test, and a formula for PyTorch");
  command->add_option("--node", options->node,
                      "the ONNX node, DOMAIN::TYPE (default: PROJECT::LowerCaseWords, or custom::LowerCaseWords)");
  command->add_option("--into", options->into,
                      "the parent folder: a folder called ops (default: ops), or a folder of it; for a project, any "
                      "(default: here)");
  command->footer(
      "Writes the definition, the kernels for CPUs and GPUs, the naive reference and the test. A project also has a\n"
      "pyproject.toml and a CMakeLists.txt: `pip install .` builds it with the SDK of polyop's wheel.\n"
      "With --gradient, the operator trains in PyTorch.\n\n"
      "Examples:\n"
      "  polyop new my_ops --project\n"
      "  polyop new soft_clip --gradient\n"
      "  polyop new hard_swish --into more/ops --node mine::HardSwish");
  command->callback([options, &action] { action = [options] { return New(*options); }; });
}

void AddSdkCommands(CLI::App& app, Action& action) {
  auto options = std::make_shared<TestOptions>();
  CLI::App* test = app.add_subcommand("test", "Build and run the tests of a project's operators");
  test->add_option("project", options->project, "the folder of its CMakeLists.txt")->capture_default_str();
  test->add_option("--build", options->build, "the build tree (default: build/polyop-test of the project)");
  test->add_option("--only", options->only, "a regular expression: tests whose names match");
  test->footer(
      "Runs each operator's test, which compares its kernels on every instruction set, and the CUDA kernel's source "
      "on\n"
      "the CPU, with the reference; and random calls that follow the definitions (robustness_test). It needs cmake,\n"
      "and uses ninja if it is installed.");
  test->callback([options, &action] { action = [options] { return Test(*options); }; });
  CLI::App* where = app.add_subcommand("cmake-dir", "Print the folder in which find_package(polyop) finds the SDK");
  where->footer("  cmake -S . -B build -Dpolyop_DIR=$(polyop cmake-dir)");
  where->callback([&action] { action = CmakeDir; });
}

void AddShellCommands(CLI::App& app, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "Print a script that completes commands in a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "Examples:\n"
      "  source <(polyop completion bash)        in ~/.bashrc; zsh alike\n"
      "  polyop completion fish | source         in ~/.config/fish/config.fish");
  completion->callback([shell, &app, &action] {
    action = [shell, &app] {
      std::cout << CompletionScript(*shell, CommandsOf(app));
      return kOk;
    };
  });
  const auto name = std::make_shared<std::string>();
  CLI::App* man = app.add_subcommand("man", "Print a manual page, for `man -l -`");
  man->add_option("command", *name, "a command (default: polyop itself)");
  man->footer("Examples:\n  polyop man run | man -l -\n  polyop man > /usr/local/share/man/man1/polyop.1");
  man->callback([name, &app, &action] {
    action = [name, &app] {
      std::cout << ManualPage(CommandsOf(app), *name);
      return kOk;
    };
  });
  // Parsed in main(), because it takes the name of any command.
  app.add_subcommand("help", "Explain a command, as `polyop COMMAND --help` does")
      ->add_option("command", *name, "a command (default: polyop itself)");
}

// Names that options had, and names that they have in other programs. polyop._commands.arguments has those of Python.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"--device", "--provider"}, {"--iou", "--match-iou"}, {"--reference", "--against"},
    {"--runs", "--repeat"},     {"--shapes", "--shape"},
};

// Replaces the other names of options that the command has, unless it has an option of that name, too.
void ReplaceOtherNames(const CLI::App& app, std::vector<std::string>* words) {
  const std::vector<const CLI::App*> found =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == words->front(); });
  if (found.empty()) return;
  const auto has = [&](std::string_view name) { return found[0]->get_option_no_throw(std::string(name)) != nullptr; };
  for (std::string& word : *words) {
    if (word == "--") return;
    const std::string name = word.substr(0, word.find('='));
    for (const auto& [other, own] : kOtherNames) {
      if (name == other && !has(other) && has(own)) word.replace(0, name.size(), own);
    }
  }
}

// Throws Failure that names a misspelt command or option. CLI11's own message misleads: "a subcommand is required".
void CheckWords(const CLI::App& app, const std::vector<std::string>& words) {
  const auto refuse = [](const std::string& owner, const char* kind, const std::string& word,
                         const std::vector<std::string>& known) {
    const std::string near = Nearest(word, known);
    throw Failure(kUsage, owner + " has no " + kind + " '" + word + "'",
                  (near.empty() ? "" : "did you mean '" + near + "'? ") + ("`" + owner + " --help` lists all"));
  };
  const CLI::App* command = &app;
  std::string owner = "polyop";
  size_t at = 0;
  if (!words.empty() && !words[0].starts_with("-")) {
    std::vector<std::string> names;
    for (const CLI::App* known : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(known->get_name());
      if (known->get_name() == words[0]) command = known;
    }
    if (command == &app) refuse(owner, "command", words[0], names);
    owner += " " + words[0];
    at = 1;
  }
  for (; at < words.size() && words[at] != "--"; ++at) {
    const std::string& word = words[at];
    const bool dashes = word.starts_with("--");
    if (!dashes && !(word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])))) continue;
    const std::string option = dashes ? word.substr(0, word.find('=')) : word.substr(0, 2);
    if (command->get_option_no_throw(option) != nullptr) continue;
    std::vector<std::string> names;
    for (const CLI::Option* known : command->get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
    refuse(owner, "option", option, names);
  }
}

}  // namespace
}  // namespace polyop::cli

int main(int argc, char** argv) {
  using namespace polyop::cli;
  polyop::PrepareTerminal();
  EscapeOutput();
  SetProgramName(argc > 0 ? argv[0] : nullptr);
  CLI::App app{kDescription, "polyop"};
  app.set_version_flag("--version", std::string("polyop ") + POLYOP_VERSION);
  app.add_flag_callback(
      "--licenses",
      [] {
        std::cout << kLicenses;
        throw CLI::Success();
      },
      "the licences of the code that is linked into the program and the libraries");
  app.require_subcommand(1);
  app.footer(kFooter);
  Action action;
  AddRunCommand(app, action);
  AddInspectCommand(app, action);
  std::vector<std::string> words(argv + 1, argv + argc);
  AddVerifyCommand(app, action, words);
  AddBenchCommand(app, action);
  AddPythonCommands(app);
  AddOpsCommand(app, action);
  AddNewCommand(app, action);
  AddSdkCommands(app, action);
  AddShellCommands(app, action);
  if (argc == 1) {
    std::cout << app.help();
    return kUsage;
  }
  if (words[0] == "help" && words.size() <= 2) {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  try {
    Check(polyop::CheckKernelRequest(), kUsage);
    if (IsPythonCommand(words[0])) HandOver(words);
    ReplaceOtherNames(app, &words);
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // CLI11 takes words from the end
    return action();
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    try {
      CheckWords(app, words);
    } catch (const Failure& better) {
      return Report(better.what(), better.hint(), better.code());
    }
    const std::string command = words[0].starts_with("-") ? "polyop" : "polyop " + words[0];
    return Report(e.what(), "see `" + command + " --help`", kUsage);
  } catch (const Failure& e) {
    return Report(e.what(), e.hint(), e.code());
  } catch (const std::bad_alloc&) {
    return Report("out of memory", "", kFailed);
  } catch (const std::exception& e) {
    return Report(e.what(), "", kFailed);
  }
}
