// What an interrupt does: the one place that handles SIGINT, and SIGTERM, by which a batch system says that time is up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace stagecraft {

/// From now on an interrupt removes the unfinished files and then calls `end`, which ends the program at once, by
/// _exit().
void on_interrupt(void (*end)());

/// From now on this process takes no notice of interrupts: its parent ends it.
void ignore_interrupts();

/// While it exists, the first interrupt is only noted, so that work can end in good order; the second one ends the
/// program as always. At most one exists at a time.
class InterruptNote {
public:
  InterruptNote();
  ~InterruptNote();
  InterruptNote(const InterruptNote&) = delete;
  InterruptNote& operator=(const InterruptNote&) = delete;

  bool was_interrupted() const;
};

/// A name that an interrupt of this process removes while this object exists. It must exist before the file does.
class UnfinishedFile {
public:
  static constexpr std::size_t kMost = 8; ///< how many may exist at a time
  static constexpr std::size_t kLongestName = 4095;

  /// Throws std::logic_error for more of them, or for longer names, than there may be.
  explicit UnfinishedFile(const char* name);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

private:
  std::size_t slot_ = 0;
};

} // namespace stagecraft
