// polyop run: a model on files.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/file.h"
#include "cli/image.h"
#include "cli/model.h"
#include "cli/npy.h"
#include "cli/progress.h"
#include "cli/runtime.h"
#include "cli/text.h"
#include "core/simd.h"
#include "nlohmann/json.hpp"

namespace polyop::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
  std::string model;
  std::vector<std::string> inputs, outputs, sets, shapes;
  std::string layout, range, color, isa;
  SessionOptions session;
  int repeat = 1;
  bool json = false;
};

struct Named {
  std::string name, value;
};

// "name=value"; without a name the value alone.
Named Split(const std::string& text) {
  const size_t equals = text.find('=');
  return equals == std::string::npos ? Named{"", text} : Named{text.substr(0, equals), text.substr(equals + 1)};
}

std::vector<double> Numbers(const std::string& text, char separator, const std::string& option) {
  std::vector<double> numbers;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    size_t used = 0;
    try {
      numbers.push_back(std::stod(part, &used));
    } catch (const std::exception&) {
      used = std::string::npos;
    }
    if (used != part.size()) throw Failure(kUsage, option + ": '" + part + "' is not a number");
  }
  return numbers;
}

// The tensor of that name; an error lists what there is.
size_t IndexOf(const std::vector<TensorInfo>& tensors, const std::string& name, const char* what) {
  std::vector<std::string> names, texts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
    names.push_back(tensors[i].name);
    texts.push_back(tensors[i].name + ": " + tensors[i].Text());
  }
  const std::string near = Nearest(name, names);
  throw Failure(kUsage, std::string("the model has no ") + what + " '" + name + "'",
                (near.empty() ? "" : "did you mean '" + near + "'? ") + ("its " + std::string(what) + "s are ") +
                    Join(texts, ", "));
}

bool IsPicture(const std::string& path) {
  const std::string e = Extension(path);
  return e == ".png" || e == ".jpg" || e == ".jpeg";
}

void ApplyText(const std::string& layout, const std::string& range, const std::string& color, ImageFormat* format) {
  if (!layout.empty()) format->layout = layout == "NHWC" ? ImageFormat::Layout::kNhwc : ImageFormat::Layout::kNchw;
  if (!color.empty()) {
    format->color = color == "BGR"    ? ImageFormat::Color::kBgr
                    : color == "GRAY" ? ImageFormat::Color::kGray
                                      : ImageFormat::Color::kRgb;
  }
  if (!range.empty()) {
    const std::vector<double> ends = Numbers(range, ',', "--range");
    if (ends.size() != 2 || ends[0] == ends[1])
      throw Failure(kUsage, "--range: wanted BLACK,WHITE, such as 0,1 or -1,1 or 0,255");
    format->low = ends[0];
    format->high = ends[1];
  }
}

// How a tensor holds a picture: the options, else the model's metadata, else its shape and type.
ImageFormat FormatOf(const TensorInfo& tensor, const onnx::ModelProto& model, const RunOptions& options) {
  ImageFormat format;
  const auto extent = [&](size_t from_end) {
    return tensor.shape.size() >= from_end ? tensor.shape[tensor.shape.size() - from_end] : -1;
  };
  const auto is_channels = [](int64_t e) { return e == 1 || e == 3; };
  if (is_channels(extent(1)) && !is_channels(extent(3))) format.layout = ImageFormat::Layout::kNhwc;
  if (extent(format.layout == ImageFormat::Layout::kNhwc ? 1 : 3) == 1) format.color = ImageFormat::Color::kGray;
  if (tensor.dtype == DType::kU8) format.high = 255;
  const Json noted = Json::parse(Metadata(model, "polyop.image." + tensor.name), nullptr, false);
  if (noted.is_object()) {
    const auto text = [&](const char* key) {
      return noted.contains(key) && noted[key].is_string() ? noted[key].get<std::string>() : "";
    };
    std::string range;
    if (noted.contains("range") && noted["range"].is_array() && noted["range"].size() == 2 &&
        noted["range"][0].is_number() && noted["range"][1].is_number()) {
      range = Concat(noted["range"][0].get<double>(), ",", noted["range"][1].get<double>());
    }
    ApplyText(text("layout"), range, text("color"), &format);
  }
  ApplyText(options.layout, options.range, options.color, &format);
  return format;
}

