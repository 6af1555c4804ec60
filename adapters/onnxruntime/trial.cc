// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/trial.h"

#if ORT_API_VERSION >= 24

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "adapters/onnxruntime/known_node.h"
#include "adapters/onnxruntime/node_attributes.h"
#include "adapters/onnxruntime/part_model.h"
#include "core/elements.h"
#include "core/reference.h"

namespace polyop::onnxruntime {
namespace {

// The sizes of dimensions that the graph does not state, in each trial; the later ones are those of patterns that draw
// their values.
constexpr int64_t kSizes[][6] = {
    {3, 5, 7, 11, 13, 17}, {4, 2, 9, 6, 10, 8}, {25, 30, 12, 20, 15, 10}, {30, 2, 25, 10, 20, 15}};
constexpr size_t kTrials = 2;

struct Release {
  void operator()(OrtEnv* p) const { Api().ReleaseEnv(p); }
  void operator()(OrtSession* p) const { Api().ReleaseSession(p); }
  void operator()(OrtSessionOptions* p) const { Api().ReleaseSessionOptions(p); }
  void operator()(OrtValue* p) const { Api().ReleaseValue(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Release>;

const OrtNode* RuntimeNode(const GraphNode* node) { return static_cast<const OrtNode*>(node->of_runtime); }

std::vector<const char*> NamesOf(const std::vector<const GraphValue*>& values) {
  std::vector<const char*> names;
  for (const GraphValue* const value : values) names.push_back(value == nullptr ? "" : value->name.c_str());
  return names;
}

Status MakeTensor(DType dtype, const Shape& shape, Owned<OrtValue>* value, void** data) {
  OrtAllocator* allocator = nullptr;  // the runtime owns it
  OrtValue* raw = nullptr;
  POLYOP_RETURN_IF_ERROR(FromOrt(Api().GetAllocatorWithDefaultOptions(&allocator)));
  POLYOP_RETURN_IF_ERROR(FromOrt(
      Api().CreateTensorAsOrtValue(allocator, shape.begin(), static_cast<size_t>(shape.rank()), ToOrt(dtype), &raw)));
  value->reset(raw);
  return FromOrt(Api().GetTensorMutableData(raw, data));
}

Status ReadAttributes(const OrtNode* node, std::vector<std::pair<std::string, AttrValue>>* read) {
  std::vector<const OrtOpAttr*> attributes;
  POLYOP_RETURN_IF_ERROR(AttributesOf(node, &attributes));
  for (const OrtOpAttr* const attribute : attributes) {
    const char* name = "";
    AttrValue value;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().OpAttr_GetName(attribute, &name)));
    if (!ReadAttribute(attribute, &value)) return Unsupported("an attribute '", name, "' of this type");
    read->emplace_back(name, std::move(value));
  }
  return Status::Ok();
}

// Unlike ToString, tells real numbers apart that differ in their last digits.
std::string TextOf(const AttrValue& value) {
  std::string text = ToString(value);
  for (const double real : value.floats) text += Concat(" ", std::bit_cast<uint64_t>(real));
  return text;
}

// A session of the nodes.
class Part {
 public:
  Status Create(const OrtGraph* graph, const PatternMatch& match, const Cone& cone) {
    std::string model;
    POLYOP_RETURN_IF_ERROR(WriteModel(graph, match, cone, &model));
    OrtEnv* env = nullptr;  // the process has one
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateEnv(ORT_LOGGING_LEVEL_FATAL, "polyop", &env)));
    env_.reset(env);
    OrtSessionOptions* raw_options = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateSessionOptions(&raw_options)));
    const Owned<OrtSessionOptions> options(raw_options);
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().SetSessionGraphOptimizationLevel(raw_options, ORT_DISABLE_ALL)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().SetIntraOpNumThreads(raw_options, 1)));
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().SetSessionLogSeverityLevel(raw_options, ORT_LOGGING_LEVEL_FATAL)));
    OrtSession* raw = nullptr;
    POLYOP_RETURN_IF_ERROR(FromOrt(Api().CreateSessionFromArray(env, model.data(), model.size(), raw_options, &raw)));
    session_.reset(raw);
    return Status::Ok();
  }

  Status Run(const std::vector<const char*>& inputs, const std::vector<Owned<OrtValue>>& values,
             const std::vector<const char*>& outputs, std::vector<Owned<OrtValue>>* results) {
    std::vector<const OrtValue*> given;
    for (const auto& value : values) given.push_back(value.get());
    std::vector<OrtValue*> raw(outputs.size());
    const Status status = FromOrt(Api().Run(session_.get(), nullptr, inputs.data(), given.data(), given.size(),
                                            outputs.data(), outputs.size(), raw.data()));
    for (OrtValue* const value : raw) results->emplace_back(value);
    return status;
  }

 private:
  Owned<OrtEnv> env_;
  Owned<OrtSession> session_;
};

