// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <chrono>
#include <cstdio>

#include "cli/base/text.h"
#include "platform/program.h"

namespace polyop::cli {

Progress::Progress(const std::string& name) {
  if (!IsTerminal(2)) return;
  thread_ = std::thread([this, task = Escaped(name)] {
    std::unique_lock lock(mutex_);
    for (int seconds = 1; !wake_.wait_for(lock, std::chrono::seconds(1), [&] { return done_; }); ++seconds) {
      std::fprintf(stderr, "\r%s … %d s", task.c_str(), seconds);
      std::fflush(stderr);
    }
    std::fprintf(stderr, "\r\033[K");
  });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

}  // namespace polyop::cli
