// Words for people: tables, colours, the nearest name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace polyop::cli {

/// Columns aligned by their widest cell; the header underlined. Cells may hold UTF-8.
std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
/// The same as a Markdown table.
std::string MarkdownTable(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

/// True if stdout (or stderr) is a terminal and NO_COLOR is not set.
bool ColorsOnStdout();
bool ColorsOnStderr();
std::string Bold(const std::string& text);  // on stdout
std::string Green(const std::string& text);
std::string Red(const std::string& text);

/// The candidate with the smallest edit distance (case ignored), or "" if none is near.
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

std::string Join(const std::vector<std::string>& parts, std::string_view separator);
/// By a format of printf for one double.
std::string NumberText(double value, const char* format);
/// "1.5 MB"
std::string BytesText(double bytes);
/// "3.2 ms", "1.40 s"
std::string TimeText(double seconds);

}  // namespace polyop::cli