class KernelOutputs : public OutputSource {
 public:
  explicit KernelOutputs(size_t count) : outputs_(count), tensors_(count) {}
  bool Requested(int index) override { return static_cast<size_t>(index) < outputs_.size(); }
  Status Allocate(int index, DType dtype, const Shape& shape, void** data) override {
    const auto i = static_cast<size_t>(index);
    POLYOP_RETURN_IF_ERROR(outputs_[i].Allocate(0, dtype, shape, data));
    tensors_[i] = {*data, dtype, true, shape};
    return Status::Ok();
  }
  const AnyTensor& at(size_t i) const { return tensors_[i]; }

 private:
  std::vector<ScratchOutput> outputs_;
  std::vector<AnyTensor> tensors_;
};

Status CompareTensors(const AnyTensor& expected, const AnyTensor& got) {
  if (!got.present || expected.dtype != got.dtype || !(expected.shape == got.shape)) {
    return Internal("expected shape ", ToString(expected.shape), ", got ", ToString(got.shape));
  }
  const double tolerance = !IsReal(expected.dtype) ? 0 : expected.dtype == DType::kF32 ? 1e-4 : 2e-2;
  const int64_t count = expected.shape.NumElements().value_or(0);
  double scale = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::abs(ReadElement(expected.dtype, expected.data, i));
    if (std::isfinite(value)) scale = std::max(scale, value);
  }
  for (int64_t i = 0; i < count; ++i) {
    const double want = ReadElement(expected.dtype, expected.data, i), is = ReadElement(got.dtype, got.data, i);
    if (want == is || (std::isnan(want) && std::isnan(is))) continue;
    if (!(std::abs(want - is) <= tolerance * scale)) return Internal("expected ", want, ", got ", is);
  }
  return Status::Ok();
}

// Returns the shape with sizes for what is unknown; nullopt if the rank is.
std::optional<Shape> ShapeFor(const std::optional<Shape>& stated, size_t trial, std::map<int64_t, int64_t>* sizes) {
  if (!stated.has_value()) return std::nullopt;
  Shape shape;
  for (const int64_t extent : stated->span()) {
    if (extent == kUnknownExtent) return std::nullopt;
    const size_t next = sizes->size() % std::size(kSizes[0]);
    shape.push_back(extent >= 0 ? extent : sizes->try_emplace(extent, kSizes[trial][next]).first->second);
  }
  return shape;
}

}  // namespace

