// SPDX-License-Identifier: Apache-2.0
#include "sim/base/system/confinement.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "sim/base/limits.hpp"

namespace stagecraft {
namespace {

// What a keeper is started with, the most first: an administrator may forbid any of it. A namespace of users lets those
// who are not root have the others.
constexpr int kProcesses = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
constexpr std::array kNamespaces = {CLONE_NEWUSER | CLONE_NEWNET | kProcesses,
                                    CLONE_NEWNET | kProcesses,
                                    CLONE_NEWUSER | kProcesses,
                                    kProcesses,
                                    CLONE_NEWUSER | CLONE_NEWNET,
                                    CLONE_NEWNET,
                                    0};

// What a trial of the limits finds, as bits of an exit status.
enum Gap { kLimitsGap = 1, kProcessesGap = 2, kPrivilegesGap = 4 };

// Signals that wait while a child is born, so that it never runs a handler of ours.
class BlockedSignals {
public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

private:
  sigset_t before_{};
};

struct Limit {
  int resource = 0;
  rlimit value{};
};

// All that the children need, made before they are born: a child of a program with threads may allocate nothing.
struct Launch {
  ConfinedProgram program;
  int parent = -1;         // a descriptor of this process
  std::string user, group; // the lines that map our own into a namespace of users
  std::vector<std::string> environment;
  std::vector<char*> variables; // of the environment, with a null pointer at the end
  std::vector<Limit> limits;
};

// fork() into new namespaces, without the handlers of fork(), which may take locks.
pid_t fork_into(int namespaces) {
  return static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// The processes and threads of this user, which a limit counts too.
rlim_t threads_of_user() {
  rlim_t count = 0;
  std::error_code failure;
  for (std::filesystem::directory_iterator process("/proc", failure), end; !failure && process != end;
       process.increment(failure)) {
    struct stat task {};
    if (stat((process->path() / "task").c_str(), &task) == 0 && task.st_uid == geteuid()) {
      count += task.st_nlink - 2; // a folder each, beside the two links that every folder has
    }
  }
  return count;
}

Limit limit(int resource, rlim_t most) {
  rlimit now{};
  getrlimit(static_cast<__rlimit_resource>(resource), &now);
  const rlim_t value = std::min(most, now.rlim_max);
  return {resource, {value, value}};
}

std::vector<Limit> limits_of(const ConfinedProgram& program) {
  constexpr double kLongest = 1e9;
  const double cores = std::max(1U, std::thread::hardware_concurrency());
  return {limit(RLIMIT_AS, rlim_t(program.memory_mebibytes) << 20),
          limit(RLIMIT_CPU, static_cast<rlim_t>(std::ceil(std::min(kLongest, cores * program.seconds)))),
          limit(RLIMIT_FSIZE, rlim_t{limits::kCommandFileMebibytes} << 20),
          limit(RLIMIT_NPROC, threads_of_user() + limits::kCommandProcesses), limit(RLIMIT_CORE, 0)};
}

Launch prepared(const ConfinedProgram& program) {
  Launch launch{.program = program, .parent = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0))};
  const auto mapped = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  launch.user = mapped(geteuid());
  launch.group = mapped(getegid());
  for (const char* name : {"PATH", "HOME", "LANG", "TMPDIR"}) {
    if (const char* value = std::getenv(name); value != nullptr) {
      launch.environment.push_back(std::string(name) + "=" + value);
    }
  }
  for (std::string& variable : launch.environment) {
    launch.variables.push_back(variable.data());
  }
  launch.variables.push_back(nullptr);
  launch.limits = limits_of(program);
  return launch;
}

// What follows runs in the children. What the kernel refuses there does not hold, and confinement_gaps() says so.

void write_to(const char* file, std::string_view text) {
  const int descriptor = open(file, O_WRONLY | O_CLOEXEC);
  if (descriptor >= 0) {
    [[maybe_unused]] const ssize_t count = write(descriptor, text.data(), text.size());
    close(descriptor);
  }
}

// The user stays who he is; without this he would be nobody, who may not read his own files.
void map_user(const Launch& launch) {
  write_to("/proc/self/setgroups", "deny"); // or the kernel refuses the next line to who is not root
  write_to("/proc/self/gid_map", launch.group);
  write_to("/proc/self/uid_map", launch.user);
}

// A new network has nothing but this, and it is down.
void raise_loopback() {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  ioctl(any, SIOCSIFFLAGS, &request);
  close(any);
}

// Processes find themselves under /proc, and not those outside.
void mount_processes() {
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0) { // outside, nothing changes
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr);
  }
}

