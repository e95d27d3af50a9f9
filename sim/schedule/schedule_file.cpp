// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/schedule_file.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/base/units.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kKinds = "FBWR"; // those that a schedule orders, first in TaskKind
constexpr int kMost = 1 << 24;

Action read_token(std::string_view token, const Where& where) {
  const std::size_t kind = token.empty() ? std::string_view::npos : kKinds.find(token.front());
  const std::size_t at = token.find('@');
  if (kind == std::string_view::npos || at == std::string_view::npos) {
    throw InputError(where, "'" + std::string(token.substr(0, 40)) +
                                "' is no task; allowed: F, B, W or R, a micro-batch, @ and a stage, as F0@1");
  }
  return {static_cast<TaskKind>(kind), parse_integer(token.substr(1, at - 1), 0, kMost, where),
          parse_integer(token.substr(at + 1), 0, kMost, where)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

void read_line(std::string_view line, const Where& where, Schedule& schedule) {
  std::vector<Action>& order = schedule.orders.emplace_back();
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t comma = std::min(line.find(',', at), line.size());
    const std::string_view token = trimmed(line.substr(at, comma - at));
    if (!token.empty()) { // an empty cell is an idle step
      const Action action = read_token(token, {where.file, where.line, static_cast<int>(at) + 1});
      schedule.stages = std::max(schedule.stages, action.stage + 1);
      schedule.micro_batches = std::max(schedule.micro_batches, action.micro_batch + 1);
      schedule.splits_backward |= action.kind == TaskKind::weight;
      order.push_back(action);
    }
    at = comma + 1;
  }
}

} // namespace

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& order : schedule.orders) {
    std::string line = to_text(order);
    std::replace(line.begin(), line.end(), ' ', ',');
    text += line + "\n";
  }
  return text;
}

Schedule read_schedule(std::string_view text, const std::string& file) {
  Schedule schedule;
  schedule.name = std::filesystem::path(file).stem().string();
  int line = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    ++line;
    if (!trimmed(text.substr(0, end)).empty()) {
      read_line(text.substr(0, end), {file, line, 1}, schedule);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (schedule.orders.empty()) {
    throw InputError({file, 1, 1}, "no tasks; allowed: a line of tasks per device, as F0@0,B0@0");
  }
  return schedule;
}

} // namespace stagecraft
