// SPDX-License-Identifier: Apache-2.0
// Conversions between OpenVINO's and polyop's element types.
#pragma once

#include <openvino/core/type/element_type.hpp>
#include <optional>

#include "core/dtype.h"

namespace polyop::openvino {

/// Returns nullopt for a type that is not known yet or not supported.
inline std::optional<DType> FromOpenVino(const ov::element::Type& type) {
  switch (static_cast<ov::element::Type_t>(type)) {
    case ov::element::Type_t::f32: return DType::kF32;
    case ov::element::Type_t::f16: return DType::kF16;
    case ov::element::Type_t::bf16: return DType::kBF16;
    case ov::element::Type_t::f64: return DType::kF64;
    case ov::element::Type_t::i8: return DType::kI8;
    case ov::element::Type_t::u8: return DType::kU8;
    case ov::element::Type_t::i16: return DType::kI16;
    case ov::element::Type_t::i32: return DType::kI32;
    case ov::element::Type_t::i64: return DType::kI64;
    case ov::element::Type_t::boolean: return DType::kBool;
    default: return std::nullopt;
  }
}

inline ov::element::Type ToOpenVino(DType dtype) {
  switch (dtype) {
    case DType::kF32: return ov::element::f32;
    case DType::kF16: return ov::element::f16;
    case DType::kBF16: return ov::element::bf16;
    case DType::kF64: return ov::element::f64;
    case DType::kI8: return ov::element::i8;
    case DType::kU8: return ov::element::u8;
    case DType::kI16: return ov::element::i16;
    case DType::kI32: return ov::element::i32;
    case DType::kI64: return ov::element::i64;
    case DType::kBool: break;
  }
  return ov::element::boolean;
}

}  // namespace polyop::openvino
