// PyTorch's schedule files: its words and dialects, there and back, and what a file can have wrong.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>
#include <regex>

#include "sim/schedule/format/schedule_file.hpp"
#include "tests/catch.hpp"
#include "tests/error_of.hpp"
#include "tests/schedule/pipelines.hpp"

namespace stagecraft {
namespace {

ScheduleFile read(const std::string& text) { return read_schedule(text, "x.csv"); }

std::string orders_of(const ScheduleFile& file) { return to_csv(file.schedule); }

std::string defects_of(const ScheduleFile& file) { return join(schedule_defects(file), "\n"); }

std::string error_of(const std::string& text) {
  return test::error_of([&] { read(text); });
}

std::string written(const Schedule& schedule, std::string_view dialect, bool messages) {
  return std::get<std::string>(to_csv(schedule, dialect, messages));
}

TEST_CASE("today's dialect: I and W are the halves of B", "[schedule][pytorch]") {
  const ScheduleFile file = read("0F0,,0I0,0W0\n,0F0\n"); // the second row is a duplicate
  CHECK(file.dialect == "pytorch");
  CHECK(file.schedule.splits_backward);
  CHECK(orders_of(file) == "F0@0,B0@0,W0@0\nF0@0\n");
}

TEST_CASE("the old dialect is told by BW, or by B and W of one micro-batch", "[schedule][pytorch]") {
  CHECK(read("0F0,0B0\n").dialect == "pytorch");
  CHECK(read("0F0,0BW0\n").dialect == "pytorch-old");
  CHECK(read("0F0,0B0,0W0\n").dialect == "pytorch-old");
  CHECK(read("0F0,0F1,0B0,0W1\n").dialect == "pytorch"); // the two are not of one micro-batch
  CHECK(orders_of(read("0F0,0BW0\n")) == "F0@0,B0@0\n");
  CHECK(orders_of(read("0F0,0B0,0W0\n")) == "F0@0,B0@0,W0@0\n");
  CHECK(error_of("0F0,0I0,0W0\n1F0,1BW0\n") ==
        "x.csv:2:5: '1BW0' is of PyTorch's old dialect, '0I0' in line 1 of today's; allowed: F, B, W and BW (old), or "
        "F, I, W and B");
}

TEST_CASE("a whole backward among halves is B with its W fused to it", "[schedule][pytorch]") {
  const std::string ours = "F0@0,B0@0+W0@0,F1@0,B1@0,W1@0\n";
  const ScheduleFile current = read("0F0,0B0,0F1,0I1,0W1\n");
  const ScheduleFile old = read("0F0,0BW0,0F1,0B1,0W1\n");
  CHECK(orders_of(current) == ours);
  CHECK(orders_of(old) == ours);
  CHECK(defects_of(current).empty());
  CHECK(written(current.schedule, "pytorch", false) == "0F0,0B0,0F1,0I1,0W1\n");
  CHECK(written(current.schedule, "pytorch-old", false) == "0F0,0BW0,0F1,0B1,0W1\n");
  // A B without its W among BW is a half whose other is missing.
  CHECK(defects_of(read("0F0,0BW0,0F1,0B1\n")) == "W1@0 is missing");
}

TEST_CASE("a forward and a backward that run together", "[schedule][pytorch]") {
  const std::string text = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n";
  const ScheduleFile file = read(text);
  CHECK(orders_of(file) == "F0@0,F1@0+B0@0,B1@0\n");
  CHECK(written(file.schedule, "pytorch", false) == text);
  CHECK(read(orders_of(file)).schedule == file.schedule); // our own CSV says it too
  CHECK_THAT(error_of("0F0,(0F1;0SEND_F0)OVERLAP_F_B\n"), Catch::StartsWith("x.csv:1:10: '0SEND_F0' is no task"));
  for (const char* bad : {"(0F1;0B0)", "(0F1;0B0", "()OVERLAP_F_B", "(0F1;0B0)OVERLAP"}) {
    CHECK_THAT(error_of("0F0," + std::string(bad) + "\n"), Catch::StartsWith("x.csv:1:5: '"));
  }
}

TEST_CASE("unknown words are refused where they stand", "[schedule][pytorch]") {
  for (const char* bad : {"0G0", "0F", "F0", "00F0", "0F01", "0F0x", "0f0", "0", "0SEND_F", "0F-1", "0F99999999999"}) {
    INFO(bad);
    CHECK_THAT(error_of("0F0,\n 0B0, " + std::string(bad) + "\n"), Catch::StartsWith("x.csv:2:7: "));
  }
  CHECK(read("0F0,0UNSHARD,0B0,0RESHARD,0REDUCE_GRAD\n").schedule.orders.front().size() == 2); // no work of a schedule
}

// 1F1B of PyTorch's documentation on two ranks, four micro-batches: the second rank idles one step, the first two.
TEST_CASE("cells are steps of equal length, idle ones empty", "[schedule][pytorch]") {
  CHECK(written(test::schedule_of("1f1b", 2, 4), "pytorch", false) == "0F0,0F1,,0B0,0F2,0B1,0F3,0B2,,0B3\n"
                                                                      ",1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n");
}

TEST_CASE("a send follows the work, a receive stands before its use", "[schedule][pytorch]") {
  CHECK(written(test::schedule_of("gpipe", 2, 1), "pytorch", true) == "0F0,0SEND_F0,0RECV_B0,0B0\n"
                                                                      "1RECV_F0,1F0,1B0,1SEND_B0\n");
}

// Whether messages get through where a send waits for its receiver, as well as the other way round.
bool runs_in_lockstep(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    std::vector<std::string>& cells = lines.emplace_back();
    const std::string line = text.substr(at, text.find('\n', at) - at);
    static const std::regex kMessage("([0-9]+)(SEND|RECV)_(F|B)([0-9]+)");
    for (auto one = std::sregex_iterator(line.begin(), line.end(), kMessage); one != std::sregex_iterator(); ++one) {
      const bool sends = (*one)[2] == "SEND";
      const int stage = std::stoi((*one)[1]);
      const int to = (*one)[3] == "F" ? 1 : -1;
      cells.push_back((*one)[3].str() + (*one)[4].str() + "@" + std::to_string(sends ? stage + to : stage));
    }
  }
  std::vector<std::size_t> cursor(lines.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t a = 0; a < lines.size(); ++a) {
      for (std::size_t b = 0; b < lines.size(); ++b) {
        if (a != b && cursor[a] < lines[a].size() && cursor[b] < lines[b].size() &&
            lines[a][cursor[a]] == lines[b][cursor[b]]) {
          ++cursor[a];
          ++cursor[b];
          moved = true;
        }
      }
    }
  }
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    if (cursor[rank] < lines[rank].size()) {
      return false;
    }
  }
  return true;
}

