// Integers as wide as an element: for kernels that copy elements and do not look at them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace polyop {

template <size_t kBytes>
using WordOfSize =
    std::conditional_t<kBytes == 1, uint8_t,
                       std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

/// Fewer types mean fewer kernels to compile: f32 and i32 are copied alike.
template <class T>
using WordOf = WordOfSize<sizeof(T)>;

}  // namespace polyop
