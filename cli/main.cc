// polyop: runs, inspects, converts and explains ONNX models with custom operators, and starts new ones. This is the
// command line; it is all of it, because what reads it takes long to compile.
#include <cctype>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "CLI/CLI.hpp"
#include "cli/base/failure.h"
#include "cli/base/number.h"
#include "cli/base/text.h"
#include "cli/commands.h"
#include "cli/licenses.h"
#include "kernels/cpu/simd.h"

namespace polyop::cli {
namespace {

// What a parsed command does; returns the exit code.
using Action = std::function<int()>;

constexpr const char* kDescription =
    "polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime, TensorRT and OpenVINO.";
constexpr const char* kFooter =
    "Examples:\n"
    "  polyop inspect model.onnx                      what the model needs, and who provides it\n"
    "  polyop inspect model.onnx --html model.html    a picture of the graph\n"
    "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,3,3\n"
    "  polyop run model.onnx -i x=x.npy -o y=y.npy --threads 2 --repeat 20\n"
    "  polyop verify model.onnx -i x=x.npy --layers   against the naive kernels, node by node\n"
    "  polyop bench model.onnx --layers               how long it takes, and which nodes take it\n"
    "  polyop batch model.onnx -i 'photos/*.jpg' -o out    a folder of files, on all cores or on a cluster\n"
    "  polyop triton model.onnx -o repository         for Triton Inference Server\n"
    "  polyop optimize model.onnx -o fast.onnx        what polyop does faster becomes its nodes\n"
    "  polyop convert model.onnx -o model.engine      a TensorRT engine\n"
    "  polyop portable old.onnx -o new.onnx           a file that runs where polyop is not, too\n"
    "  polyop ops roi_align                           one operator: shapes, attributes, semantics\n"
    "  polyop new my_ops --project                    a project for operators of one's own\n"
    "  polyop test                                    builds and tests such a project's operators\n"
    "\n"
    "Exit codes:\n"
    "  0  done                                  3  a file is missing, damaged or of the wrong kind\n"
    "  1  the model failed, or departs          4  the model needs operators that nobody provides\n"
    "  2  the command line is wrong             5  ONNX Runtime is missing or too old";

int Report(const std::string& message, const std::string& hint, int code) {
  const bool colors = ColorsOnStderr();
  std::cerr << (colors ? "\033[1;31m" : "") << "polyop: error: " << (colors ? "\033[0m" : "") << message << "\n";
  if (!hint.empty()) std::cerr << "  hint: " << hint << "\n";
  return code;
}

// Numbers are checked as they were typed: CLI11 takes nan for a number of any range, 0x10 for 16 and 010 for 8.
CLI::Validator WholeNumber(int64_t least, int64_t most) {
  const std::string range = Concat("[", least, " - ", most, "]");
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<int64_t> value = ParseInteger(text);
        if (!value || *value < least || *value > most) return "'" + text + "' is no whole number in " + range;
        text = std::to_string(*value);
        return "";
      },
      "INT in " + range);
}

CLI::Validator RealNumber(double least, double most) {
  const std::string range = std::isfinite(most) ? Concat("[", least, " - ", most, "]") : "[0 - …]";
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        const std::optional<double> value = ParseReal(text);
        const bool good = value && std::isfinite(*value) && *value >= least && *value <= most;
        return good ? "" : "'" + text + "' is no number in " + range;
      },
      "FLOAT in " + range);
}

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

void AddPictureOptions(CLI::App& command, InputOptions& options) {
  command.add_option("--layout", options.layout, "pictures as NCHW or NHWC (default: from the model)")
      ->check(CLI::IsMember({"NCHW", "NHWC"}));
  command.add_option("--range", options.range,
                     "BLACK,WHITE: values of pictures (default: the model's, else 0,1 or 0,255 for uint8)");
  command.add_option("--color", options.color, "RGB, BGR or GRAY (default: from the model)")
      ->check(CLI::IsMember({"RGB", "BGR", "GRAY"}));
}

void AddInputOptions(CLI::App& command, InputOptions& options) {
  command
      .add_option("-i,--input", options.inputs,
                  "NAME=FILE: a picture (.png .jpg), .npy or .npz; or NAME=random, NAME=zeros")
      ->take_all()
      ->expected(1);
  command.add_option("--set", options.sets, "NAME=V,V,…: an input from numbers")->take_all()->expected(1);
  command.add_option("--shape", options.shapes, "NAME=1x3x224x224: the shape of a `random` or `zeros` input")
      ->take_all()
      ->expected(1);
  AddPictureOptions(command, options);
}

