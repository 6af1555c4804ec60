// SPDX-License-Identifier: Apache-2.0
// Starting programs and loading libraries.
#include "cli/base/process.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "cli/base/failure.h"
#include "platform/library.h"
#include "platform/program.h"

namespace polyop::cli {
namespace {

namespace fs = std::filesystem;

TEST(Process, WordsArriveAsTheyAre) {
  EXPECT_EQ(OutputOf({"printf", "%s|", "a b", "c\"d", "", "back\\slash\\", "ü"}), "a b|c\"d||back\\slash\\|ü|");
}

TEST(Process, StatusesOfPrograms) {
  EXPECT_EQ(ExitStatusOf({"true"}), 0);
  EXPECT_EQ(ExitStatusOf({"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(ExitStatusOf({"sh", "-c", "kill -9 $$"}), -1);
  EXPECT_EQ(ExitStatusOf({"polyop-there-is-no-such-program"}), kNoProgram);
  EXPECT_THROW(OutputOf({"sh", "-c", "echo text; exit 1"}), Failure);
  EXPECT_THROW(RunProgram({"polyop-there-is-no-such-program"}, "", ""), Failure);
}

TEST(Process, LongOutputsArriveWhole) {
  EXPECT_EQ(OutputOf({"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"}), std::string(300000, 'x'));
}

TEST(Process, ATemporaryFolderIsNewAndIsRemoved) {
  fs::path folder;
  {
    const TemporaryFolder one, other;
    folder = fs::path(one.File("file")).parent_path();
    EXPECT_NE(folder, fs::path(other.File("file")).parent_path());
    std::ofstream(one.File("file")) << "text";
    EXPECT_TRUE(fs::exists(folder / "file"));
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST(Process, ThisProgramIsFound) {
  EXPECT_EQ(OwnProgramFile().filename(), ProgramFile("process_test"));
  EXPECT_TRUE(MayExecute(OwnProgramFile()));
}

TEST(Process, ProgramsOnThePath) {
  EXPECT_TRUE(FindOnPath("sh").is_absolute());
  EXPECT_EQ(FindOnPath("polyop-there-is-no-such-program"), fs::path());
}

TEST(Library, AnErrorNamesTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.File(LibraryFile("nothing"));
  std::string error;
  EXPECT_EQ(LoadSharedLibrary(file, &error), nullptr);
  EXPECT_NE(error.find(file), std::string::npos) << error;
  std::ofstream(file) << "not a library";
  EXPECT_EQ(LoadSharedLibrary(file, &error), nullptr);
  EXPECT_NE(error.find(file), std::string::npos) << error;
}

}  // namespace
}  // namespace polyop::cli