std::vector<int64_t> ShapeFor(const TensorInfo& input, const RunOptions& options) {
  for (const std::string& text : options.shapes) {
    const Named given = Split(text);
    if (given.name != input.name) continue;
    std::vector<int64_t> shape;
    for (double d : Numbers(given.value, 'x', "--shape")) shape.push_back(static_cast<int64_t>(d));
    return shape;
  }
  std::vector<int64_t> shape = input.shape;
  for (int64_t& d : shape) {
    if (d < 0) {
      throw Failure(kUsage, "input '" + input.name + "' has the shape " + input.Text() + ", which is not fixed",
                    "say it: --shape " + input.name + "=1x3x224x224");
    }
  }
  return shape;
}

Array MadeInput(const TensorInfo& input, const std::string& kind, const RunOptions& options) {
  Array array = MakeArray(input.dtype, ShapeFor(input, options));
  std::mt19937 rng(0);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int64_t i = 0; kind == "random" && i < array.size(); ++i) array.set(i, uniform(rng));
  return array;
}

Array SetInput(const TensorInfo& input, const std::string& text) {
  const std::vector<double> numbers = Numbers(text, ',', "--set " + input.name);
  std::vector<int64_t> shape = input.shape;
  int64_t fixed = 1, dynamic = 0;
  for (int64_t d : shape) d < 0 ? ++dynamic : fixed *= d;
  const auto count = static_cast<int64_t>(numbers.size());
  if (dynamic == 1 && fixed > 0 && count % fixed == 0) {
    for (int64_t& d : shape) d = d < 0 ? count / fixed : d;
  } else if (dynamic > 0 || fixed != count) {
    throw Failure(
        kUsage, Concat("--set ", input.name, ": ", count, " numbers came, input '", input.name, "' is ", input.Text()));
  }
  Array array = MakeArray(input.dtype, shape);
  for (int64_t i = 0; i < count; ++i) array.set(i, numbers[static_cast<size_t>(i)]);
  return array;
}

void CheckShape(const TensorInfo& input, const Array& array, const std::string& source) {
  bool fits = array.shape.size() == input.shape.size();
  for (size_t d = 0; fits && d < array.shape.size(); ++d) fits = input.shape[d] < 0 || input.shape[d] == array.shape[d];
  if (!fits && !input.shape.empty()) {
    throw Failure(
        kUsage, "input '" + input.name + "' wants " + input.Text() + ", " + source + " gives " + ShapeText(array.shape),
        IsPicture(source) ? "try --layout NCHW or NHWC, or --color GRAY" : "");
  }
}

// Reads every input of the model from its file, option or generator.
class Feeds {
 public:
  Feeds(const Session& session, const onnx::ModelProto& model, const RunOptions& options)
      : inputs_(session.inputs()), model_(model), options_(options), arrays_(inputs_.size()), sources_(inputs_.size()) {
    for (const std::string& text : options.inputs) AddInput(Split(text));
    for (const std::string& text : options.sets) {
      const Named given = Split(text);
      Put(IndexOf(inputs_, given.name, "input"), SetInput(inputs_[IndexOf(inputs_, given.name, "input")], given.value),
          "--set");
    }
    std::vector<std::string> missing;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (sources_[i].empty()) missing.push_back(inputs_[i].name + ": " + inputs_[i].Text());
    }
    if (!missing.empty()) {
      throw Failure(kUsage, "no value for " + Join(missing, ", "),
                    "give a file: -i NAME=FILE (.png .jpg .npy .npz), numbers: --set NAME=1,2, or -i NAME=random");
    }
  }

  std::vector<Array> arrays() && { return std::move(arrays_); }
  const std::vector<std::string>& sources() const { return sources_; }

 private:
  void AddInput(const Named& given) {
    if (Extension(given.value) == ".npz") return AddNpz(given);
    size_t index = 0;
    if (given.name.empty() && inputs_.size() != 1) {
      throw Failure(kUsage, "-i " + given.value + ": the model has several inputs", "write -i NAME=" + given.value);
    }
    if (!given.name.empty()) index = IndexOf(inputs_, given.name, "input");
    const TensorInfo& input = inputs_[index];
    if (given.value == "random" || given.value == "zeros")
      return Put(index, MadeInput(input, given.value, options_), given.value);
    if (IsPicture(given.value)) {
      return Put(index, ToTensor(ReadImage(given.value), FormatOf(input, model_, options_), input.dtype), given.value);
    }
    if (Extension(given.value) != ".npy") {
      throw Failure(kUsage, "'" + given.value + "' is of an unknown kind",
                    "inputs are .png, .jpg, .npy or .npz files, `random` or `zeros`");
    }
    Put(index, ParseNpy(ReadFile(given.value), given.value), given.value);
  }

  void AddNpz(const Named& given) {
    bool used = false;
    for (auto& [name, array] : ReadNpz(given.value)) {
      if (!given.name.empty() && name != given.name) continue;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].name != name) continue;
        Put(i, std::move(array), given.value);
        used = true;
      }
    }
    if (!used) throw Failure(kUsage, "'" + given.value + "' holds no array named as an input of the model");
  }

  void Put(size_t index, Array array, const std::string& source) {
    CheckShape(inputs_[index], array, source);
    arrays_[index] = Cast(array, inputs_[index].dtype);
    sources_[index] = source;
  }

  const std::vector<TensorInfo>& inputs_;
  const onnx::ModelProto& model_;
  const RunOptions& options_;
  std::vector<Array> arrays_;
  std::vector<std::string> sources_;
};

