// Work in a forked child that shares memory with its parent: isolation for engines that exist once per process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace stagecraft {

/// Zeroed doubles shared by a process and the children that it forks later. Throws std::bad_alloc.
class SharedDoubles {
public:
  explicit SharedDoubles(std::size_t count);
  ~SharedDoubles();
  SharedDoubles(const SharedDoubles&) = delete;
  SharedDoubles& operator=(const SharedDoubles&) = delete;

  std::span<double> values() { return {data_, count_}; }
  /// Gives back the memory of these values, which are read no more; what is next to them on a page stays.
  void forget(std::span<const double> values);

private:
  double* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Runs `work` in a forked child and waits for it. An exception there is thrown again here as std::runtime_error with
/// the same text; if the child dies in another way, throws std::logic_error naming the signal or status.
void run_in_child(const std::function<void()>& work);

/// What `work` returns, computed in a forked child that writes nothing to the terminal; nothing when the child throws,
/// dies, or takes longer than `seconds`. For code that may crash. std::runtime_error when there can be no child.
std::optional<std::string> answer_of_child(const std::function<std::string()>& work, unsigned seconds);

} // namespace stagecraft