TEST_CASE("every schedule reads back the same from both dialects, with messages and without",
          "[schedule][pytorch][conformance]") {
  for (const ScheduleRow& row : schedules()) {
    for (const auto& [p, m] : {std::pair(1, 3), std::pair(2, 4), std::pair(4, 8)}) {
      const ScheduleResult made = make_schedule(row, {p, m, chunks_of(row, 2)});
      if (std::holds_alternative<Infeasible>(made)) {
        continue;
      }
      const Schedule schedule = from_empty(std::get<Schedule>(made));
      for (const std::string dialect : {"pytorch", "pytorch-old"}) {
        for (const bool messages : {false, true}) {
          CAPTURE(row.name, p, m, dialect, messages);
          const std::string text = written(schedule, dialect, messages);
          const ScheduleFile back = read(text);
          CHECK(back.schedule.orders == schedule.orders);
          CHECK(back.schedule.splits_backward == schedule.splits_backward);
          CHECK(back.dialect == dialect);
          CHECK(back.defects.empty());
          CHECK((!messages || runs_in_lockstep(text)));
        }
      }
    }
  }
}

TEST_CASE("recomputation has no word in PyTorch's files", "[schedule][pytorch]") {
  const std::vector<char> all(2, 1);
  const Schedule schedule = add_recompute(test::schedule_of("1f1b", 2, 2), all, {});
  CHECK(std::get<Infeasible>(to_csv(schedule, "pytorch", false)).reason ==
        "PyTorch's CSV has no token for recomputation");
}

