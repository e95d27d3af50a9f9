// What a command spends.
//   spent COMMAND…    prints the seconds of processor time and the most bytes of memory of it and its children
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: spent COMMAND…\n");
    return 2;
  }
  const pid_t child = fork();
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execvp(arguments[1], arguments + 1);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "spent: '%s' failed\n", arguments[1]);
    return 1;
  }
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  constexpr double kMicro = 1e-6;
  const auto seconds = [&](const timeval& time) {
    return static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
  };
  constexpr long kKibi = 1024;
  std::printf("%.3f %ld\n", seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss * kKibi);
  return 0;
}
