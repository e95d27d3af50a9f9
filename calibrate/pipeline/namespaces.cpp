// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/namespaces.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "sim/base/system/command.hpp"

#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {
namespace {

// Runs `work` on a thread of its own, since namespaces belong to threads; throws its exception here.
void on_a_thread(const std::function<void()>& work) {
  std::exception_ptr failure;
  std::thread thread([&] {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

} // namespace

NetworkNamespace::NetworkNamespace() {
  on_a_thread([this] {
    if (unshare(CLONE_NEWNET) != 0) {
      throw Unavailable(std::string("no network namespaces: ") + std::strerror(errno) + "; they are root's to make");
    }
    descriptor_ = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      throw Unavailable(std::string("cannot open a network namespace: ") + std::strerror(errno));
    }
  });
}

NetworkNamespace::~NetworkNamespace() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

NetworkNamespace::NetworkNamespace(NetworkNamespace&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

void NetworkNamespace::inside(const std::function<void()>& work) const {
  on_a_thread([&] {
    if (setns(descriptor_, CLONE_NEWNET) != 0) {
      throw Unavailable(std::string("cannot enter a network namespace: ") + std::strerror(errno));
    }
    work();
  });
}

void NetworkNamespace::batch(const char* program, const std::string& commands) const {
  inside([&] {
    const CommandAnswer answer = run_command({{program, "-batch", "-"}, "/"}, commands);
    if (!answer.why_not.empty()) {
      throw Unavailable(std::string(program) + " of iproute2: " + answer.why_not);
    }
  });
}

std::string NetworkNamespace::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_);
}

} // namespace stagecraft::pipeline