void AddLibraryOptions(CLI::App& command, SessionOptions& options) {
  command.add_option("--ops", options.libraries, "a further library of custom operators")->take_all()->expected(1);
  command.add_option("--onnxruntime", options.onnxruntime, "path of libonnxruntime.so (default: looked for)");
  command.add_flag("--accelerate", options.accelerate,
                   "polyop's kernels in the place of ONNX Runtime's own (RoiAlign, GridSample, …)");
}

void AddRuntimeOption(CLI::App& command, std::string& runtime) {
  command.add_option("--runtime", runtime, "onnxruntime (default) or openvino, in the PATH's python3")
      ->check(CLI::IsMember({"onnxruntime", "openvino"}));
}

void AddThreadsOption(CLI::App& command, SessionOptions& options) {
  command.add_option("--threads", options.threads, "threads of the runtime (default: all cores)")
      ->transform(WholeNumber(1, kMaxThreads));
}

void AddToleranceOptions(CLI::App& command, Tolerance& tolerance, const std::string& of) {
  command.add_option("--rtol", tolerance.relative, "relative tolerance" + of + " (default 1e-4)")
      ->check(RealNumber(0, kNoLimit));
  command.add_option("--atol", tolerance.absolute, "absolute tolerance" + of + " (default 1e-5)")
      ->check(RealNumber(0, kNoLimit));
}

void AddRunCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "Run a model on pictures, .npy and .npz files");
  run->add_option("model", options->model, "the ONNX file")->required();
  AddInputOptions(*run, options->input);
  run->add_option("-o,--output", options->outputs, "NAME=FILE: where an output goes (.png .jpg .npy .npz)")
      ->take_all()
      ->expected(1);
  AddRuntimeOption(*run, options->runtime);
  AddThreadsOption(*run, options->session);
  run->add_option("--repeat", options->repeat, "run so often and report minimum and median")
      ->transform(WholeNumber(1, 1000000));
  run->add_option(
      "--isa", options->isa, "force an instruction set: " + [] {
        std::vector<std::string> names(AvailableIsas().begin(), AvailableIsas().end());
        return Join(names, ", ");
      }());
  AddLibraryOptions(*run, options->session);
  run->add_flag("--json", options->json, "a report for machines");
  run->footer(kMadeUpHelp + std::string("\n\n") +
              "Examples:\n"
              "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,2.5,2.5\n"
              "  polyop run head.onnx -i inputs.npz -o outputs.npz --threads 2 --repeat 20\n"
              "  polyop run net.onnx -i x=random --shape x=1x3x224x224");
  run->callback([options, &action] { action = [options] { return Run(*options); }; });
}

void AddInspectCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = app.add_subcommand("inspect", "Show what a model needs and who provides it");
  inspect->add_option("model", options->model, "the ONNX file; its external data is not read")->required();
  inspect->add_flag("-v,--verbose", options->verbose, "also list every node of a non-standard operator");
  inspect->add_flag("--json", options->json, "a report for machines");
  inspect->add_option("--svg", options->svg, "draw the graph to this file; attributes are seen on hover");
  inspect->add_option("--html", options->html, "the same as a page with a field to find nodes");
  inspect->footer("Ends with exit code 4 if the model needs an operator that nobody provides.");
  inspect->callback([options, &action] { action = [options] { return Inspect(*options); }; });
}

void AddVerifyCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  options->input.random = true;
  CLI::App* verify = app.add_subcommand("verify", "Compare a model's results with a reference");
  verify->add_option("model", options->model, "the ONNX file")->required();
  AddInputOptions(*verify, options->input);
  verify->add_option(
      "--reference", options->reference,
      "kernels: the operators' naive double-precision kernels (default); functions: the model's own, by which "
      "it runs where polyop is not; isa=NAME or threads=N: the same kernels run otherwise; npz=FILE: "
      "saved outputs; onnx=FILE: another model; onnxruntime=LIBRARY: another ONNX Runtime; engine=FILE: "
      "a TensorRT engine; openvino or openvino=FILE: the model in OpenVINO, or a file of OpenVINO's; torch=FILE: a "
      "program saved by torch.export or torch.jit");
  verify->add_flag("--layers", options->layers, "compare the outputs of every node, and name the first that departs");
  AddToleranceOptions(*verify, options->tolerance, "");
  AddThreadsOption(*verify, options->session);
  AddLibraryOptions(*verify, options->session);
  verify->add_flag("--json", options->json, "a report for machines");
  verify->footer(kMadeUpHelp + std::string("\n--set and -i say otherwise.\n\n") +
                 "The exit code is 1 where something departs.\n\n"
                 "Examples:\n"
                 "  polyop verify head.onnx -i inputs.npz --layers\n"
                 "  polyop verify net.onnx --shape x=1x3x224x224 --reference isa=sse4\n"
                 "  polyop verify net.onnx -i x=x.npy --reference npz=outputs_of_torch.npz\n"
                 "  polyop verify new.onnx --reference onnx=old.onnx");
  verify->callback([options, &action] { action = [options] { return Verify(*options); }; });
}

void AddBenchCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  options->input.random = true;
  CLI::App* bench = app.add_subcommand("bench", "Time a model, its nodes, and another model beside it");
  bench->add_option("model", options->model, "the ONNX file")->required();
  bench->add_option("--against", options->against,
                    "another model of the same inputs and outputs, timed in turns with the first; they must agree");
  AddInputOptions(*bench, options->input);
  AddRuntimeOption(*bench, options->runtime);
  bench->add_option("--threads", options->threads, "numbers of threads, separated by commas (default 1,2)")
      ->delimiter(',')
      ->transform(WholeNumber(1, kMaxThreads));
  bench->add_option("--seconds", options->seconds, "how long each is run at least (default 2)")
      ->check(RealNumber(0.01, 3600));
  bench->add_flag("--layers", options->layers, "the time of every node, by the runtime's profiler");
  bench->add_option("--isa", options->isa, "force an instruction set");
  AddToleranceOptions(*bench, options->tolerance, " of --against");
  AddLibraryOptions(*bench, options->session);
  bench->add_flag("--json", options->json, "a report for machines");
  bench->footer(kMadeUpHelp + std::string("\n\n") +
                "Examples:\n"
                "  polyop bench net.onnx --shape x=1x3x224x224 --layers\n"
                "  polyop bench srcnn3.onnx --against srcnn2.onnx --shape input=1x3x360x640 --set factor=1,1,3,3");
  bench->callback([options, &action] { action = [options] { return Bench(*options); }; });
}

void AddBatchCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<BatchOptions>();
  CLI::App* batch = app.add_subcommand("batch", "Run a model on many files, on all cores or on a Ray cluster");
  batch->add_option("model", options->model, "the ONNX file")->required();
  batch
      ->add_option(
          "-i,--input", options->input.inputs,
          "NAME=PATTERN: files, a folder, or a quoted pattern such as 'photos/**/*.jpg': pictures, .npy, .npz, "
          ".bin (points), .tar (WebDataset), .parquet; of a second input one file, for all")
      ->required()
      ->take_all()
      ->expected(1);
  batch->add_option("-o,--output", options->output, "the folder of results, one file for each")->required();
  batch->add_option("--set", options->input.sets, "NAME=V,V,…: an input from numbers, for all files")
      ->take_all()
      ->expected(1);
  batch->add_option("--keep", options->outputs, "the name of an output that is written (default: all)")
      ->take_all()
      ->expected(1);
  batch->add_option("--format", options->format, "of results: npz (default), or of one output npy, png or jpg")
      ->check(CLI::IsMember({"npz", "npy", "png", "jpg"}));
  batch
      ->add_option("--batch", options->batch,
                   "the most samples of one run, where the model's first dimension is open (default: 8)")
      ->transform(WholeNumber(1, 65536));
  batch
      ->add_option("--threads", options->session.threads,
                   "threads of one run; as many runs go at once as there are cores for (default 1)")
      ->transform(WholeNumber(1, kMaxThreads));
  batch->add_flag("--strict", options->strict, "end at the first file that fails, instead of leaving it out");
  AddPictureOptions(*batch, options->input);
  batch->add_option("--ops", options->session.libraries, "a further library of custom operators")
      ->take_all()
      ->expected(1);
  batch->add_flag("--accelerate", options->session.accelerate,
                  "polyop's kernels in the place of ONNX Runtime's own (RoiAlign, GridSample, …)");
  CLI::Option* ray =
      batch->add_option("--ray", options->address, "run on the Ray cluster of this address; alone: on this machine")
          ->expected(0, 1)
          ->type_name("[ADDRESS]");
  batch->add_option("--workers", options->workers, "processes of the cluster that run the model (default: all cores)")
      ->needs(ray)
      ->transform(WholeNumber(1, 65536));
  batch->add_option("--worker-cpus", options->processors, "cores of a worker (default 1)")
      ->needs(ray)
      ->transform(WholeNumber(1, kMaxThreads));
  batch->add_option("--worker-gpus", options->gpus, "GPUs of a worker (default 0)")
      ->needs(ray)
      ->check(RealNumber(0, 64));
  batch->add_flag("--json", options->json, "a report for machines");
  batch->footer(
      "The same command again goes on where it was stopped: what has a newer result is not run again, and no result "
      "is\n"
      "half-written. Files that fail are reported; then the exit code is 1. It needs a python3 on the PATH that has\n"
      "polyop (pip install 'polyop[batch]', for --ray 'polyop[batch,ray]').\n\n"
      "Examples:\n"
      "  polyop batch srcnn3.onnx -i 'input=photos/**/*.jpg' -o large --format png --set factor=1,1,2,2\n"
      "  polyop batch detector.onnx -i sweeps -o found --threads 2\n"
      "  polyop batch net.onnx -i 'shards/*.tar' -o out --ray 10.0.0.1:6379 --worker-cpus 4");
  batch->callback([options, ray, &action] {
    options->ray = ray->count() > 0;
    action = [options] { return Batch(*options); };
  });
}

void AddTritonCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<TritonOptions>();
  CLI::App* triton = app.add_subcommand("triton", "Write a model repository for Triton Inference Server");
  triton->add_option("model", options->model, "an ONNX file, or a TensorRT engine of `polyop convert`")->required();
  triton->add_option("-o,--output", options->repository, "the repository's folder; other models stay in it")
      ->required();
  triton->add_option("--name", options->name, "of the model (default: the file's)");
  triton
      ->add_option(
          "--backend", options->backend,
          "onnxruntime (default), or python: Triton's Python backend with the package polyop; engines: tensorrt")
      ->check(CLI::IsMember({"onnxruntime", "python"}));
  triton->add_option("--set", options->sets, "NAME=V,V,…: an input that gets these values for good")
      ->take_all()
      ->expected(1);
  triton->add_option("--ops", options->libraries, "a further library of custom operators")->take_all()->expected(1);
  triton
      ->add_option("--max-batch", options->largest_batch,
                   "the most requests that are run together, where the model's first dimension is open (default 8)")
      ->transform(WholeNumber(1, 65536));
  triton->add_option("--delay", options->delay, "microseconds that a request waits for others (default 1000)")
      ->transform(WholeNumber(0, 10000000));
  triton->add_option("--instances", options->instances, "how many run at the same time (default 1)")
      ->transform(WholeNumber(1, 1024));
  triton->add_option("--threads", options->threads, "threads of one instance (default: all cores)")
      ->transform(WholeNumber(1, kMaxThreads));
  triton->add_flag("--gpu", options->gpu, "instances on GPUs, one for each");
  triton->add_option("--at", options->at, "where the server sees the repository (default: where it lies)");
  triton->add_flag("--json", options->json, "a report for machines");
  triton->footer(
      "It needs a python3 on the PATH that has polyop, onnx and onnxruntime (pip install 'polyop[batch]').\n\n"
      "Examples:\n"
      "  polyop triton srcnn.onnx -o repository --max-batch 16 --at /models\n"
      "  polyop triton srcnn3.onnx -o repository --backend python --set factor=1,1,2,2");
  triton->callback([options, &action] { action = [options] { return Triton(*options); }; });
}

void AddOptimizeCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<OptimizeOptions>();
  options->input.random = true;
  CLI::App* optimize = app.add_subcommand("optimize", "Replace what polyop computes faster in a model");
  optimize->add_option("model", options->model, "the ONNX file, of standard operators")->required();
  optimize->add_option("-o,--output", options->output, "where the faster model goes")->required();
  AddInputOptions(*optimize, options->input);
  optimize->add_flag("--measure", options->measure, "also time every replacement, and the model before and after");
  optimize->add_flag("--all", options->all, "also replace what is too small to gain");
  optimize->add_flag("--allow-fix", options->allow_fix,
                     "also replace where ONNX Runtime computes something else than the standard says");
  optimize
      ->add_option("--tolerance", options->tolerance,
                   "how far an output may depart, in proportion to its largest value (default 1e-3)")
      ->check(RealNumber(0, kNoLimit));
  AddThreadsOption(*optimize, options->session);
  AddLibraryOptions(*optimize, options->session);
  optimize->add_flag("--json", options->json, "a report for machines");
  optimize->footer(
      "Every replacement is compared with the nodes that it replaces, and the model with the original; what differs\n"
      "stays as it was. Inputs are made up unless -i, --set or --shape say otherwise. A model in which nothing is\n"
      "replaced is copied as it is. It needs a python3 on the PATH that has polyop, onnx, onnx-ir and onnxruntime.\n\n"
      "Examples:\n"
      "  polyop optimize detr.onnx -o fast.onnx --measure\n"
      "  polyop optimize net.onnx -o fast.onnx --shape x=1x3x640x640 --threads 2\n"
      "  polyop bench net.onnx --against fast.onnx");
  optimize->callback([options, &action] { action = [options] { return Optimize(*options); }; });
}

void AddConvertCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* convert = app.add_subcommand("convert", "Build a TensorRT engine from a model, or write it for OpenVINO");
  convert->add_option("model", options->model, "an ONNX file")->required();
  convert->add_option("-o,--output", options->engine, "where it goes: model.engine, or model.xml")->required();
  convert->add_option("--to", options->runtime, "tensorrt (default) or openvino: a .xml and a .bin file")
      ->check(CLI::IsMember({"tensorrt", "openvino"}));
  convert
      ->add_option("--shapes", options->shapes,
                   "NAME=LEAST:USUAL:LARGEST, as in x=1x3x64x64:1x3x512x512:4x3x1024x1024; or one shape for all three "
                   "(default: the model's, where all but the first extent are fixed; that is then 1 to 8)")
      ->take_all()
      ->expected(1);
  convert->add_option("--set", options->sets, "NAME=V,V,…: an input that gets these values for good, such as scales")
      ->take_all()
      ->expected(1);
  convert->add_flag("--fp16", options->fp16,
                    "compute in half precision (OpenVINO: weights); inputs and outputs stay as they are");
  convert->add_option("--workspace", options->workspace, "MiB of GPU memory that layers may use (default: no limit)")
      ->transform(WholeNumber(1, 1 << 20));
  convert->add_option("--plugins", options->plugins, "a further plugin library")->take_all()->expected(1);
  convert->add_option("--timing-cache", options->timing_cache, "a file of measurements, read and written");
  convert->add_flag("--layers", options->layers, "the layers that TensorRT made of the model");
  convert->add_flag("--verbose", options->verbose, "all that TensorRT says");
  convert->add_flag("--json", options->json, "a report for machines");
  convert->footer(
      "Building needs a python3 on the PATH that has polyop and tensorrt or tensorrt-rtx; TensorRT-RTX builds\n"
      "without a GPU too. A file MODEL.engine.json says what the engine needs. `polyop run` runs it,\n"
      "`polyop verify MODEL.onnx --reference engine=MODEL.engine` compares the two.\n\n"
      "Examples:\n"
      "  polyop convert detector.onnx -o detector.engine --fp16\n"
      "  polyop convert srcnn3.onnx -o srcnn3.engine --set factor=1,1,3,3 --shapes "
      "input=1x3x64x64:1x3x256x256:1x3x512x512\n"
      "  polyop convert detector.onnx -o detector.xml --to openvino");
  convert->callback([options, &action] { action = [options] { return Convert(*options); }; });
}

void AddPortableCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<PortableOptions>();
  CLI::App* portable = app.add_subcommand("portable", "Give polyop's nodes functions of standard operators");
  portable->add_option("model", options->model, "an ONNX file, of whichever exporter")->required();
  portable->add_option("-o,--output", options->output, "where the portable file goes")->required();
  portable->add_flag("--inline", options->inlined,
                     "put the functions' nodes in the place of polyop's: for runtimes that know no functions");
  portable->add_option("--only", options->only, "DOMAIN::TYPE: of these nodes alone, separated by commas")
      ->delimiter(',');
  portable->add_flag("--json", options->json, "a report for machines");
  portable->footer(
      "A node that has a function runs in any ONNX Runtime, by the function where polyop's library is not\n"
      "registered and by polyop's kernel where it is. Making functions needs a python3 on the PATH that has polyop,\n"
      "onnx, onnx_ir and torch. `polyop ops NAME` says which operators have none, and why. The exit code is 4 where a\n"
      "node got none; the file is written all the same.\n\n"
      "Examples:\n"
      "  polyop portable old.onnx -o new.onnx\n"
      "  polyop portable old.onnx -o plain.onnx --inline\n"
      "  polyop verify new.onnx --reference functions");
  portable->callback([options, &action] { action = [options] { return Portable(*options); }; });
}

void AddOpsCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand("ops", "List polyop's operators, or explain one");
  ops->add_option("name", options->name, "a folder's name (roi_align) or a node's (mmcv::MMCVRoiAlign)");
  ops->add_flag("--markdown", options->markdown, "as Markdown");
  ops->add_flag("--json", options->json, "for machines");
  ops->callback([options, &action] { action = [options] { return Ops(*options); }; });
}

void AddNewCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<NewOptions>();
  CLI::App* made =
      app.add_subcommand("new", "Write the folder of a new operator, ready to build, or a project for one");
  made->add_option("name", options->name, "in lower_case_words: the folder's name, and in PyTorch")->required();
  made->add_flag("--project", options->project,
                 "a project of that name: a Python package of operators, with one of them");
  made->add_option("--operator", options->op, "the name of the project's operator")->capture_default_str();
  made->add_option("--node", options->node,
                   "the ONNX node, DOMAIN::TYPE (default: LowerCaseWords of the project's domain, else of custom)");
  made->add_option("--into", options->into,
                   "where the folder goes: a folder called ops (default: ops); of a project, any (default: here)");
  made->footer(
      "Writes the definition, the kernels for CPUs and GPUs, the naive reference and the test. A project has a\n"
      "pyproject.toml and a CMakeLists.txt too: `pip install .` builds it with what polyop's own wheel brings "
      "along.\n\n"
      "Examples:\n"
      "  polyop new my_ops --project\n"
      "  polyop new hard_swish --into more/ops --node mine::HardSwish");
  made->callback([options, &action] { action = [options] { return New(*options); }; });
}

void AddSdkCommands(CLI::App& app, Action& action) {
  auto options = std::make_shared<TestOptions>();
  CLI::App* test = app.add_subcommand("test", "Build and run the tests of a project's operators");
  test->add_option("project", options->project, "the folder of its CMakeLists.txt")->capture_default_str();
  test->add_option("--build", options->build, "the build tree (default: build/polyop-test of the project)");
  test->add_option("--only", options->only, "a regular expression: tests whose names match");
  test->footer(
      "Each operator's test, which holds kernels on every instruction set and the CUDA kernel's source, run on the "
      "CPU,\n"
      "against the reference; and random calls made from the definitions (robustness_test). It needs cmake, and takes\n"
      "ninja where it is.");
  test->callback([options, &action] { action = [options] { return Test(*options); }; });
  CLI::App* where = app.add_subcommand("cmake-dir", "Print where find_package(polyop) finds the SDK");
  where->footer("  cmake -S . -B build -Dpolyop_DIR=$(polyop cmake-dir)");
  where->callback([&action] { action = CmakeDir; });
}

// A misspelt command or option by its name, for what CLI11 says of them misleads: "a subcommand is required".
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
  CLI::App app{kDescription, "polyop"};
  app.set_version_flag("--version", std::string("polyop ") + POLYOP_VERSION);
  app.add_flag_callback(
      "--licenses",
      [] {
        std::cout << kLicenses;
        throw CLI::Success();
      },
      "the licences of what is linked into the program and the libraries");
  app.require_subcommand(1);
  app.footer(kFooter);
  Action action;
  AddRunCommand(app, action);
  AddInspectCommand(app, action);
  AddVerifyCommand(app, action);
  AddBenchCommand(app, action);
  AddBatchCommand(app, action);
  AddTritonCommand(app, action);
  AddOptimizeCommand(app, action);
  AddConvertCommand(app, action);
  AddPortableCommand(app, action);
  AddOpsCommand(app, action);
  AddNewCommand(app, action);
  AddSdkCommands(app, action);
  if (argc == 1) {
    std::cout << app.help();
    return kUsage;
  }
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    try {
      CheckWords(app, {argv + 1, argv + argc});
    } catch (const Failure& better) {
      return Report(better.what(), better.hint(), better.code());
    }
    return Report(e.what(), "see `polyop --help`, or --help after a command", kUsage);
  } catch (const Failure& e) {
    return Report(e.what(), e.hint(), e.code());
  } catch (const std::bad_alloc&) {
    return Report("out of memory", "", kFailed);
  } catch (const std::exception& e) {
    return Report(e.what(), "", kFailed);
  }
}
