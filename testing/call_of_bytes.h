// SPDX-License-Identifier: Apache-2.0
// Decodes bytes of libFuzzer, or of fuzz/corpus, into a random call.
#pragma once

#include <cstdint>
#include <span>

#include "testing/random_call.h"

namespace polyop::testing {

/// Returns the call that the bytes encode. The first two bytes seed a generator that provides the draws after the end
/// of the bytes (a seed of 0 gives zeros), so that few bytes fill large tensors; the other bytes are the draws.
RandomCall CallOfBytes(const Op& op, std::span<const uint8_t> bytes);

}  // namespace polyop::testing
