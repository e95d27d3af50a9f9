// SPDX-License-Identifier: Apache-2.0
#include "sim/base/process/worker_pool.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sim/base/system/interrupt.hpp"

namespace stagecraft {
namespace {

bool write_all(int pipe, const void* bytes, std::size_t size) {
  const char* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = write(pipe, at, size);
    if (count < 0 && errno != EINTR) {
      return false;
    }
    at += std::max<ssize_t>(0, count);
    size -= static_cast<std::size_t>(std::max<ssize_t>(0, count));
  }
  return true;
}

bool read_all(int pipe, void* bytes, std::size_t size) {
  char* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t count = read(pipe, at, size);
    if (count == 0 || (count < 0 && errno != EINTR)) {
      return false;
    }
    at += std::max<ssize_t>(0, count);
    size -= static_cast<std::size_t>(std::max<ssize_t>(0, count));
  }
  return true;
}

// A message: its length, then its bytes.
bool send(int pipe, const std::string& message) {
  const std::uint64_t size = message.size();
  return write_all(pipe, &size, sizeof size) && write_all(pipe, message.data(), message.size());
}

std::optional<std::string> receive(int pipe) {
  std::uint64_t size = 0;
  if (!read_all(pipe, &size, sizeof size)) {
    return std::nullopt;
  }
  std::string message(size, '\0');
  return read_all(pipe, message.data(), size) ? std::optional(std::move(message)) : std::nullopt;
}

struct Worker {
  pid_t process = -1;
  int tasks = -1, answers = -1; // this process's ends of the pipes
  std::deque<std::string> has;
  std::uint64_t size = 0;   // of the answer under way
  std::size_t received = 0; // of its length and its bytes
  std::string answer;
};

constexpr std::size_t kTasksEach = 2;

class Pool {
public:
  explicit Pool(const WorkerPool& pool) : pool_(pool), workers_(static_cast<std::size_t>(std::max(1, pool.workers))) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Writing to a child that has died must not end this process: SIGPIPE is ignored while the pool runs.
  ~Pool() {
    for (Worker& worker : workers_) {
      if (worker.process > 0) {
        kill(worker.process, SIGKILL);
      }
      bury(worker);
    }
    std::signal(SIGPIPE, previous_);
  }

  void run() {
    while (!ended_) {
      for (Worker& worker : workers_) {
        give(worker);
      }
      if (idle() || !pool_.tick()) {
        return;
      }
      wait_for_answers();
    }
  }

private:
  bool idle() const {
    return returned_.empty() &&
           std::all_of(workers_.begin(), workers_.end(), [](const Worker& worker) { return worker.has.empty(); });
  }

  std::optional<std::string> take() {
    if (returned_.empty()) {
      return pool_.next();
    }
    std::string task = std::move(returned_.front());
    returned_.pop_front();
    return task;
  }

  void give(Worker& worker) {
    while (worker.has.size() < kTasksEach) {
      std::optional<std::string> task = take();
      if (!task) {
        return;
      }
      if (worker.process < 0) {
        start(worker);
      }
      const bool sent = send(worker.tasks, *task);
      worker.has.push_back(std::move(*task));
      if (!sent) { // the worker has died; reading its answers will show that
        return;
      }
    }
  }

  void start(Worker& worker) {
    std::array<int, 2> tasks{};
    std::array<int, 2> answers{};
    if (pipe2(tasks.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("cannot make a pipe to a worker process");
    }
    if (pipe2(answers.data(), O_CLOEXEC) != 0) {
      close(tasks[0]);
      close(tasks[1]);
      throw std::runtime_error("cannot make a pipe to a worker process");
    }
    constexpr int kRoom = 1 << 20;          // bytes; the most that an unprivileged process may ask for
    fcntl(answers[1], F_SETPIPE_SZ, kRoom); // so that a worker goes on while this process does something else
    std::fflush(nullptr);
    const pid_t parent = getpid();
    worker.process = fork();
    if (worker.process == 0) {
      for (const Worker& other : workers_) { // else the pipes of the others would stay open in this child
        close(other.tasks);
        close(other.answers);
      }
      close(tasks[1]);
      close(answers[0]);
      be_a_worker(parent, tasks[0], answers[1]);
    }
    close(tasks[0]);
    close(answers[1]);
    worker.tasks = tasks[1];
    worker.answers = answers[0];
    if (worker.process < 0) {
      bury(worker);
      throw std::runtime_error("cannot make a worker process");
    }
  }

  [[noreturn]] void be_a_worker(pid_t parent, int tasks, int answers) const noexcept {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0); // an interrupt from a terminal or a batch system goes to the parent alone, which ends its workers
    ignore_interrupts();
    if (getppid() != parent) {
      _exit(0);
    }
    int status = 0;
    try {
      for (std::optional<std::string> task = receive(tasks); task; task = receive(tasks)) {
        if (!send(answers, pool_.work(*task))) {
          break;
        }
      }
    } catch (...) {
      status = 1;
    }
    _exit(status); // no destructors, no flushing: both belong to the parent
  }

