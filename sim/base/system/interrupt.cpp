// A signal may come between any two instructions: its handler sees only lock-free atomics and fixed arrays, and calls
// only what POSIX allows there. Hence the only variables of sim/ that belong to the whole process.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/interrupt.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstring>

#include "sim/base/error.hpp"

namespace stagecraft {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM};

struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<pid_t> owner = 0; // the process that writes the file, not its children; 0: the name is not complete
  std::array<char, UnfinishedFile::kLongestName + 1> name{};
};

std::array<Slot, UnfinishedFile::kMost> slots;
std::atomic<void (*)()> end_program = nullptr;
std::atomic<bool> is_noting = false;
std::atomic<bool> was_noted = false;

static_assert(std::atomic<pid_t>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<void (*)()>::is_always_lock_free);

void note_or_end(int /*signal*/) {
  if (is_noting.exchange(false)) {
    was_noted = true;
    return;
  }
  for (const Slot& slot : slots) {
    if (slot.owner == getpid()) {
      unlink(slot.name.data());
    }
  }
  end_program.load()(); // no destructors run: they may wait for what this signal has stopped
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) {
    sigaddset(&action.sa_mask, signal);
  }
  for (const int signal : kSignals) {
    sigaction(signal, &action, nullptr);
  }
}

std::size_t take_slot() {
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].taken.exchange(true)) {
      return i;
    }
  }
  check(false, "more files are being written than an interrupt can remove");
  return slots.size();
}

} // namespace

void on_interrupt(void (*end)()) {
  end_program = end;
  handle(note_or_end);
}

void ignore_interrupts() { handle(SIG_IGN); }

InterruptNote::InterruptNote() {
  was_noted = false;
  is_noting = true;
}

InterruptNote::~InterruptNote() { is_noting = false; }

bool InterruptNote::was_interrupted() const { return was_noted; }

UnfinishedFile::UnfinishedFile(const char* name) {
  const std::size_t length = std::strlen(name);
  check(length <= kLongestName, "the name of a file that is being written is too long");
  slot_ = take_slot();
  std::memcpy(slots[slot_].name.data(), name, length + 1);
  slots[slot_].owner = getpid();
}

UnfinishedFile::~UnfinishedFile() {
  slots[slot_].owner = 0;
  slots[slot_].taken = false;
}

} // namespace stagecraft
