// Network namespaces without names: each lives as long as a file descriptor of this process, so that nothing of it can
// outlive the process, however that ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace stagecraft::pipeline {

/// A network of its own, with nothing in it but a loopback device. Throws Unavailable where this is not granted.
class NetworkNamespace {
public:
  NetworkNamespace();
  ~NetworkNamespace();
  NetworkNamespace(NetworkNamespace&& other) noexcept;
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  /// Runs `work` on a thread inside. Sockets made there stay inside; what it throws is thrown here.
  void inside(const std::function<void()>& work) const;
  /// Runs a program of iproute2, "ip" or "tc", on a list of its commands. Throws Unavailable with what it complains of.
  void batch(const char* program, const std::string& commands) const;
  /// Where other programs find it.
  std::string path() const;

private:
  int descriptor_ = -1;
};

} // namespace stagecraft::pipeline
