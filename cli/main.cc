// polyop: runs, inspects and explains ONNX models with custom operators, and starts new ones.
#include <iostream>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/text.h"

namespace {

constexpr const char* kDescription =
    "polyop: write an operator once in C++; run it in PyTorch, ONNX Runtime and TensorRT.";
constexpr const char* kFooter =
    "Examples:\n"
    "  polyop inspect model.onnx                      what the model needs, and who provides it\n"
    "  polyop inspect model.onnx --html model.html    a picture of the graph\n"
    "  polyop run srcnn3.onnx -i input=photo.png -o output=large.png --set factor=1,1,3,3\n"
    "  polyop run model.onnx -i x=x.npy -o y=y.npy --threads 2 --repeat 20\n"
    "  polyop verify model.onnx -i x=x.npy --layers   against the naive kernels, node by node\n"
    "  polyop bench model.onnx --layers               how long it takes, and which nodes take it\n"
    "  polyop ops roi_align                           one operator: shapes, attributes, semantics\n"
    "  polyop new my_op                               the folder of a new operator, ready to build\n"
    "\n"
    "Exit codes:\n"
    "  0  done                                  3  a file is missing, damaged or of the wrong kind\n"
    "  1  the model failed, or departs          4  the model needs operators that nobody provides\n"
    "  2  the command line is wrong             5  ONNX Runtime is missing or too old";

int Report(const std::string& message, const std::string& hint, int code) {
  const bool colors = polyop::cli::ColorsOnStderr();
  std::cerr << (colors ? "\033[1;31m" : "") << "polyop: error: " << (colors ? "\033[0m" : "") << message << "\n";
  if (!hint.empty()) std::cerr << "  hint: " << hint << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{kDescription, "polyop"};
  app.set_version_flag("--version", std::string("polyop ") + POLYOP_VERSION);
  app.require_subcommand(1);
  app.footer(kFooter);
  polyop::cli::Action action;
  polyop::cli::AddRunCommand(app, action);
  polyop::cli::AddInspectCommand(app, action);
  polyop::cli::AddVerifyCommand(app, action);
  polyop::cli::AddBenchCommand(app, action);
  polyop::cli::AddOpsCommand(app, action);
  polyop::cli::AddNewCommand(app, action);
  if (argc == 1) {
    std::cout << app.help();
    return polyop::cli::kUsage;
  }
  try {
    app.parse(argc, argv);
    return action();
  } catch (const CLI::Success& e) {
    return app.exit(e);  // --help, --version
  } catch (const CLI::ParseError& e) {
    return Report(e.what(), "see `polyop --help`, or --help after a command", polyop::cli::kUsage);
  } catch (const polyop::cli::Failure& e) {
    return Report(e.what(), e.hint(), e.code());
  } catch (const std::bad_alloc&) {
    return Report("out of memory", "", polyop::cli::kFailed);
  } catch (const std::exception& e) {
    return Report(e.what(), "", polyop::cli::kFailed);
  }
}
