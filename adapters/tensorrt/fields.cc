// SPDX-License-Identifier: Apache-2.0
#include "adapters/tensorrt/fields.h"

#include <algorithm>
#include <cstring>

namespace polyop::tensorrt {
namespace {

using nvinfer1::PluginField;
using nvinfer1::PluginFieldType;

template <class T, class To>
void Copy(const PluginField& field, std::vector<To>* values) {
  for (int32_t i = 0; i < field.length; ++i) {
    T value;
    std::memcpy(&value, static_cast<const char*>(field.data) + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    values->push_back(static_cast<To>(value));
  }
}

bool Read(const PluginField& field, AttrValue* value) {
  *value = {};
  switch (field.type) {
    case PluginFieldType::kINT8: Copy<int8_t>(field, &value->ints); break;
    case PluginFieldType::kINT16: Copy<int16_t>(field, &value->ints); break;
    case PluginFieldType::kINT32: Copy<int32_t>(field, &value->ints); break;
    case PluginFieldType::kINT64: Copy<int64_t>(field, &value->ints); break;
    case PluginFieldType::kFLOAT32: Copy<float>(field, &value->floats); break;
    case PluginFieldType::kFLOAT64: Copy<double>(field, &value->floats); break;
    case PluginFieldType::kCHAR: {
      const char* const text = static_cast<const char*>(field.data);
      value->type = AttrType::kString;
      value->text.assign(text, strnlen(text, static_cast<size_t>(field.length)));
      return true;
    }
    default: return false;
  }
  const bool one = field.length == 1;
  value->type =
      !value->floats.empty() ? (one ? AttrType::kFloat : AttrType::kFloats) : (one ? AttrType::kInt : AttrType::kInts);
  return true;
}

}  // namespace

bool FieldAttributes::Get(const char* name, AttrValue* value) {
  if (fields_ == nullptr) return false;
  for (int32_t i = 0; i < fields_->nbFields; ++i) {
    const PluginField& field = fields_->fields[i];
    if (field.name != nullptr && std::strcmp(field.name, name) == 0 && field.data != nullptr && field.length >= 0) {
      return Read(field, value);
    }
  }
  return false;
}

void Fields::Add(const std::string& name, const AttrValue& value) {
  Owned& owned = owned_.emplace_back(Owned{name, value, {value.floats.begin(), value.floats.end()}});
  PluginField field;
  switch (value.type) {
    case AttrType::kInt:
    case AttrType::kInts:
      field = {nullptr, owned.value.ints.data(), PluginFieldType::kINT64,
               static_cast<int32_t>(owned.value.ints.size())};
      break;
    case AttrType::kFloat:
    case AttrType::kFloats:
      field = {nullptr, owned.floats.data(), PluginFieldType::kFLOAT32, static_cast<int32_t>(owned.floats.size())};
      break;
    case AttrType::kString:
      field = {nullptr, owned.value.text.c_str(), PluginFieldType::kCHAR,
               static_cast<int32_t>(owned.value.text.size() + 1)};
      break;
  }
  field.name = owned.name.c_str();
  fields_.push_back(field);
}

void Fields::Add(const std::string& name, AttrType type) {
  if (std::any_of(owned_.begin(), owned_.end(), [&](const Owned& known) { return known.name == name; })) return;
  Owned& owned = owned_.emplace_back(Owned{name, {}, {}});
  const bool real = type == AttrType::kFloat || type == AttrType::kFloats;
  const PluginFieldType field_type = type == AttrType::kString ? PluginFieldType::kCHAR
                                     : real                    ? PluginFieldType::kFLOAT32
                                                               : PluginFieldType::kINT32;
  fields_.push_back({owned.name.c_str(), nullptr, field_type, 1});
}

const nvinfer1::PluginFieldCollection* Fields::collection() {
  collection_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
  return &collection_;
}

}  // namespace polyop::tensorrt
