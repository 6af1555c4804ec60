// SPDX-License-Identifier: Apache-2.0
// Text for terminals: tables, colours, suggestions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

/// Returns the text with control characters as \u001b, and bytes that are not UTF-8 as \xff: names in a model must not
/// move the cursor, rename the window or hide text. Keeps polyop's colours. In JSON, where control characters are only
/// in strings, the result means the same.
std::string Escaped(std::string_view text);
/// Like Escaped, but keeps line breaks and tabs.
std::string EscapedLines(std::string_view text);
/// From then on, std::cout and std::cerr write EscapedLines() of what they get.
void EscapeOutput();

/// Returns a table with aligned columns and an underlined header. Cells may contain UTF-8, and are escaped.
std::string Table(const std::vector<std::string>& header, std::vector<std::vector<std::string>> rows);
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

/// Returns the text with letters of ASCII in lower case.
std::string Lower(std::string_view text);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
/// Returns the first columns of a line, with "…" in place of the rest; 0 columns means all.
std::string Shortened(const std::string& line, int columns);
/// Formats a number by a format of printf for one double.
std::string NumberText(double value, const char* format);
/// Returns "1.5 MB".
std::string BytesText(double bytes);
/// Returns "3.2 ms" or "1.40 s".
std::string TimeText(double seconds);

}  // namespace polyop::cli
