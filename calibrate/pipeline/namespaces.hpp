// Network namespaces without names: each lives as long as a file descriptor of this process, so that nothing of it
// remains after the process, however that ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace stagecraft::pipeline {

/// A network of its own, with nothing but a loopback device. Throws Unavailable if the system does not grant it.
class NetworkNamespace {
public:
  NetworkNamespace();
  ~NetworkNamespace();
  NetworkNamespace(NetworkNamespace&& other) noexcept;
  NetworkNamespace(const NetworkNamespace&) = delete;
  NetworkNamespace& operator=(const NetworkNamespace&) = delete;

  /// Runs `work` on a thread inside the namespace. Sockets made there stay inside; exceptions are thrown here.
  void inside(const std::function<void()>& work) const;
  /// Gives a list of commands to a program of iproute2, "ip" or "tc". Throws Unavailable with the program's complaint.
  void batch(const char* program, const std::string& commands) const;
  /// Path under which other programs find the namespace.
  std::string path() const;

private:
  int descriptor_ = -1;
};

} // namespace stagecraft::pipeline
