// SPDX-License-Identifier: Apache-2.0
// A line on the terminal that shows the progress of a long task.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace polyop::cli {

/// Writes "TASK … 3 s" to stderr, from the first second on and every second. The destructor clears the line. Writes
/// nothing if stderr is not a terminal.
class Progress {
 public:
  explicit Progress(const std::string& name);
  ~Progress();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace polyop::cli
