#include "cli/feeds.h"

#include <random>
#include <sstream>

#include "cli/base/failure.h"
#include "cli/base/file.h"
#include "cli/base/npy.h"
#include "cli/base/text.h"
#include "nlohmann/json.hpp"

namespace polyop::cli {

Named Split(const std::string& text) {
  const size_t equals = text.find('=');
  return equals == std::string::npos ? Named{"", text} : Named{text.substr(0, equals), text.substr(equals + 1)};
}

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

namespace {

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

std::vector<int64_t> ShapeFor(const TensorInfo& input, const InputOptions& options) {
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

Array MadeInput(const TensorInfo& input, const std::string& kind, const InputOptions& options) {
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
class FeedReader {
 public:
  FeedReader(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options)
      : inputs_(inputs), model_(model), options_(options), arrays_(inputs_.size()), sources_(inputs_.size()) {
    for (const std::string& text : options.inputs) AddInput(Split(text));
    for (const std::string& text : options.sets) {
      const Named given = Split(text);
      Put(IndexOf(inputs_, given.name, "input"), SetInput(inputs_[IndexOf(inputs_, given.name, "input")], given.value),
          "--set");
    }
    std::vector<std::string> missing;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (sources_[i].empty() && options.random) {
        Put(i, MadeInput(inputs_[i], "random", options), "random");
      }
      if (sources_[i].empty()) missing.push_back(inputs_[i].name + ": " + inputs_[i].Text());
    }
    if (!missing.empty()) {
      throw Failure(kUsage, "no value for " + Join(missing, ", "),
                    "give a file: -i NAME=FILE (.png .jpg .npy .npz), numbers: --set NAME=1,2, or -i NAME=random");
    }
  }

  Feeds feeds() && { return {std::move(arrays_), std::move(sources_)}; }

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
    for (const auto& [name, array] : ReadNpz(given.value)) {
      if (!given.name.empty() && name != given.name) continue;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (inputs_[i].name != name) continue;
        Put(i, array, given.value);
        used = true;
      }
    }
    if (!used) throw Failure(kUsage, "'" + given.value + "' holds no array named as an input of the model");
  }

  void Put(size_t index, const Array& array, const std::string& source) {
    CheckShape(inputs_[index], array, source);
    arrays_[index] = Cast(array, inputs_[index].dtype);
    sources_[index] = source;
  }

  const std::vector<TensorInfo>& inputs_;
  const onnx::ModelProto& model_;
  const InputOptions& options_;
  std::vector<Array> arrays_;
  std::vector<std::string> sources_;
};

}  // namespace

Feeds ReadFeeds(const std::vector<TensorInfo>& inputs, const onnx::ModelProto& model, const InputOptions& options) {
  return FeedReader(inputs, model, options).feeds();
}

}  // namespace polyop::cli
