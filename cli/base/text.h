// Text for terminals: tables, colours, suggestions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

/// Returns a table with aligned columns and an underlined header. Cells may contain UTF-8.
std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
/// Returns a table in Markdown.
std::string MarkdownTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// Returns true if stdout or stderr is a terminal and NO_COLOR is not set.
bool ColorsOnStdout();
bool ColorsOnStderr();
/// For stdout.
std::string Bold(const std::string& text);
std::string Green(const std::string& text);
std::string Red(const std::string& text);

/// Returns the candidate with the smallest edit distance, ignoring case, or "" if none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);
/// Formats a number by a format of printf for one double.
std::string NumberText(double value, const char* format);
/// Returns "1.5 MB".
std::string BytesText(double bytes);
/// Returns "3.2 ms" or "1.40 s".
std::string TimeText(double seconds);

}  // namespace polyop::cli
