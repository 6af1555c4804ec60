// SPDX-License-Identifier: Apache-2.0
#include "cli/feeds.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/number.h"
#include "cli/base/synthetic_input.h"
#include "cli/base/text.h"
#include "cli/read_image.h"
#include "core/elements.h"
#include "nlohmann/json.hpp"
#include "platform/program.h"

namespace polyop::cli {

Named Split(const std::string& text) {
  const size_t equals = text.find('=');
  return equals == std::string::npos ? Named{"", text} : Named{text.substr(0, equals), text.substr(equals + 1)};
}

void TakeNamed(std::vector<std::string>* files, InputOptions* options) {
  const auto is_file = [](const std::string& text) {
    std::error_code error;
    return text.find('=') == std::string::npos || std::filesystem::exists(text, error);
  };
  const auto named = std::stable_partition(files->begin(), files->end(), is_file);
  options->inputs.insert(options->inputs.end(), named, files->end());
  files->erase(named, files->end());
}

Named SplitNamed(const char* option, const std::string& text) {
  const Named given = Split(text);
  if (given.name.empty()) throw Failure(kUsage, Concat(option, " ", text, ": NAME= is missing"));
  return given;
}

namespace {

// `types` are those of the tensors that the model has.
[[noreturn]] void RefuseName(const std::string& name, const char* what, const std::vector<std::string>& names,
                             const std::vector<std::string>& types) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < names.size(); ++i) texts.push_back(names[i] + ": " + types[i]);
  const std::string near = Nearest(name, names);
  throw Failure(
      kUsage, Concat("the model has no ", what, " '", name, "'"),
      (near.empty() ? "" : "did you mean '" + near + "'? ") + Concat("its ", what, "s are ") + Join(texts, ", "));
}

}  // namespace

size_t IndexOf(const std::vector<TensorInfo>& tensors, const std::string& name, const char* what) {
  std::vector<std::string> names, types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name == name) return i;
    names.push_back(tensors[i].name);
    types.push_back(tensors[i].Text());
  }
  RefuseName(name, what, names, types);
}

void CheckInputNames(const onnx::ModelProto& model, const InputOptions& options) {
  std::set<std::string> initialized;
  for (const onnx::TensorProto& tensor : model.graph().initializer()) initialized.insert(tensor.name());
  std::vector<std::string> names, types;
  for (const onnx::ValueInfoProto& input : model.graph().input()) {
    if (initialized.contains(input.name())) continue;
    names.push_back(input.name());
    types.push_back(TypeText(input.type()));
  }
  for (const std::vector<std::string>* texts : {&options.inputs, &options.sets, &options.shapes}) {
    for (const std::string& text : *texts) {
      const std::string name = Split(text).name;
      if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
        RefuseName(name, "input", names, types);
      }
    }
  }
}

std::string Feeds::SyntheticText() const {
  return synthetic.empty() ? ""
                           : "  synthetic inputs: " + Escaped(synthetic) + "; -i NAME=FILE or --set gives others\n";
}

namespace {

double Number(const std::string& text, const std::string& option) {
  if (const std::optional<double> number = ParseReal(text)) return *number;
  throw Failure(kUsage, option + ": '" + text + "' is not a number");
}

}  // namespace

std::pair<double, double> ParseRange(const std::string& text) {
  std::vector<double> ends;
  for (const std::string& end : SplitAt(',', text)) ends.push_back(Number(end, "--range"));
  if (ends.size() != 2 || ends[0] == ends[1] || !std::isfinite(ends[0]) || !std::isfinite(ends[1])) {
    throw Failure(kUsage, "--range: expected BLACK,WHITE, such as 0,1 or -1,1 or 0,255, got '" + text + "'");
  }
  return {ends[0], ends[1]};
}

namespace {

void ApplyText(const std::string& layout, const std::string& range, const std::string& color, ImageFormat* format) {
  if (!layout.empty()) format->layout = layout == "NHWC" ? ImageFormat::Layout::kNhwc : ImageFormat::Layout::kNchw;
  if (!color.empty()) {
    format->color = color == "BGR"    ? ImageFormat::Color::kBgr
                    : color == "GRAY" ? ImageFormat::Color::kGray
                                      : ImageFormat::Color::kRgb;
  }
  if (!range.empty()) std::tie(format->low, format->high) = ParseRange(range);
}

}  // namespace

