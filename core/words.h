// SPDX-License-Identifier: Apache-2.0
// Unsigned integers of the size of an element, for kernels that copy elements without interpreting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace polyop {

template <size_t kBytes>
using WordOfSize =
    std::conditional_t<kBytes == 1, uint8_t,
                       std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

/// The integer of T's size. f32 and i32 then share one instantiation, so fewer kernels are compiled.
template <class T>
using WordOf = WordOfSize<sizeof(T)>;

}  // namespace polyop
