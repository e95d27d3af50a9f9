// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/clock.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>

namespace stagecraft::pipeline {
namespace {

constexpr Nanoseconds kLook = 100'000'000;

Nanoseconds read(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * kNanosecondsPerSecond + time.tv_nsec;
}

} // namespace

Nanoseconds nanoseconds(Seconds time) { return static_cast<Nanoseconds>(time.value * kNanosecondsPerSecond); }

Seconds seconds(Nanoseconds time) { return Seconds{static_cast<double>(time) / kNanosecondsPerSecond}; }

Nanoseconds now() { return read(CLOCK_MONOTONIC); }

Nanoseconds processor_time() { return read(CLOCK_THREAD_CPUTIME_ID); }

void sleep_until(Nanoseconds then, const std::atomic<bool>& stop) {
  for (Nanoseconds time = now(); time < then && !stop.load(std::memory_order_relaxed); time = now()) {
    const Nanoseconds until = std::min(then, time + kLook);
    const timespec end{until / kNanosecondsPerSecond, until % kNanosecondsPerSecond};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr);
  }
}

bool ask_for_real_time(int above) {
  prctl(PR_SET_TIMERSLACK, 1UL); // nanoseconds; for threads without real-time priority
  sched_param parameters{};
  parameters.sched_priority = sched_get_priority_min(SCHED_FIFO) + above;
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) == 0;
}

} // namespace stagecraft::pipeline