ImageFormat FormatOf(const TensorInfo& tensor, const onnx::ModelProto& model, const InputOptions& options) {
  ImageFormat format;
  const auto extent = [&](size_t from_end) {
    return tensor.shape.size() >= from_end ? tensor.shape[tensor.shape.size() - from_end] : -1;
  };
  const auto is_channels = [](int64_t e) { return e == 1 || e == 3; };
  if (is_channels(extent(1)) && !is_channels(extent(3))) format.layout = ImageFormat::Layout::kNhwc;
  if (extent(format.layout == ImageFormat::Layout::kNhwc ? 1 : 3) == 1) format.color = ImageFormat::Color::kGray;
  if (tensor.dtype == DType::kU8) format.high = 255;
  format.stated = !Metadata(model, "polyop.image." + tensor.name).empty() || !options.layout.empty();
  const nlohmann::json noted = nlohmann::json::parse(Metadata(model, "polyop.image." + tensor.name), nullptr, false);
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

namespace {

// Returns what makes an image of this shape fit.
std::string ImageHint(const TensorInfo& input, const std::vector<int64_t>& shape) {
  const size_t channels = shape[1] <= 3 ? 1 : 3;
  const bool fits =
      input.shape.size() == shape.size() && (input.shape[channels] < 0 || input.shape[channels] == shape[channels]);
  return fits ? "--resize model scales it, and --letterbox model with its aspect ratio"
              : "try --layout NCHW or NHWC, or --color GRAY";
}

// Returns the height and width that --resize or --letterbox requests for an input.
std::pair<int64_t, int64_t> ParseSize(const char* option, const std::string& text, const TensorInfo& input,
                                      const ImageFormat& format) {
  std::vector<int64_t> size;
  if (text == "model") {
    const size_t behind = format.layout == ImageFormat::Layout::kNhwc ? 1 : 0, rank = input.shape.size();
    if (rank >= 2 + behind) size = {input.shape[rank - 2 - behind], input.shape[rank - 1 - behind]};
    if (size.empty() || size[0] < 1 || size[1] < 1 || size[0] > kMaxPixels / size[1]) {
      throw Failure(kUsage, Concat(option, " model: input '", input.name, "' is ", input.Text(), ", which has no size"),
                    Concat("give one: ", option, " 224x224"));
    }
    return {size[0], size[1]};
  }
  const std::vector<std::string> parts = SplitAt('x', text);
  for (const std::string& part : parts) size.push_back(ParseInteger(part).value_or(0));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > kMaxPixels / size[1]) {
    throw Failure(kUsage, Concat(option, ": expected HEIGHTxWIDTH or model, got '", text, "'"));
  }
  return {size[0], size[1]};
}

// Parses --mean or --std: one finite number, or one for each channel.
std::vector<double> ParseChannels(const char* option, const std::string& text, const ImageFormat& format) {
  std::vector<double> values;
  for (const std::string& part : SplitAt(',', text)) values.push_back(Number(part, option));
  const bool counts = values.size() == 1 || values.size() == static_cast<size_t>(format.channels());
  const bool finite = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  if (!text.empty() && (!counts || !finite)) {
    throw Failure(kUsage,
                  Concat(option, ": expected a number, or ", format.channels(), " for the channels, got '", text, "'"));
  }
  return values;
}

void CheckShape(const TensorInfo& input, const std::vector<int64_t>& shape, const std::string& source) {
  bool fits = shape.size() == input.shape.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = input.shape[d] < 0 || input.shape[d] == shape[d];
  if (!fits && !input.shape.empty()) {
    throw Failure(
        kUsage,
        "input '" + input.name + "': expected " + input.Text() + ", got " + ShapeText(shape) + " from " + source,
        IsImage(source) ? ImageHint(input, shape) : "");
  }
}

// Throws Failure if the array would be larger than the machine's memory.
void CheckMemory(const TensorInfo& input, const std::vector<int64_t>& shape) {
  const double memory = static_cast<double>(MachineMemory());
  double bytes = static_cast<double>(SizeOf(input.dtype));
  for (int64_t d : shape) bytes *= static_cast<double>(d);
  if (bytes <= memory && bytes <= static_cast<double>(kMaxBytes)) return;
  throw Failure(kUsage, Concat("--shape: input '", input.name, "' of shape ", ShapeText(shape), " needs ",
                               BytesText(bytes), " of memory, this machine has ", BytesText(memory)));
}

// Returns a usual shape for --shape: an image if the input may be one, else 16 rows.
std::string UsualShape(const TensorInfo& input) {
  constexpr int64_t kImage[] = {1, 3, 224, 224};
  std::string text;
  const size_t rank = input.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t usual = rank == 4 ? kImage[d] : d == 0 && rank > 2 ? 1 : 16;
    text += Concat(d == 0 ? "" : "x", input.shape[d] >= 0 ? input.shape[d] : usual);
  }
  return text;
}

