// SPDX-License-Identifier: Apache-2.0
// Functions that this system's libstdc++ has, but that of GCC 8 lacks, for OpenVINO's library of portable wheels. They
// are local to the library (adapters/openvino/exports.map). Functions that use a locale's facets cannot be here,
// because facets have numbers that libstdc++ assigns.
#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <sstream>
#include <string>
#include <string_view>

template class std::basic_stringbuf<char>;
template class std::basic_istringstream<char>;
template class std::basic_ostringstream<char>;
template class std::basic_stringstream<char>;

namespace {

// The locale "C", in which numbers have a point.
locale_t Plain() {
  static const locale_t kPlain = newlocale(LC_ALL_MASK, "C", nullptr);
  return kPlain;
}

class InPlainLocale {
 public:
  InPlainLocale() : before_(uselocale(Plain())) {}
  ~InPlainLocale() { uselocale(before_); }
  InPlainLocale(const InPlainLocale&) = delete;
  InPlainLocale& operator=(const InPlainLocale&) = delete;

 private:
  locale_t before_;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the end of "digits[.digits][e[+-]digits]", or `at` if there is no number.
const char* EndOfNumber(const char* at, const char* end) {
  const char* const digits = at;
  while (at != end && IsDigit(*at)) ++at;
  bool any = at != digits;
  if (at != end && *at == '.') {
    const char* const fraction = at + 1;
    const char* stop = fraction;
    while (stop != end && IsDigit(*stop)) ++stop;
    if (any || stop != fraction) at = stop;
    any = any || stop != fraction;
  }
  if (!any) return digits;
  if (at != end && (*at == 'e' || *at == 'E')) {
    const char* exponent = at + 1;
    if (exponent != end && (*exponent == '+' || *exponent == '-')) ++exponent;
    const char* stop = exponent;
    while (stop != end && IsDigit(*stop)) ++stop;
    if (stop != exponent) at = stop;
  }
  return at;
}

bool StartsWith(const char* at, const char* end, std::string_view word) {
  return static_cast<size_t>(end - at) >= word.size() &&
         std::equal(word.begin(), word.end(), at, [](char a, char b) { return a == (b | 0x20); });
}

}  // namespace

namespace std {

void __throw_bad_array_new_length() { throw bad_array_new_length(); }

// The shortest text that from_chars reads as the same number.
to_chars_result to_chars(char* first, char* last, double value) noexcept {
  char text[32];
  int size = 0;
  if (!isfinite(value)) {
    size = snprintf(text, sizeof text, "%s%s", signbit(value) ? "-" : "", isnan(value) ? "nan" : "inf");
  } else {
    const InPlainLocale plain;
    constexpr int kMaxDigits = 17;  // always enough
    constexpr int kMaxLength = 24;  // of "%e"
    int digits = 1;
    do {
      size = snprintf(text, sizeof text, "%.*e", digits - 1, value);
    } while (strtod_l(text, nullptr, Plain()) != value && ++digits <= kMaxDigits);
    const int exponent = atoi(strchr(text, 'e') + 1);
    char fixed[32];
    if (exponent >= -5 && exponent < kMaxLength) {  // longer ones are not the shortest
      const int length = snprintf(fixed, sizeof fixed, "%.*f", max(0, digits - 1 - exponent), value);
      if (length <= size && strtod_l(fixed, nullptr, Plain()) == value) {
        memcpy(text, fixed, static_cast<size_t>(length) + 1);
        size = length;
      }
    }
  }
  if (last - first < size) return {last, errc::value_too_large};
  memcpy(first, text, static_cast<size_t>(size));
  return {first + size, errc()};
}

// For chars_format::general.
from_chars_result from_chars(const char* first, const char* last, double& value, chars_format) noexcept {
  const char* at = first;
  if (at != last && *at == '-') ++at;
  const char* end = EndOfNumber(at, last);
  if (end == at) {
    for (const string_view word : {"infinity", "inf", "nan"}) {
      if (end == at && StartsWith(at, last, word)) end = at + word.size();
    }
  }
  if (end == at) return {first, errc::invalid_argument};
  errno = 0;
  const double read = strtod_l(string(first, end).c_str(), nullptr, Plain());
  if (errno == ERANGE && (isinf(read) || read == 0)) return {end, errc::result_out_of_range};
  value = read;
  return {end, errc()};
}

}  // namespace std
