// A pool of forked workers: answers to all tasks, workers that die, and ending early.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/base/process/worker_pool.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

// A pool over the tasks "0" … "n-1" that collects what became of each.
struct Ledger {
  int tasks = 0, given = 0;
  std::map<std::string, std::string> answers, lost;

  WorkerPool pool(int workers, std::function<std::string(const std::string&)> work) {
    return {.workers = workers,
            .work = std::move(work),
            .next = [this]() -> std::optional<std::string> {
              return given < tasks ? std::optional(std::to_string(given++)) : std::nullopt;
            },
            .answered =
                [this](const std::string& task, const std::string& answer) {
                  CHECK(answers.emplace(task, answer).second);
                  return true;
                },
            .lost = [this](const std::string& task, const std::string& why) { CHECK(lost.emplace(task, why).second); },
            .tick = [] { return true; }};
  }
};

TEST_CASE("a pool answers every task once, whatever the number of workers", "[base][pool]") {
  const int workers = GENERATE(1, 2, 5);
  Ledger ledger{.tasks = 50};
  run(ledger.pool(workers, [](const std::string& task) { return std::string(100'000, 'x') + task; }));
  REQUIRE(ledger.answers.size() == 50);
  CHECK(ledger.lost.empty());
  for (const auto& [task, answer] : ledger.answers) {
    CHECK(answer == std::string(100'000, 'x') + task);
  }
}

TEST_CASE("a worker that dies loses only the task it was working on", "[base][pool]") {
  Ledger ledger{.tasks = 20};
  run(ledger.pool(2, [](const std::string& task) {
    if (task == "7") {
      kill(getpid(), SIGKILL);
    }
    if (task == "11") {
      throw std::runtime_error("no");
    }
    return task;
  }));
  CHECK(ledger.answers.size() == 18);
  REQUIRE(ledger.lost.size() == 2);
  CHECK(ledger.lost["7"] == "its process was ended by signal 9");
  CHECK(ledger.lost["11"] == "its process ended with status 1");
}

TEST_CASE("a pool that is told to end leaves no process behind", "[base][pool]") {
  Ledger ledger{.tasks = 20};
  WorkerPool pool = ledger.pool(2, [](const std::string& task) {
    if (task == "1") {
      sleep(1000);
    }
    return std::to_string(getpid());
  });
  pool.tick = [&] { return ledger.answers.size() < 5; };
  run(pool);
  REQUIRE_FALSE(ledger.answers.empty());
  for (const auto& [task, process] : ledger.answers) {
    CHECK(kill(std::stoi(process), 0) != 0);
  }
}

} // namespace
} // namespace stagecraft
