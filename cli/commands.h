// The subcommands. Each adds itself to the command line; `run` is set to what shall happen after parsing.
#pragma once

#include <functional>

#include "CLI/CLI.hpp"

namespace polyop::cli {

/// What a parsed command does; returns the exit code.
using Action = std::function<int()>;

void AddRunCommand(CLI::App& app, Action& action);
void AddInspectCommand(CLI::App& app, Action& action);
void AddVerifyCommand(CLI::App& app, Action& action);
void AddBenchCommand(CLI::App& app, Action& action);
void AddOpsCommand(CLI::App& app, Action& action);
void AddNewCommand(CLI::App& app, Action& action);

}  // namespace polyop::cli