std::vector<int64_t> ShapeFor(const TensorInfo& input, const InputOptions& options) {
  for (const std::string& text : options.shapes) {
    const Named given = Split(text);
    if (given.name != input.name) continue;
    const std::vector<int64_t> shape = ParseShape(given.value, "--shape " + text);
    CheckShape(input, shape, "--shape");
    CheckMemory(input, shape);
    return shape;
  }
  for (int64_t d : input.shape) {
    if (d < 0) {
      throw Failure(kUsage, "input '" + input.name + "' is " + input.Text() + ", whose shape is not fixed",
                    "give it, such as --shape " + input.name + "=" + UsualShape(input));
    }
  }
  CheckMemory(input, input.shape);
  return input.shape;
}

// Stores one number of --set. A number that the type cannot represent is an error, not truncated or infinite.
void SetElement(const TensorInfo& input, const std::string& text, int64_t i, Array* array) {
  const std::string option = "--set " + input.name;
  const auto refuse = [&] {
    throw Failure(kUsage,
                  option + ": expected a value of " + std::string(NameOf(array->dtype)) + ", got '" + text + "'");
  };
  if (IsReal(array->dtype)) {
    const double value = Number(text, option);
    array->set(i, value);
    if (std::isfinite(value) && !std::isfinite(array->at(i))) refuse();
    return;
  }
  const std::optional<int64_t> value = ParseInteger(text);
  if (!value) {
    (void)Number(text, option);
    refuse();
  }
  if (array->dtype == DType::kI64) {  // a double cannot represent all of them
    std::memcpy(array->bytes.data() + static_cast<size_t>(i) * sizeof(int64_t), &*value, sizeof(int64_t));
    return;
  }
  array->set(i, static_cast<double>(*value));
  if (array->at(i) != static_cast<double>(*value)) refuse();
}

Array SetInput(const TensorInfo& input, const std::string& text) {
  const std::vector<std::string> numbers = SplitAt(',', text);
  std::vector<int64_t> shape = input.shape;
  int64_t fixed = 1, dynamic = 0;
  bool fits = true;
  for (int64_t d : shape)
    d < 0 ? static_cast<void>(++dynamic) : static_cast<void>(fits &= !__builtin_mul_overflow(fixed, d, &fixed));
  const auto count = static_cast<int64_t>(numbers.size());
  if (fits && dynamic == 1 && fixed > 0 && count % fixed == 0) {
    for (int64_t& d : shape) d = d < 0 ? count / fixed : d;
  } else if (!fits || dynamic > 0 || fixed != count) {
    throw Failure(kUsage, Concat("--set ", input.name, ": expected numbers for ", input.Text(), ", got ", count));
  }
  Array array = MakeArray(input.dtype, shape);
  for (int64_t i = 0; i < count; ++i) SetElement(input, numbers[static_cast<size_t>(i)], i, &array);
  return array;
}

// Reads or generates the value of every input.
class FeedReader {
 public:
  FeedReader(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options,
             int integer_bound)
      : inputs_(inputs), model_(model), options_(options), integer_bound_(integer_bound) {
    feeds_.arrays.resize(inputs_.size());
    feeds_.sources.resize(inputs_.size());
    for (const std::string& text : options.shapes) (void)IndexOf(inputs_, SplitNamed("--shape", text).name, "input");
    for (const std::string& text : options.inputs) AddInput(Split(text));
    for (const std::string& text : options.sets) {
      const Named given = SplitNamed("--set", text);
      const size_t index = IndexOf(inputs_, given.name, "input");
      Put(index, SetInput(inputs_[index], given.value), "--set");
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (feeds_.sources[i].empty() && options.random) Generate(i, "random");
    }
    CheckComplete();
  }

  Feeds feeds() && { return std::move(feeds_); }

