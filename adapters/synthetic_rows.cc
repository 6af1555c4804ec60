// SPDX-License-Identifier: Apache-2.0
#include "adapters/synthetic_rows.h"

#include <random>
#include <string_view>

namespace {

constexpr double kPi = 3.14159265358979323846;

// Appends numbers to `end`.
class Drawer {
 public:
  Drawer(uint32_t seed, int64_t integer_bound, double* end) : rng_(seed), integer_bound_(integer_bound), end_(end) {}

  void Add(int count, double from, double to) {
    for (int i = 0; i < count; ++i) *end_++ = from + (to - from) * static_cast<double>(rng_() >> 8) * 0x1p-24;
  }
  void AddIndex() { *end_++ = static_cast<double>(rng_() % static_cast<uint64_t>(integer_bound_)); }
  void AddBox() {
    Add(2, 0, 32);
    const double x = end_[-2], y = end_[-1];
    Add(1, x + 1, x + 33);
    Add(1, y + 1, y + 33);
  }
  void AddRotatedBox() {
    Add(2, 16, 48);
    Add(2, 1, 33);
    Add(1, -kPi / 2, kPi / 2);
  }
  void AddBox3d() {
    Add(3, 0, 8);
    Add(3, 1, 4);
    Add(1, -kPi, kPi);
  }
  void AddQuadrilateral() {
    AddBox();
    const double x1 = end_[-4], y1 = end_[-3], x2 = end_[-2], y2 = end_[-1];
    end_ -= 4;
    for (const double value : {x1, y1, x2, y1, x2, y2, x1, y2}) *end_++ = value;
  }

 private:
  std::mt19937 rng_;
  int64_t integer_bound_;
  double* end_;
};

struct Role {
  std::string_view name;
  int columns;
  void (*add)(Drawer&);
};

constexpr Role kRoles[] = {
    {"boxes", 4, [](Drawer& d) { d.AddBox(); }},
    {"rotated_boxes", 5, [](Drawer& d) { d.AddRotatedBox(); }},
    {"boxes3d", 7, [](Drawer& d) { d.AddBox3d(); }},
    {"quadrilaterals", 8, [](Drawer& d) { d.AddQuadrilateral(); }},
    {"rois", 5, [](Drawer& d) { d.AddIndex(), d.AddBox(); }},
    {"rotated_rois", 6, [](Drawer& d) { d.AddIndex(), d.AddRotatedBox(); }},
    {"bezier_rois", 17, [](Drawer& d) { d.AddIndex(), d.Add(16, 0, 64); }},
    {"batch_index", 1, [](Drawer& d) { d.AddIndex(); }},
    {"points", 1, [](Drawer& d) { d.Add(1, 0, 8); }},
    {"decay_rates", 1, [](Drawer& d) { d.Add(1, -4, 0); }},
    {"step_sizes", 1, [](Drawer& d) { d.Add(1, 0, 0.5); }},
};

}  // namespace

extern "C" int polyop_draw_rows(const char* role, int64_t rows, int64_t integer_bound, uint32_t seed, double* values) {
  for (const Role& known : kRoles) {
    if (known.name != role) continue;
    Drawer drawer(seed, integer_bound, values);
    for (int64_t row = 0; values != nullptr && row < rows; ++row) known.add(drawer);
    return known.columns;
  }
  return 0;
}
