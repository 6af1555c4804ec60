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

// Targets that were compiled in and that this processor has, best (lowest bit) first.
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
  const char* wanted = std::getenv("POLYOP_ISA");
  if (wanted == nullptr || *wanted == '\0') return true;
  const Status status = ForceIsa(wanted);
  if (!status.ok()) std::fprintf(stderr, "polyop: POLYOP_ISA is ignored: %s\n", status.message().c_str());
  return true;
}();

}  // namespace

std::span<const std::string> AvailableIsas() { return Names(); }

std::string CurrentIsa() { return Forced().empty() ? Names().front() : Forced(); }

Status ForceIsa(std::string_view name) {
  AvailableTargets();  // looked up before anything is forced
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
  return InvalidArgument("instruction set '", name, "' is unknown or not available here; wanted one of ", have);
}

}  // namespace polyop