std::string SignatureOf(const OrtGraph* graph, const PatternMatch& match, const Cone& cone) {
  std::map<const GraphValue*, size_t> numbers;
  std::string text = match.node;
  const auto has_subgraphs = [](const GraphNode* node) { return !node->subgraphs.empty(); };
  if (std::any_of(cone.nodes.begin(), cone.nodes.end(), has_subgraphs) && WriteModel(graph, match, cone, &text).ok()) {
    return text;
  }
  const auto add = [&](const auto& values) {
    for (const GraphValue* const value : values) {
      text += Concat(" ", value == nullptr ? 0 : numbers.try_emplace(value, numbers.size() + 1).first->second);
    }
  };
  for (const auto* const values : {&match.attributes, &match.parameters}) {
    for (const auto& [name, value] : *values) text += Concat(" ", name, "=", TextOf(value));
  }
  add(match.inputs);
  add(match.outputs);
  for (const GraphValue* const value : match.inputs) {
    const KnownTensor& known = value->known;
    text += Concat(known.dtype.has_value() ? NameOf(*known.dtype) : "?",
                   known.shape.has_value() ? ToString(*known.shape) : "?");
  }
  for (const GraphNode* const node : cone.nodes) {
    std::vector<std::pair<std::string, AttrValue>> attributes;
    text += Concat(";", node->type);
    if (!ReadAttributes(RuntimeNode(node), &attributes).ok()) text += Concat("@", node->name);
    for (const auto& [name, value] : attributes) text += Concat(" ", name, "=", TextOf(value));
    add(node->inputs);
    text += " ->";
    add(node->outputs);
  }
  std::map<size_t, const GraphValue*> constants;  // in the order of their numbers
  for (const GraphValue* const value : cone.constants) constants[numbers[value]] = value;
  for (const auto& [number, value] : constants) {
    AnyTensor tensor;
    if (!ReadConstant(*value, &tensor).ok()) return text + value->name;
    text += Concat(";", number, NameOf(tensor.dtype), ToString(tensor.shape),
                   std::hash<std::string_view>()(BytesOf(tensor)));
  }
  return text;
}

Status CompareWithRuntime(const OrtGraph* graph, const Pattern& pattern, const PatternMatch& match, const Cone& cone,
                          const StandardKernel& kernel) {
  Part part;
  POLYOP_RETURN_IF_ERROR(part.Create(graph, match, cone));
  const ContextBackend backend = SerialBackend();
  const Context context(backend);
  std::mt19937 random(1);
  for (size_t trial = 0; trial < (pattern.draw != nullptr ? std::size(kSizes) : kTrials); ++trial) {
    std::map<int64_t, int64_t> sizes;
    std::vector<Owned<OrtValue>> values(match.inputs.size() + cone.sized.size()), results;
    std::vector<AnyTensor> inputs(match.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const KnownTensor& known = match.inputs[i]->known;
      const std::optional<Shape> shape =
          ShapeFor(match.shapes.empty() ? known.shape : std::optional(match.shapes[i]), trial, &sizes);
      const bool has_range = i < match.ranges.size();
      if (!shape.has_value() || !known.dtype.has_value()) return Unsupported("an input of unknown type or rank");
      if (!IsReal(*known.dtype) && !has_range && pattern.draw == nullptr) return Unsupported("an input of integers");
      void* data = nullptr;
      POLYOP_RETURN_IF_ERROR(MakeTensor(*known.dtype, *shape, &values[i], &data));
      const auto [low, high] = has_range ? match.ranges[i] : std::pair(-2.0, 2.0);
      std::uniform_real_distribution<double> draw(low, high);
      for (int64_t e = 0; e < shape->NumElements().value_or(0); ++e) WriteElement(*known.dtype, data, e, draw(random));
      inputs[i] = {data, *known.dtype, true, *shape};
    }
    if (pattern.draw != nullptr) pattern.draw(match, random, inputs);
    std::vector<const GraphValue*> fed = match.inputs;
    for (const GraphValue* const value : cone.sized) {
      const std::optional<Shape> shape = ShapeFor(value->known.shape, trial, &sizes);
      void* data = nullptr;
      if (!shape.has_value() || !value->known.dtype.has_value()) return Unsupported("a shape of unknown rank");
      POLYOP_RETURN_IF_ERROR(MakeTensor(*value->known.dtype, *shape, &values[fed.size()], &data));
      fed.push_back(value);
    }
    POLYOP_RETURN_IF_ERROR(part.Run(NamesOf(fed), values, NamesOf(match.outputs), &results));
    KernelOutputs outputs(match.outputs.size());
    POLYOP_RETURN_IF_ERROR(kernel.Run(inputs, outputs, &context));
    for (size_t o = 0; o < results.size(); ++o) {
      AnyTensor expected;
      POLYOP_RETURN_IF_ERROR(ReadTensor(results[o].get(), &expected));
      POLYOP_RETURN_IF_ERROR(CompareTensors(expected, outputs.at(o)));
    }
    if (sizes.empty() && pattern.draw == nullptr) break;  // of one size
  }
  return Status::Ok();
}

}  // namespace polyop::onnxruntime

#endif
