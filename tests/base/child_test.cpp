// Work in a forked child: memory shared with it, exceptions passed on, crashes reported.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>

#include "sim/base/process/child.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("parent and child share the doubles and nothing else", "[base][child]") {
  SharedDoubles shared(3);
  int own = 1;
  CHECK(shared.values()[2] == 0);
  run_in_child([&] {
    shared.values()[0] = 1.5;
    shared.values()[2] = -2;
    own = 2;
  });
  CHECK(shared.values()[0] == 1.5);
  CHECK(shared.values()[1] == 0);
  CHECK(shared.values()[2] == -2);
  CHECK(own == 1);
  CHECK(SharedDoubles(0).values().empty());
}

TEST_CASE("the child is another process", "[base][child]") {
  SharedDoubles shared(1);
  run_in_child([&] { shared.values()[0] = getpid(); });
  CHECK(shared.values()[0] != getpid());
}

TEST_CASE("an exception passes to the parent with its text", "[base][child]") {
  CHECK_THROWS_WITH(run_in_child([] { throw std::logic_error("what went wrong"); }), "what went wrong");
  CHECK_THROWS_AS(run_in_child([] { throw std::logic_error("x"); }), std::runtime_error);
  const std::string longer(10'000, 'x'); // longer than one read
  CHECK_THROWS_WITH(run_in_child([&] { throw std::runtime_error(longer); }), longer);
}

TEST_CASE("a child that dies is reported by its signal or status", "[base][child]") {
  CHECK_THROWS_WITH(run_in_child([] { kill(getpid(), SIGKILL); }), "a child process ended by signal 9");
  CHECK_THROWS_AS(run_in_child([] { kill(getpid(), SIGKILL); }), std::logic_error);
  CHECK_THROWS_WITH(run_in_child([] { _exit(42); }), "a child process ended with status 42");
}

TEST_CASE("several children run one after the other", "[base][child]") {
  SharedDoubles shared(1);
  for (int i = 0; i < 20; ++i) {
    run_in_child([&] { shared.values()[0] += 1; });
  }
  CHECK(shared.values()[0] == 20);
}

} // namespace
TEST_CASE("a quiet child that crashes gives no answer", "[base][child]") {
  CHECK(answer_of_child([] { return std::string("answer"); }, 10) == "answer");
  CHECK(answer_of_child([] { return std::string(1'000'000, 'x'); }, 10).value().size() == 1'000'000);
  CHECK_FALSE(answer_of_child([]() -> std::string { std::abort(); }, 10));
  CHECK_FALSE(answer_of_child([]() -> std::string { throw std::runtime_error("unseen"); }, 10));
}

} // namespace stagecraft