TEST_CASE("a message without its peer, twice or out of place is named", "[schedule][pytorch]") {
  const std::string first = "0F0,0SEND_F0,0RECV_B0,0B0\n";
  const std::string second = "1RECV_F0,1F0,1B0,1SEND_B0\n";
  CHECK(defects_of(read(first + second)).empty());
  CHECK(defects_of(read("0F0,0RECV_B0,0B0\n" + second)) == "1RECV_F0 on rank 1 has no 0SEND_F0");
  CHECK(defects_of(read("0F0,0SEND_F0,0SEND_F0,0RECV_B0,0B0\n" + second)) ==
        "0SEND_F0 appears more than once, again on rank 0");
  CHECK(defects_of(read("0SEND_F0,0F0,0RECV_B0,0B0\n" + second)) ==
        "0SEND_F0 on rank 0 stands before 0F0, whose data it sends");
  CHECK(defects_of(read("0F0,0SEND_F0,0B0,0RECV_B0\n" + second)) == "0B0 on rank 0 has no 0RECV_B0 before it");
  CHECK(defects_of(read(first + "1RECV_F0,1F0,1SEND_B0,1B0\n")) ==
        "1SEND_B0 on rank 1 stands before the backward whose data it sends");
}

// Rank 0 first wants a gradient of micro-batch 0, and only then sends the activation that it hangs on.
TEST_CASE("messages that wait for each other are shown as a cycle", "[schedule][pytorch]") {
  const ScheduleFile file = read("0F0,0RECV_B0,0SEND_F0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  CHECK(schedule_defects(file.schedule).empty()); // the work alone could run
  CHECK(defects_of(file) == "deadlock: 0RECV_B0 on rank 0 waits for 1SEND_B0; 1RECV_F0 on rank 1 waits for 0SEND_F0");
}

TEST_CASE("work that is missing, repeated or in a cycle is named", "[schedule][pytorch]") {
  CHECK(defects_of(read("0F0\n1F0,1B0\n")) == "B0@0 is missing");
  CHECK(defects_of(read("0F0,0F0,0B0\n")) == "F0@0 appears more than once, again on rank 0");
  CHECK_THAT(defects_of(read("0F0,0B0\n1B0,1F0\n")), Catch::StartsWith("deadlock: "));
}

TEST_CASE("a changed letter in a file causes at most an error", "[schedule][pytorch][fuzz]") {
  std::mt19937 random(7);
  const std::string letters = "0123456789FIBWSENDRCV_();,@+\n x";
  const std::string sound = written(test::schedule_of("zb-h1", 3, 4), "pytorch", true) + "(0F1;0B0)OVERLAP_F_B\n";
  int readable = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = sound;
    for (int change = 0; change < 1 + round % 4; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
      case 0:
        text[at] = letters[random() % letters.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 9);
        break;
      default:
        text.insert(at, 1, letters[random() % letters.size()]);
      }
    }
    try {
      const ScheduleFile file = read(text);
      const Schedule& schedule = file.schedule;
      if (static_cast<long>(schedule.stages) * schedule.micro_batches < 1000) {
        schedule_defects(file);
        ++readable;
      }
    } catch (const InputError&) {
    }
  }
  CHECK(readable > 100);
}

} // namespace
} // namespace stagecraft