// Writes the outputs that were asked for; returns where each went, "" if nowhere.
std::vector<std::string> WriteOutputs(const Session& session, const onnx::ModelProto& model,
                                      const std::vector<Array>& arrays, const RunOptions& options) {
  std::vector<std::string> files(arrays.size());
  std::map<std::string, std::map<std::string, Array>> archives;
  for (const std::string& text : options.outputs) {
    const Named wanted = Split(text);
    const std::string extension = Extension(wanted.value);
    if (extension == ".npz") {
      for (size_t i = 0; i < arrays.size(); ++i) {
        const std::string& name = session.outputs()[i].name;
        if (!wanted.name.empty() && wanted.name != name) continue;
        archives[wanted.value][name] = arrays[i];
        files[i] = wanted.value;
      }
      if (!archives.contains(wanted.value)) IndexOf(session.outputs(), wanted.name, "output");
      continue;
    }
    const size_t index = wanted.name.empty() ? 0 : IndexOf(session.outputs(), wanted.name, "output");
    const TensorInfo& output = session.outputs()[index];
    if (IsPicture(wanted.value)) {
      WriteImage(wanted.value, FromTensor(arrays[index], FormatOf(output, model, options), output.name));
    } else if (extension == ".npy") {
      const std::vector<uint8_t> bytes = FormatNpy(arrays[index]);
      WriteFile(wanted.value, bytes.data(), bytes.size());
    } else {
      throw Failure(kUsage, "'" + wanted.value + "' is of an unknown kind",
                    "outputs are .png, .jpg, .npy or .npz files");
    }
    files[index] = wanted.value;
  }
  for (const auto& [path, named] : archives) WriteNpz(path, named);
  return files;
}

// "min -1.2  max 3.4  mean 0.1": enough to see whether a result is sane.
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

void CheckProvided(const onnx::ModelProto& model, const RunOptions& options) {
  if (!options.session.libraries.empty()) return;  // they may provide anything
  std::set<std::string> missing;
  ForEachNode(model, [&](const onnx::NodeProto& node) {
    if (IsStandardDomain(node.domain()) || IsRuntimeDomain(node.domain()) || IsLocalFunction(model, node)) return;
    if (FindOpByNode(node.domain(), node.op_type(), nullptr) == nullptr)
      missing.insert(node.domain() + "::" + node.op_type());
  });
  if (missing.empty()) return;
  throw Failure(kNotProvided, "nobody provides " + Join({missing.begin(), missing.end()}, ", "),
                "`polyop inspect " + options.model + "` says what to do; --ops LIB adds a library of operators");
}

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