void set_limits(const Launch& launch) {
  for (const Limit& one : launch.limits) {
    setrlimit(static_cast<__rlimit_resource>(one.resource), &one.value);
  }
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void close_inherited() {
  constexpr int kFirst = STDERR_FILENO + 1, kUsual = 1024;
  if (syscall(SYS_close_range, kFirst, ~0U, 0) != 0) { // before Linux 5.9
    for (int descriptor = kFirst; descriptor < kUsual; ++descriptor) {
      close(descriptor);
    }
  }
}

// Signals that the parent ignores would stay ignored.
void reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// Whether the limits hold, as a set of gaps.
int try_limits(const Launch& launch) {
  int gaps = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : kPrivilegesGap;
  for (const Limit& one : launch.limits) {
    rlimit now{};
    getrlimit(static_cast<__rlimit_resource>(one.resource), &now);
    gaps |= now.rlim_max <= one.value.rlim_max ? 0 : kLimitsGap;
  }
  const rlimit none{0, 0};
  setrlimit(RLIMIT_NPROC, &none);
  const pid_t child = fork_into(0);
  if (child == 0) {
    _exit(0);
  }
  return gaps | (child > 0 ? kProcessesGap : 0); // the kernel does not count root's
}

[[noreturn]] void become_program(const Launch& launch) noexcept {
  const ConfinedProgram& program = launch.program;
  setsid();
  set_limits(launch);
  if (program.arguments == nullptr) {
    _exit(try_limits(launch));
  }
  bool ready = chdir(program.folder) == 0;
  for (int stream = 0; stream < static_cast<int>(program.streams.size()); ++stream) {
    ready = ready && dup2(program.streams[stream], stream) >= 0;
  }
  close_inherited();
  reset_signals();
  if (ready) {
    execvpe(program.arguments[0], program.arguments, launch.variables.data());
  }
  _exit(kCannotRun);
}

// Kills the children of this process, and theirs, which become its own when their parents end.
void kill_children() {
  for (;;) {
    std::array<char, 4096> list;
    const int file = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    const ssize_t size = read(file, list.data(), list.size());
    close(file);
    const char* at = list.data();
    const char* end = at + std::max<ssize_t>(0, size);
    for (pid_t child = 0; at < end; ++at) {
      at = std::from_chars(at, end, child).ptr;
      kill(child, SIGKILL);
    }
    if (size <= 0 || waitpid(-1, nullptr, 0) < 0) {
      return;
    }
  }
}

// Waits until the program ends, and reports how, or until this process is told to end.
void wait_for_program(pid_t program, int report) {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigaddset(&awaited, SIGTERM);
  for (int signal = 0; sigwait(&awaited, &signal) == 0 && signal == SIGCHLD;) {
    int status = 0;
    for (pid_t ended = 0; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended == program) {
        [[maybe_unused]] const ssize_t count = write(report, &status, sizeof status);
        return;
      }
    }
  }
}

// The keeper. Its signals are blocked, so that it takes them when it waits for them.
[[noreturn]] void keep(const Launch& launch, int report, int namespaces) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGTERM); // when our program dies, however it dies
  pollfd parent{launch.parent, POLLIN, 0};
  if (poll(&parent, 1, 0) > 0) { // it has died already
    _exit(0);
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  setsid();
  if ((namespaces & CLONE_NEWUSER) != 0) {
    map_user(launch);
  }
  if ((namespaces & CLONE_NEWNET) != 0) {
    raise_loopback();
  }
  if ((namespaces & CLONE_NEWPID) != 0) {
    mount_processes();
  }
  const pid_t program = fork_into(0);
  if (program == 0) {
    become_program(launch);
  }
  if (program > 0) {
    wait_for_program(program, report);
  }
  if ((namespaces & CLONE_NEWPID) == 0) { // else the kernel kills all with the first process
    kill(-program, SIGKILL);
    kill_children();
  }
  _exit(0);
}

} // namespace

Confined::Confined(const ConfinedProgram& program) {
  const Launch launch = prepared(program);
  const BlockedSignals blocked;
  for (const int namespaces : kNamespaces) {
    namespaces_ = namespaces;
    keeper_ = fork_into(namespaces);
    if (keeper_ == 0) {
      keep(launch, report_.descriptor(), namespaces);
    }
    if (keeper_ > 0) {
      break;
    }
  }
  close(launch.parent);
  if (keeper_ < 0) {
    throw std::runtime_error("cannot make a child process");
  }
}

Confined::~Confined() { end(); }

bool Confined::has_ended() {
  if (keeper_ > 0 && waitpid(keeper_, nullptr, WNOHANG) == keeper_) {
    keeper_ = -1;
  }
  return keeper_ < 0;
}

void Confined::end() {
  constexpr int kMostPauses = 1000;
  for (int pause = 0; !has_ended(); ++pause) {
    kill(keeper_, has_own_processes() || pause == kMostPauses ? SIGKILL : SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::optional<int> Confined::status() const {
  int status = 0;
  return pread(report_.descriptor(), &status, sizeof status, 0) == sizeof status ? std::optional(status) : std::nullopt;
}

bool Confined::has_own_network() const { return (namespaces_ & CLONE_NEWNET) != 0; }
bool Confined::has_own_processes() const { return (namespaces_ & CLONE_NEWPID) != 0; }

std::vector<std::string> confinement_gaps() {
  Confined trial({.seconds = limits::kCommandSeconds, .memory_mebibytes = limits::kCommandMemoryMebibytes});
  while (!trial.has_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const int found = trial.status() ? WEXITSTATUS(*trial.status()) : kLimitsGap | kProcessesGap | kPrivilegesGap;
  std::vector<std::string> gaps;
  const auto add = [&](bool holds, const char* gap) {
    if (!holds) {
      gaps.emplace_back(gap);
    }
  };
  add(trial.has_own_network(), "can use the network");
  add(trial.has_own_processes(), "can leave processes behind");
  add((found & kLimitsGap) == 0, "can use any amount of memory, time and disk");
  add((found & kProcessesGap) == 0, "can start any number of processes");
  add((found & kPrivilegesGap) == 0, "can become another user by programs that allow it");
  return gaps;
}

} // namespace stagecraft
