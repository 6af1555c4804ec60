// A line on the terminal that shows that something long is under way.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace polyop::cli {

/// After a second, writes "… 3 s" to stderr and keeps it current; clears it when it goes. Silent when
/// stderr is not a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace polyop::cli
