// SPDX-License-Identifier: Apache-2.0
#include "adapters/onnxruntime/node_attributes.h"

#include <vector>

namespace polyop::onnxruntime {
namespace {

// ONNX Runtime does not expose an attribute's type: each getter is tried, and those of other types fail.
bool Succeeded(OrtStatus* status) { return FromOrt(status).ok(); }

}  // namespace

bool KernelAttributes::Get(const char* name, AttrValue* value) {
  const OrtApi& api = Api();
  int64_t integer = 0;
  if (Succeeded(api.KernelInfoGetAttribute_int64(info_, name, &integer))) {
    *value = AttrValue::Int(integer);
    return true;
  }
  float real = 0;
  if (Succeeded(api.KernelInfoGetAttribute_float(info_, name, &real))) {
    *value = AttrValue::Float(real);
    return true;
  }
  size_t size = 0;
  if (Succeeded(api.KernelInfoGetAttribute_string(info_, name, nullptr, &size))) {
    std::string text(size, '\0');
    if (!Succeeded(api.KernelInfoGetAttribute_string(info_, name, text.data(), &size))) return false;
    while (!text.empty() && text.back() == '\0') text.pop_back();
    *value = AttrValue::String(text);
    return true;
  }
  if (Succeeded(api.KernelInfoGetAttributeArray_int64(info_, name, nullptr, &size)) && size > 0) {
    std::vector<int64_t> integers(size);
    if (!Succeeded(api.KernelInfoGetAttributeArray_int64(info_, name, integers.data(), &size))) return false;
    *value = AttrValue::Ints(std::move(integers));
    return true;
  }
  if (Succeeded(api.KernelInfoGetAttributeArray_float(info_, name, nullptr, &size)) && size > 0) {
    std::vector<float> reals(size);
    if (!Succeeded(api.KernelInfoGetAttributeArray_float(info_, name, reals.data(), &size))) return false;
    *value = AttrValue::Floats({reals.begin(), reals.end()});
    return true;
  }
  return false;
}

bool ReadAttribute(const OrtOpAttr* attribute, AttrValue* value) {
  const OrtApi& api = Api();
  size_t bytes = 0;
  int64_t integer = 0;
  if (Succeeded(api.ReadOpAttr(attribute, ORT_OP_ATTR_INT, &integer, sizeof(integer), &bytes))) {
    *value = AttrValue::Int(integer);
    return true;
  }
  float real = 0;
  if (Succeeded(api.ReadOpAttr(attribute, ORT_OP_ATTR_FLOAT, &real, sizeof(real), &bytes))) {
    *value = AttrValue::Float(real);
    return true;
  }
  // Reading a list or a string into an empty buffer returns its size.
  std::vector<char> buffer;
  const auto read = [&](OrtOpAttrType type) {
    bytes = 0;
    if (!Succeeded(api.ReadOpAttr(attribute, type, nullptr, 0, &bytes)) && bytes == 0) return false;
    buffer.resize(bytes);
    return bytes > 0 && Succeeded(api.ReadOpAttr(attribute, type, buffer.data(), bytes, &bytes));
  };
  if (read(ORT_OP_ATTR_INTS)) {
    const auto* items = reinterpret_cast<const int64_t*>(buffer.data());
    const size_t count = bytes / sizeof(int64_t);
    *value = AttrValue::Ints({items, items + count});
    return true;
  }
  if (read(ORT_OP_ATTR_FLOATS)) {
    const auto* items = reinterpret_cast<const float*>(buffer.data());
    const size_t count = bytes / sizeof(float);
    *value = AttrValue::Floats({items, items + count});
    return true;
  }
  if (read(ORT_OP_ATTR_STRING)) {
    *value = AttrValue::String(std::string(buffer.data(), bytes));
    return true;
  }
  return false;
}

Status MakeAttribute(const char* name, const AttrValue& value, Attribute* attribute) {
  OrtOpAttr* raw = nullptr;
  const auto make = [&](const void* data, size_t count, OrtOpAttrType type) {
    const Status status = FromOrt(Api().CreateOpAttr(name, data, static_cast<int>(count), type, &raw));
    attribute->reset(raw);
    return status;
  };
  const std::vector<float> floats(value.floats.begin(), value.floats.end());
  switch (value.type) {
    case AttrType::kInt: return make(value.ints.data(), 1, ORT_OP_ATTR_INT);
    case AttrType::kFloat: return make(floats.data(), 1, ORT_OP_ATTR_FLOAT);
    case AttrType::kString: return make(value.text.c_str(), value.text.size(), ORT_OP_ATTR_STRING);
    case AttrType::kInts: return make(value.ints.data(), value.ints.size(), ORT_OP_ATTR_INTS);
    case AttrType::kFloats: return make(floats.data(), floats.size(), ORT_OP_ATTR_FLOATS);
  }
  return Internal("attribute '", name, "': unknown type");
}

bool InferenceAttributes::Get(const char* name, AttrValue* value) {
  const OrtOpAttr* attribute = nullptr;
  const bool found = Succeeded(Api().ShapeInferContext_GetAttribute(context_, name, &attribute));
  return found && attribute != nullptr && ReadAttribute(attribute, value);
}

}  // namespace polyop::onnxruntime