int Run(const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.isa.empty()) Check(ForceIsa(options.isa), kUsage);
  const onnx::ModelProto model = LoadModel(options.model);
  CheckProvided(model, options);
  Clock::time_point start = Clock::now();
  Session session(options.model, options.session);
  const double load_seconds = Seconds(start);
  Feeds feeds(session, model, options);
  const std::vector<std::string> sources = feeds.sources();
  const std::vector<Array> inputs = std::move(feeds).arrays();

  std::vector<double> times;
  std::vector<Array> outputs;
  {
    const Progress progress("running " + options.model);
    for (int i = 0; i < options.repeat; ++i) {
      start = Clock::now();
      outputs = session.Run(inputs);
      times.push_back(Seconds(start));
    }
  }
  const std::vector<std::string> files = WriteOutputs(session, model, outputs, options);
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());

  if (options.json) {
    Json report = {{"model", options.model},       {"onnxruntime", session.runtime_version()},
                   {"isa", CurrentIsa()},          {"threads", options.session.threads},
                   {"load_seconds", load_seconds}, {"run_seconds", times}};
    for (size_t i = 0; i < inputs.size(); ++i) {
      report["inputs"].push_back({{"name", session.inputs()[i].name},
                                  {"dtype", NameOf(inputs[i].dtype)},
                                  {"shape", inputs[i].shape},
                                  {"source", sources[i]}});
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      report["outputs"].push_back({{"name", session.outputs()[i].name},
                                   {"dtype", NameOf(outputs[i].dtype)},
                                   {"shape", outputs[i].shape},
                                   {"file", files[i]}});
    }
    std::cout << report.dump(2) << "\n";
    return kOk;
  }
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < inputs.size(); ++i) {
    rows.push_back({"in", session.inputs()[i].name, std::string(NameOf(inputs[i].dtype)) + ShapeText(inputs[i].shape),
                    sources[i]});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    rows.push_back({"out", session.outputs()[i].name,
                    std::string(NameOf(outputs[i].dtype)) + ShapeText(outputs[i].shape),
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
  std::cout << "; ONNX Runtime " << session.runtime_version() << ", "
            << (options.session.threads > 0 ? std::to_string(options.session.threads) + " thread(s)"
                                            : std::string("all cores"))
            << ", " << CurrentIsa() << "\n";
  return kOk;
}

}  // namespace

void AddRunCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* run = app.add_subcommand("run", "Run a model on pictures, .npy and .npz files");
  run->add_option("model", options->model, "the ONNX file")->required();
  run->add_option("-i,--input", options->inputs,
                  "NAME=FILE: a picture (.png .jpg), .npy or .npz; or NAME=random, NAME=zeros")
      ->take_all()
      ->expected(1);
  run->add_option("-o,--output", options->outputs, "NAME=FILE: where an output goes (.png .jpg .npy .npz)")
      ->take_all()
      ->expected(1);
  run->add_option("--set", options->sets, "NAME=V,V,…: an input from numbers")->take_all()->expected(1);
  run->add_option("--shape", options->shapes, "NAME=1x3x224x224: the shape of a `random` or `zeros` input")
      ->take_all()
      ->expected(1);
  run->add_option("--threads", options->session.threads, "threads of ONNX Runtime (default: all cores)")
      ->check(CLI::Range(1, 1024));
  run->add_option("--repeat", options->repeat, "run so often and report minimum and median")
      ->check(CLI::Range(1, 1000000));
  run->add_option("--layout", options->layout, "pictures as NCHW or NHWC (default: from the model)")
      ->check(CLI::IsMember({"NCHW", "NHWC"}));
  run->add_option("--range", options->range,
                  "BLACK,WHITE: values of pictures (default: the model's, else 0,1 or 0,255 for uint8)");
  run->add_option("--color", options->color, "RGB, BGR or GRAY (default: from the model)")
      ->check(CLI::IsMember({"RGB", "BGR", "GRAY"}));
  run->add_option("--ops", options->session.libraries, "a further library of custom operators")
      ->take_all()
      ->expected(1);
  run->add_option(
      "--isa", options->isa, "force an instruction set: " + [] {
        std::vector<std::string> names(AvailableIsas().begin(), AvailableIsas().end());
        return Join(names, ", ");
      }());
  run->add_option("--onnxruntime", options->session.onnxruntime, "path of libonnxruntime.so (default: looked for)");
  run->add_flag("--json", options->json, "a report for machines");
  run->footer(
      "Examples:\n"
      "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,2.5,2.5\n"
      "  polyop run head.onnx -i inputs.npz -o outputs.npz --threads 2 --repeat 20\n"
      "  polyop run net.onnx -i x=random --shape x=1x3x224x224");
  run->callback([options, &action] { action = [options] { return Run(*options); }; });
}

}  // namespace polyop::cli