 private:
  void CheckComplete() const {
    std::vector<std::string> missing;
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::string& source = feeds_.sources[i];
      if (source.empty()) missing.push_back(inputs_[i].name + ": " + inputs_[i].Text());
      rows.push_back({inputs_[i].name, inputs_[i].Text(), source.empty() ? "nothing" : source});
    }
    if (missing.empty()) return;
    throw Failure(kUsage, "no value for " + Join(missing, ", ") + "\n\n" + Table({"input", "type", "given"}, rows),
                  "give a file by -i NAME=FILE (an image, .npy or .npz), numbers by --set NAME=1,2, or -i NAME=random");
  }

  void AddInput(const Named& given) {
    if (Extension(given.value) == ".npz") return AddNpz(given);
    const size_t index = given.name.empty() ? OnlyInput(given.value) : IndexOf(inputs_, given.name, "input");
    const TensorInfo& input = inputs_[index];
    if (given.value == "random" || given.value == "zeros") return Generate(index, given.value);
    if (IsImage(given.value)) return Put(index, ImageTensor(input, given.value), given.value);
    if (Extension(given.value) != ".npy") {
      const bool is_several = std::filesystem::is_directory(given.value) || given.value.find('*') != std::string::npos;
      throw Failure(kUsage, "'" + given.value + "' is of an unknown kind",
                    is_several
                        ? "`polyop batch` runs a model on the files of a folder or a pattern"
                        : "inputs are images (.png .jpg .bmp .webp .tif), .npy or .npz files, `random` or `zeros`");
    }
    const uint64_t size = FileSize(given.value);
    TakeMemory(given.value, size, size);
    Put(index, ParseNpy(ReadFile(given.value), given.value), given.value);
  }

  // Returns the input that a file without a name is for: the only one, or for an image the only one of its shape.
  size_t OnlyInput(const std::string& file) const {
    std::vector<size_t> fitting;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_.size() == 1 || (IsImage(file) && TakesImage(inputs_[i]))) fitting.push_back(i);
    }
    if (fitting.size() == 1) return fitting[0];
    std::vector<std::string> texts;
    for (const TensorInfo& input : inputs_) texts.push_back(input.name + ": " + input.Text());
    throw Failure(kUsage, "-i " + file + ": the model has several inputs: " + Join(texts, ", "),
                  "write -i NAME=" + file);
  }

  bool TakesImage(const TensorInfo& input) const {
    if (input.shape.size() != 4) return false;
    const ImageFormat format = FormatOf(input, model_, options_);
    const int64_t channels = input.shape[format.layout == ImageFormat::Layout::kNhwc ? 3 : 1];
    return channels < 0 || channels == format.channels();
  }

  Array ImageTensor(const TensorInfo& input, const std::string& path) const {
    ImageFormat format = FormatOf(input, model_, options_);
    format.mean = ParseChannels("--mean", options_.mean, format);
    format.std = ParseChannels("--std", options_.std, format);
    if (std::find(format.std.begin(), format.std.end(), 0.0) != format.std.end()) {
      throw Failure(kUsage, "--std: expected numbers other than 0, got '" + options_.std + "'");
    }
    Image image = ReadImage(path);
    if (!options_.resize.empty()) {
      const auto [height, width] = ParseSize("--resize", options_.resize, input, format);
      image = Resized(image, height, width);
    } else if (!options_.letterbox.empty()) {
      const auto [height, width] = ParseSize("--letterbox", options_.letterbox, input, format);
      image = Resized(image, height, width, /*letterbox=*/true);
    }
    return ToTensor(image, format, input.dtype);
  }

  void AddNpz(const Named& given) {
    std::set<std::string> names;
    for (const TensorInfo& input : inputs_) {
      if (given.name.empty() || input.name == given.name) names.insert(input.name);
    }
    bool used = false;
    for (const auto& [name, array] : names.empty() ? std::map<std::string, Array>() : ReadNpz(given.value, names)) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].name != name) continue;
        Put(i, array, given.value);
        used = true;
      }
    }
    if (!used) throw Failure(kUsage, "'" + given.value + "' has no array with the name of an input");
  }

  void Generate(size_t index, const std::string& kind) {
    const TensorInfo& input = inputs_[index];
    Array array = MakeArray(input.dtype, ShapeFor(input, options_));
    std::string source = kind;
    if (kind == "random") {
      const SyntheticInput synthetic = FillSyntheticInput(model_, input.name, integer_bound_, &array);
      feeds_.integers_are_drawn |= synthetic.draws_integers;
      source = synthetic.text;
      feeds_.synthetic += (feeds_.synthetic.empty() ? "" : ", ") + input.name + " (" + source + ")";
    }
    Put(index, array, source);
  }

  void Put(size_t index, const Array& array, const std::string& source) {
    CheckShape(inputs_[index], array.shape, source);
    feeds_.arrays[index] = Cast(array, inputs_[index].dtype);
    feeds_.sources[index] = source;
  }

  const std::vector<TensorInfo>& inputs_;
  const onnx::ModelProto& model_;
  const InputOptions& options_;
  int integer_bound_;
  Feeds feeds_;
};

}  // namespace

Feeds ReadFeeds(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options,
                int integer_bound) {
  return FeedReader(inputs, model, options, integer_bound).feeds();
}

Feeds ReadFeedsThatRun(Session& session, const onnx::ModelProto& model, const InputOptions& options,
                       std::vector<Array>* outputs, int* integer_bound) {
  std::exception_ptr first;
  for (*integer_bound = kIntegerBound; *integer_bound > 0; *integer_bound /= 2) {
    Feeds feeds = ReadFeeds(session.inputs(), model, options, *integer_bound);
    try {
      *outputs = session.Run(feeds.arrays);
      return feeds;
    } catch (const Failure&) {
      if (first == nullptr) first = std::current_exception();
      if (!feeds.integers_are_drawn) break;
    }
  }
  std::rethrow_exception(first);
}

}  // namespace polyop::cli
