// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/operator.h"

namespace polyop {

/// Random numbers of a distribution whose parameters are given for each element.
struct RandomDistribution {
  enum class Distribution { kPoisson, kGamma, kBinomial };
  Distribution distribution = Distribution::kPoisson;

  static constexpr const char* kName = "random_distribution";
  static constexpr Signature kSignature = "seed: i64[2], a: T[...S], b?: T[...S] -> y: T[...S]";
  static constexpr NodeName kNodes[] = {"polyop::RandomDistribution"};
  static constexpr std::tuple kAttributes = {
      Attr("distribution", &RandomDistribution::distribution,
           R"(poisson: of the rate a; gamma: of the shape (concentration) a and the scale 1; binomial: the number of
           successes in a trials, each of the probability b)")
          .OneOf("poisson", "gamma", "binomial"),
  };
  static constexpr Doc kDoc = {
      .summary = "Draws a random number for each element from a distribution with that element's parameters.",
      .semantics = R"(A function of its inputs: the same seed and parameters give the same numbers, in every runtime and
          for any number of threads. The lower 32 bits of each number of the seed are used. Bits are those of Philox4x32
          with 10 rounds, keyed by the seed and counted by element, so that other seeds, and other elements, give
          independent numbers. Computed in double precision and rounded once. A gamma variate is at least the smallest
          normal number. NaN, negative parameters and probabilities above 1 give NaN. An infinite rate or shape gives
          infinity, an infinite number of trials NaN. A number of trials is rounded down. Only binomial uses `b`.)",
      .source =
          "`torch.poisson`, `torch.binomial`, `torch._standard_gamma`; G. Marsaglia and W. W. Tsang, A simple "
          "method for generating gamma variables; W. Hörmann, The transformed rejection method; J. K. Salmon et "
          "al., Parallel random numbers: as easy as 1, 2, 3",
      .differences = "torch draws from a generator with a state, and rejects negative parameters of Poisson.",
      .not_portable = "ONNX has no loop for each element, whose number of rejections is random.",
  };

  Status CheckInputs(std::span<const AnyTensor> inputs) const {
    const bool given = inputs.size() > 2 && inputs[2].present;
    if (given == (distribution == Distribution::kBinomial)) return Status::Ok();
    return InvalidArgument("'b': expected ", given ? "no tensor" : "a tensor", " for this distribution, got ",
                           given ? "one" : "none");
  }
};

}  // namespace polyop
