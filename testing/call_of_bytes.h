// A random call as bytes: what libFuzzer changes, and what fuzz/corpus keeps.
#pragma once

#include <cstdint>
#include <span>

#include "testing/random_call.h"

namespace polyop::testing {

/// The call of an operator that the bytes say. Two of them seed what is drawn after the end of the others (zeros for
/// 0), so that a few fill large tensors; the others are drawn from.
RandomCall CallOfBytes(const Op& op, std::span<const uint8_t> bytes);

}  // namespace polyop::testing
