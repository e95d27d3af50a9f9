// SPDX-License-Identifier: Apache-2.0
#include "calibrate/gpu/supervise.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <thread>

#include "calibrate/gpu/output/unended.hpp"

namespace stagecraft::gpu {
namespace {

constexpr const char* kMark = "STAGECRAFT_SUPERVISED"; // in the environment of the other process
constexpr double kLeastBudget = 6; // seconds, kept for sentinels: a process with no more only completes the file
constexpr double kLongest = 30;    // seconds that a point may take; those of power take 7
constexpr int kFailedToStart = 127;

// Seconds since a point was begun that has not ended, by a process begun at `start`; 0: there is none.
double running(const std::string& path, std::time_t start) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 && file.st_size > 0
             ? std::difftime(std::time(nullptr), std::max(file.st_mtime, start))
             : 0;
}

pid_t start(std::vector<std::string> arguments, double budget) {
  arguments.push_back("--budget=" + std::to_string(budget)); // the last one counts
  std::vector<char*> words = {const_cast<char*>("calibrate_gpu")};
  for (std::string& argument : arguments) {
    words.push_back(argument.data());
  }
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM); // it does not outlive us
    setenv(kMark, "1", 1);
    execv("/proc/self/exe", words.data());
    _exit(kFailedToStart);
  }
  return child;
}

// Waits for the process; ends it if a point takes too long. Returns what waitpid() says.
int wait_for(pid_t child, const std::string& unended, const std::atomic<bool>& stop) {
  const std::time_t begun = std::time(nullptr);
  bool told = false;
  for (int status = 0;;) {
    if (waitpid(child, &status, WNOHANG) == child) {
      return status;
    }
    if (stop && !told) {
      told = kill(child, SIGTERM) == 0;
    }
    if (running(unended, begun) > kLongest) {
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

} // namespace

bool is_supervised() { return std::getenv(kMark) != nullptr; }

int supervise(const std::vector<std::string>& arguments, const Options& options, const std::atomic<bool>& stop,
              int failed) {
  const auto begun = std::chrono::steady_clock::now();
  bool last = false;
  for (double left = options.budget;;) {
    const std::size_t known = Unended(options.out).size();
    const pid_t child = start(arguments, left);
    if (child < 0) {
      return failed;
    }
    const int status = wait_for(child, Unended(options.out).path(), stop);
    if (WIFEXITED(status) && WEXITSTATUS(status) != failed) {
      return WEXITSTATUS(status);
    }
    left = options.budget - std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    if (Unended(options.out).size() <= known || stop || last) {
      return failed;
    }
    last = left < kLeastBudget;
    left = std::max(left, kLeastBudget); // at least the file is completed, with what was left out
    std::cerr << "calibrate_gpu: a point did not end; goes on without it" << std::endl;
  }
}

} // namespace stagecraft::gpu