  void wait_for_answers() {
    std::vector<pollfd> polled;
    std::vector<Worker*> owners;
    for (Worker& worker : workers_) {
      if (worker.process > 0) {
        polled.push_back({worker.answers, POLLIN, 0});
        owners.push_back(&worker);
      }
    }
    constexpr int kMilliseconds = 100;
    if (poll(polled.data(), polled.size(), kMilliseconds) <= 0) {
      return;
    }
    for (std::size_t i = 0; i < polled.size() && !ended_; ++i) {
      if (polled[i].revents != 0) {
        read_answer(*owners[i]);
      }
    }
  }

  // Reads on in the answer under way, in place: answers may be long.
  void read_answer(Worker& worker) {
    constexpr std::size_t kLength = sizeof worker.size;
    if (worker.received < kLength) {
      if (!read_on(worker, reinterpret_cast<char*>(&worker.size) + worker.received, kLength - worker.received) ||
          worker.received < kLength) {
        return;
      }
      worker.answer.resize(worker.size);
    }
    const std::size_t here = worker.received - kLength;
    if (here < worker.size && !read_on(worker, worker.answer.data() + here, worker.size - here)) {
      return;
    }
    if (worker.received == kLength + worker.size) {
      worker.received = 0;
      const std::string task = std::move(worker.has.front());
      worker.has.pop_front();
      const std::string answer = std::exchange(worker.answer, {});
      give(worker); // before the answer is handled, so that the worker never waits
      ended_ = !pool_.answered(task, answer);
    }
  }

  // False if nothing has come: try again, or the worker has died.
  bool read_on(Worker& worker, char* into, std::size_t most) {
    const ssize_t count = read(worker.answers, into, most);
    if (count > 0) {
      worker.received += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      died(worker);
    }
    return count > 0;
  }

  void died(Worker& worker) {
    const int status = bury(worker);
    const std::string why = WIFSIGNALED(status)
                                ? "its process was ended by signal " + std::to_string(WTERMSIG(status))
                                : "its process ended with status " + std::to_string(WEXITSTATUS(status));
    std::deque<std::string> had;
    had.swap(worker.has);
    worker.received = 0;
    worker.answer.clear();
    if (had.empty()) {
      return;
    }
    for (std::size_t i = 1; i < had.size(); ++i) { // the worker had not begun these
      returned_.push_back(std::move(had[i]));
    }
    pool_.lost(had.front(), why);
  }

  static int bury(Worker& worker) {
    int status = 0;
    for (int* end : {&worker.tasks, &worker.answers}) {
      if (*end >= 0) {
        close(*end);
        *end = -1;
      }
    }
    if (worker.process > 0) {
      while (waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
      }
    }
    worker.process = -1;
    return status;
  }

  const WorkerPool& pool_;
  std::vector<Worker> workers_;
  std::deque<std::string> returned_; // tasks given to a worker that died before it began them
  bool ended_ = false;
  void (*previous_)(int) = std::signal(SIGPIPE, SIG_IGN);
};

} // namespace

void run(const WorkerPool& pool) { Pool(pool).run(); }

void share_out(int workers, const SharedTasks& tasks) {
  if (workers <= 1 || tasks.count <= 1) {
    for (std::size_t task = 0; task < tasks.count; ++task) {
      tasks.here(task);
    }
    return;
  }
  std::size_t given = 0;
  std::vector<std::size_t> lost;
  const auto number_of = [](const std::string& task) { return static_cast<std::size_t>(std::stoull(task)); };
  WorkerPool pool;
  pool.workers = workers;
  pool.work = [&](const std::string& task) { return tasks.work(number_of(task)); };
  pool.next = [&] { return given < tasks.count ? std::optional(std::to_string(given++)) : std::nullopt; };
  pool.answered = [&](const std::string& task, const std::string& result) {
    tasks.take(number_of(task), result);
    return true;
  };
  pool.lost = [&](const std::string& task, const std::string&) { lost.push_back(number_of(task)); };
  pool.tick = [] { return true; };
  run(pool);
  std::for_each(lost.begin(), lost.end(), tasks.here);
}

int cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? std::max(1, CPU_COUNT(&allowed)) : 1;
}

} // namespace stagecraft
