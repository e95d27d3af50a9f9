// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cpu/team.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>

namespace stagecraft::cpu {
namespace {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

long switches_of_thread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// The processor's clock is read innermost.
template <class Run> Reading timed(const Run& run) {
  const long switches = switches_of_thread();
  const double wall = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
  run();
  const double cpu_end = seconds_of(CLOCK_THREAD_CPUTIME_ID), wall_end = seconds_of(CLOCK_MONOTONIC);
  return {cpu_end - cpu, wall_end - wall, switches_of_thread() - switches};
}

// Asks for the lowest real-time priority, so that only real-time threads interrupt this one. The kernel still keeps a
// share of the time for others.
bool ask_for_fifo() {
  sched_param parameters{};
  parameters.sched_priority = sched_get_priority_min(SCHED_FIFO);
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters) == 0;
}

void give_up_fifo() {
  const sched_param parameters{};
  pthread_setschedparam(pthread_self(), SCHED_OTHER, &parameters);
}

void add(Reading& sum, const Reading& more) {
  sum.cpu += more.cpu;
  sum.wall += more.wall;
  sum.switches += more.switches;
}

} // namespace

bool contaminated(const Reading& reading) {
  constexpr double kShare = 1.03, kClocks = 10e-6;
  return reading.switches > 0 || reading.wall > kShare * reading.cpu + kClocks;
}

Team::Team(int threads)
    : threads_(threads), scheduling_(ask_for_fifo() ? "fifo" : "normal"), readings_(static_cast<std::size_t>(threads)) {
  for (int part = 1; part < threads; ++part) { // started now, they inherit the scheduling
    others_.emplace_back([this, part] { serve(part); });
  }
}

Team::~Team() {
  {
    const std::lock_guard lock(mutex_);
    round_.end = true;
    ++number_;
  }
  begin_.notify_all();
  for (std::thread& other : others_) {
    other.join();
  }
  give_up_fifo();
}

namespace {

Reading run_part(const Work& work, int part, int parts) {
  const Index begin = work.items * part / parts, end = work.items * (part + 1) / parts;
  return timed([&] {
    if (begin < end) {
      work.run(part, begin, end);
    }
  });
}

} // namespace

void Team::serve(int part) {
  int seen = 0;
  while (true) {
    Round round;
    {
      std::unique_lock lock(mutex_);
      begin_.wait(lock, [&] { return number_ != seen; });
      seen = number_;
      round = round_;
    }
    if (round.end) {
      return;
    }
    readings_[static_cast<std::size_t>(part)] = run_part(*round.work, part, threads_);
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) {
      done_.notify_one();
    }
  }
}

void Team::once(const Work& work, std::vector<Reading>& sums) {
  {
    const std::lock_guard lock(mutex_);
    round_.work = &work;
    left_ = threads_ - 1;
    ++number_;
  }
  begin_.notify_all();
  readings_[0] = run_part(work, 0, threads_);
  {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return left_ == 0; });
  }
  for (std::size_t part = 0; part < sums.size(); ++part) {
    add(sums[part], readings_[part]);
  }
  if (work.finish) {
    add(sums[0], timed(work.finish));
  }
}

Reading Team::run(const Work& work, int runs) {
  if (threads_ == 1) {
    return timed([&] {
      for (int i = 0; i < runs; ++i) {
        work.run(0, 0, work.items);
        if (work.finish) {
          work.finish();
        }
      }
    });
  }
  std::vector<Reading> sums(static_cast<std::size_t>(threads_));
  for (int i = 0; i < runs; ++i) {
    once(work, sums);
  }
  Reading longest;
  for (const Reading& sum : sums) {
    longest.cpu = std::max(longest.cpu, sum.cpu);
    longest.wall = std::max(longest.wall, sum.wall);
    longest.switches += sum.switches;
  }
  return longest;
}

} // namespace stagecraft::cpu
