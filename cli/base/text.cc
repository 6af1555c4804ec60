// SPDX-License-Identifier: Apache-2.0
#include "cli/base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <numeric>
#include <streambuf>
#include <utility>

#include "platform/program.h"

namespace polyop::cli {
namespace {

bool Colors(int output) { return IsTerminal(output) && std::getenv("NO_COLOR") == nullptr; }

std::string Painted(const char* code, const std::string& text) {
  return ColorsOnStdout() ? std::string("\033[") + code + "m" + text + "\033[0m" : text;
}

// Returns the width on a terminal. Escape sequences and UTF-8 continuation bytes have none.
size_t Width(const std::string& text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else {
      width += (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    }
  }
  return width;
}

constexpr std::string_view kColors[] = {"\033[0m", "\033[1m", "\033[31m", "\033[32m", "\033[1;31m"};

// Returns the length of the UTF-8 character at the start, or 0 if there is none, and its code.
size_t Decode(std::string_view text, uint32_t* code) {
  constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // the smallest code of a length
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80         ? 1
                        : byte(0) >> 5 == 0x6  ? 2
                        : byte(0) >> 4 == 0xE  ? 3
                        : byte(0) >> 3 == 0x1E ? 4
                                               : 0;
  if (length == 0 || length > text.size()) return 0;
  *code = length == 1 ? byte(0) : byte(0) & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    *code = *code << 6 | (byte(i) & 0x3Fu);
  }
  const bool valid = *code >= kFirst[length] && *code <= 0x10FFFF && (*code < 0xD800 || *code > 0xDFFF);
  return valid ? length : 0;
}

// Returns true for control characters, and for those that change the direction of text.
bool IsControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x61C || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string EscapedText(std::string_view text, bool keep_lines) {
  std::string escaped;
  while (!text.empty()) {
    const auto color = std::find_if(std::begin(kColors), std::end(kColors),
                                    [&](std::string_view known) { return text.starts_with(known); });
    uint32_t code = 0;
    size_t length = color != std::end(kColors) ? color->size() : Decode(text, &code);
    char written[8];
    if (length == 0) {
      length = 1;
      std::snprintf(written, sizeof written, "\\x%02x", static_cast<unsigned char>(text[0]));
      escaped += written;
    } else if (color == std::end(kColors) && IsControl(code) && !(keep_lines && (code == '\n' || code == '\t'))) {
      std::snprintf(written, sizeof written, "\\u%04x", code);
      escaped += written;
    } else {
      escaped += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  return escaped;
}

// Escapes what it passes on to another buffer. Keeps the start of a character until its end comes.
class EscapingBuffer : public std::streambuf {
 public:
  explicit EscapingBuffer(std::streambuf* to) : to_(to) {}

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }

  std::streamsize xsputn(const char* text, std::streamsize count) override {
    constexpr size_t kLongest = 4;
    pending_.append(text, static_cast<size_t>(count));
    size_t ready = pending_.size();
    for (size_t back = 1; back < kLongest && back <= pending_.size(); ++back) {
      const auto byte = static_cast<unsigned char>(pending_[pending_.size() - back]);
      if ((byte & 0xC0) == 0x80) continue;
      const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      if (length > back) ready = pending_.size() - back;
      break;
    }
    return Pass(ready) ? count : 0;
  }

  int sync() override { return Pass(pending_.size()) && to_->pubsync() == 0 ? 0 : -1; }

 private:
  bool Pass(size_t count) {
    const std::string escaped = EscapedLines(std::string_view(pending_).substr(0, count));
    pending_.erase(0, count);
    return to_->sputn(escaped.data(), static_cast<std::streamsize>(escaped.size())) ==
           static_cast<std::streamsize>(escaped.size());
  }

  std::streambuf* to_;
  std::string pending_;
};

// Returns the edit distance. Two exchanged neighbours, as in --htlm, are one edit.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);  // of i - 2, i - 1 and i
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j - 1] + (a[i - 1] != b[j - 1]), last[j] + 1, row[j - 1] + 1});
      const bool are_exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (are_exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Escaped(std::string_view text) { return EscapedText(text, /*keep_lines=*/false); }
std::string EscapedLines(std::string_view text) { return EscapedText(text, /*keep_lines=*/true); }

void EscapeOutput() {
  for (std::ostream* stream : {&std::cout, &std::cerr}) {
    stream->rdbuf(new EscapingBuffer(stream->rdbuf()));  // lives as long as the stream, which is flushed at exit
  }
}

std::string Table(const std::vector<std::string>& header, std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = Escaped(cell);
  }
  std::vector<size_t> widths(header.size());
  std::transform(header.begin(), header.end(), widths.begin(), Width);
  for (const auto& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Width(row[c]));
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (size_t c = 0; c < cells.size(); ++c) {
      text += "  " + cells[c];
      if (c + 1 < cells.size()) text += std::string(widths[c] - Width(cells[c]), ' ');
    }
    return text + "\n";
  };
  std::string text = line(header);
  std::vector<std::string> rule(widths.size());
  for (size_t c = 0; c < widths.size(); ++c) rule[c].assign(widths[c], '-');
  text += line(rule);
  for (const auto& row : rows) text += line(row);
  return text;
}

std::string MarkdownTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (std::string cell : cells) {
      for (size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, "\\");
      text += " " + cell + " |";
    }
    return text + "\n";
  };
  return line(header) + line(std::vector<std::string>(header.size(), "---")) +
         std::accumulate(rows.begin(), rows.end(), std::string(),
                         [&](std::string all, const auto& row) { return std::move(all) + line(row); });
}

bool ColorsOnStdout() { return Colors(1); }
bool ColorsOnStderr() { return Colors(2); }
std::string Bold(const std::string& text) { return Painted("1", text); }
std::string Green(const std::string& text) { return Painted("32", text); }
std::string Red(const std::string& text) { return Painted("31", text); }

std::string Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(Lower(word), Lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string Shortened(const std::string& line, int columns) {
  if (columns <= 0 || Width(line) <= static_cast<size_t>(columns)) return line;
  std::string text;
  for (const char c : line) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && Width(text) + 1 >= static_cast<size_t>(columns)) break;
    text += c;
  }
  return text + "…";
}

std::string NumberText(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string BytesText(double bytes) {
  char text[32];
  if (bytes < 1e6) {
    std::snprintf(text, sizeof(text), "%.1f kB", bytes / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.1f MB", bytes / 1e6);
  }
  return text;
}

std::string TimeText(double seconds) {
  char text[32];
  if (seconds < 1) {
    std::snprintf(text, sizeof(text), "%.2f ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.2f s", seconds);
  }
  return text;
}

}  // namespace polyop::cli
