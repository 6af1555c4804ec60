#include "cli/base/text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <numeric>
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

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return lower;
}

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

std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
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

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
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
