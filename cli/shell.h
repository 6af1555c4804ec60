// SPDX-License-Identifier: Apache-2.0
// Texts for shells: completion and manual pages. Both come from the help texts of the commands.
#pragma once

#include <string>
#include <vector>

namespace polyop::cli {

struct CommandSummary {
  std::string name, text;
};

/// Returns a script for bash, zsh or fish. It completes the commands, and takes the options of a command from its
/// --help.
std::string CompletionScript(const std::string& shell, const std::vector<CommandSummary>& commands);

/// Returns the manual page of a command, or of the program if `command` is empty, in the format of man. Throws Failure
/// (kUsage) if there is no such command.
std::string ManualPage(const std::vector<CommandSummary>& commands, const std::string& command);

}  // namespace polyop::cli
