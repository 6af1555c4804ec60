// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/simd.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace polyop {
namespace {

std::string LowerName(int64_t target) {
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

// Targets that are compiled in and that this processor supports, best (lowest bit) first.
const std::vector<int64_t>& AvailableTargets() {
  static const std::vector<int64_t> targets = [] {
    std::vector<int64_t> found;
    const int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
    for (int bit = 0; bit < 63; ++bit) {
      if ((usable >> bit) & 1) found.push_back(int64_t{1} << bit);
    }
    return found;
  }();
  return targets;
}

const std::vector<std::string>& Names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int64_t target : AvailableTargets()) all.push_back(LowerName(target));
    return all;
  }();
  return names;
}

std::string& Forced() {
  static std::string name;
  return name;
}

// Reads POLYOP_ISA when the library is loaded, before any kernel can run.
const bool environment_read = [] {
  const char* requested = std::getenv("POLYOP_ISA");
  if (requested == nullptr || *requested == '\0') return true;
  const Status status = ForceIsa(requested);
  if (!status.ok()) std::fprintf(stderr, "polyop: ignoring POLYOP_ISA: %s\n", status.message().c_str());
  return true;
}();

}  // namespace

std::span<const std::string> AvailableIsas() { return Names(); }

std::string CurrentIsa() { return Forced().empty() ? Names().front() : Forced(); }

Status ForceIsa(std::string_view name) {
  AvailableTargets();  // initialises the list before anything is forced
  if (name.empty()) {
    Forced().clear();
    hwy::SetSupportedTargetsForTest(0);
    return Status::Ok();
  }
  for (size_t i = 0; i < Names().size(); ++i) {
    if (Names()[i] != name) continue;
    hwy::SetSupportedTargetsForTest(AvailableTargets()[i]);
    Forced() = name;
    return Status::Ok();
  }
  std::string have;
  for (const std::string& n : Names()) have += (have.empty() ? "" : ", ") + n;
  return InvalidArgument("expected an instruction set of this machine (", have, "), got '", name, "'");
}

}  // namespace polyop
