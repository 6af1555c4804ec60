// SPDX-License-Identifier: Apache-2.0
#include "cli/shell.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cli/base/failure.h"
#include "cli/base/process.h"
#include "cli/base/text.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

// In --help, an option begins a line: "  -i,--input TEXT …" or "  -i, --input NAME".
constexpr const char* kOptionsOfHelp = R"sh(sed -nE 's/^ +(-[A-Za-z],? *)?(--[a-z][a-z0-9-]*).*/\2/p')sh";

constexpr const char* kBash = R"sh(# Completes polyop's commands and options in bash.
_polyop() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@commands@" -- "$word"))
  elif [[ "$word" == -* ]]; then
    COMPREPLY=($(compgen -W "$(polyop "${COMP_WORDS[1]}" --help 2>/dev/null | @options@)" -- "$word"))
  elif [[ "${COMP_WORDS[1]}" == help || "${COMP_WORDS[1]}" == man ]]; then
    COMPREPLY=($(compgen -W "@commands@" -- "$word"))
  fi
}
complete -o default -F _polyop polyop
)sh";

constexpr const char* kZsh = R"sh(#compdef polyop
# Completes polyop's commands and options in zsh.
_polyop() {
  if (( CURRENT == 2 )) || [[ "$words[2]" == (help|man) ]]; then
    compadd -- @commands@
  elif [[ "$words[CURRENT]" == -* ]]; then
    compadd -- $(polyop "$words[2]" --help 2>/dev/null | @options@)
  else
    _files
  fi
}
if [[ "$funcstack[1]" == _polyop ]]; then
  _polyop
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _polyop polyop
fi
)sh";

constexpr const char* kFish = R"sh(# Completes polyop's commands and options in fish.
@each@
complete -c polyop -n "__fish_seen_subcommand_from help man" -f -a "@commands@"
complete -c polyop -n "string match -q -- '-*' (commandline -ct); and test (count (commandline -opc)) -ge 2" \
  -a "(polyop (commandline -opc)[2] --help 2>/dev/null | @options@)"
)sh";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Returns text for man: backslashes escaped, and lines that begin like a request protected.
std::string Escaped(const std::string& text) {
  std::string escaped;
  std::istringstream lines(Replaced(Replaced(text, "\\", "\\e"), "-", "\\-"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(".") || line.starts_with("'")) escaped += "\\&";
    escaped += line + "\n";
  }
  return escaped;
}

}  // namespace

std::string CompletionScript(const std::string& shell, const std::vector<CommandSummary>& commands) {
  std::vector<std::string> names, lines;
  for (const CommandSummary& command : commands) {
    names.push_back(command.name);
    lines.push_back("complete -c polyop -n __fish_use_subcommand -f -a " + command.name + " -d '" +
                    Replaced(command.text, "'", "\\'") + "'");
  }
  std::string script = shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish;
  script = Replaced(script, "@commands@", Join(names, " "));
  script = Replaced(script, "@each@", Join(lines, "\n"));
  return Replaced(script, "@options@", kOptionsOfHelp);
}

std::string ManualPage(const std::vector<CommandSummary>& commands, const std::string& command) {
  const auto is_it = [&](const CommandSummary& known) { return known.name == command; };
  const auto found = std::find_if(commands.begin(), commands.end(), is_it);
  if (found == commands.end() && !command.empty()) {
    throw Failure(kUsage, "polyop has no command '" + command + "'", "`polyop --help` lists all");
  }
  std::vector<std::string> words = {OwnProgramFile().string()};
  if (!command.empty()) words.push_back(command);
  words.emplace_back("--help");
  const std::string title = command.empty() ? "polyop" : "polyop-" + command;
  const std::string summary = command.empty() ? "operators for ONNX models" : found->text;
  return ".TH " + title + " 1\n.SH NAME\n" + Escaped(title + " - " + summary) + ".SH DESCRIPTION\n.nf\n" +
         Escaped(OutputOf(words)) + ".fi\n";
}

}  // namespace polyop::cli
