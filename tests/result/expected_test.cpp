// What is said of where measurements would lie.
// SPDX-License-Identifier: Apache-2.0
#include "sim/result/expected.hpp"
#include "tests/catch.hpp"

using namespace stagecraft;

TEST_CASE("a range of memory that goes beyond the device may not fit", "[result]") {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  RunExpectedMemory memory{.device = "n/a-3",
                           .peak = Bytes{60 * kGiB},
                           .have = Bytes{80 * kGiB},
                           .low = Bytes{45 * kGiB},
                           .high = Bytes{80 * kGiB},
                           .family = "memory of all models",
                           .models = 11,
                           .median = 0.03};
  CHECK(in_words(memory) ==
        "Its fullest device, 'n/a-3', needs 60.00 GiB of 80.00 GiB; measured, it would need between 45.00 GiB and "
        "80.00 GiB nine times out of ten, which fits: memory of all models, 11 models, median error 3 %.");
  memory.high = Bytes{80.1 * kGiB};
  CHECK(in_words(memory).find("80.10 GiB nine times out of ten, so that it may not fit: ") != std::string::npos);
}

TEST_CASE("time and memory are said as far as they are known", "[result]") {
  Run run;
  CHECK(expected_in_words(run).empty());
  run.expected = RunExpected{.low = Seconds{1}, .high = Seconds{4}, .family = "times", .models = 9, .median = 0.1};
  const std::string time = expected_in_words(run);
  CHECK(time == "Measured, it would take between 1.000 s and 4.000 s nine times out of ten, as predictions of others "
                "were off: times, 9 models, median error 10 %.");
  run.expected_memory = RunExpectedMemory{};
  CHECK(expected_in_words(run) == time + " " + in_words(*run.expected_memory));
}
