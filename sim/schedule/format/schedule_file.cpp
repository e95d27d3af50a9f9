// SPDX-License-Identifier: Apache-2.0
#include "sim/schedule/format/schedule_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/schedule/format/csv_cells.hpp"
#include "sim/schedule/format/pytorch_csv.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kKinds = "FBWR"; // the kinds that a schedule orders, the first ones of TaskKind
constexpr std::string_view kOurs = "stagecraft", kPytorch = "pytorch", kPytorchOld = "pytorch-old";

Action read_action(std::string_view token, const Where& where) {
  const std::size_t kind = token.empty() ? std::string_view::npos : kKinds.find(token.front());
  const std::size_t at = token.find('@');
  if (kind == std::string_view::npos || at == std::string_view::npos) {
    throw InputError(where, "'" + excerpt(token, 40) +
                                "' is no task; allowed: F, B, W or R, a micro-batch, @ and a stage, as F0@1");
  }
  return {static_cast<TaskKind>(kind), parse_integer(token.substr(1, at - 1), 0, kMostNumber, where),
          parse_integer(token.substr(at + 1), 0, kMostNumber, where)};
}

// Reads a cell: a task, or several that run together, joined by +.
void read_cell(std::string_view cell, const Where& where, Schedule& schedule) {
  for_each_cell(cell, '+', [&](std::string_view token, int column) {
    Action action = read_action(token, {where.file, where.line, where.column + column - 1});
    action.fused = column > 1;
    schedule.stages = std::max(schedule.stages, action.stage + 1);
    schedule.micro_batches = std::max(schedule.micro_batches, action.micro_batch + 1);
    schedule.splits_backward |= action.kind == TaskKind::weight;
    schedule.orders.back().push_back(action);
  });
}

} // namespace

std::vector<ScheduleDefect> find_defects(const ScheduleFile& file) {
  std::vector<ScheduleDefect> defects = find_defects(file.schedule);
  defects.insert(defects.end(), file.defects.begin(), file.defects.end());
  return defects;
}

std::vector<std::string> schedule_defects(const ScheduleFile& file) {
  std::vector<std::string> texts;
  for (ScheduleDefect& defect : find_defects(file)) {
    texts.push_back(std::move(defect.text));
  }
  return texts;
}

Where place_of(const ScheduleDefect& defect, const ScheduleFile& read, const std::string& file) {
  const auto rank = static_cast<std::size_t>(defect.rank); // -1: beyond all
  return rank < read.lines.size() ? Where{file, read.lines[rank], 1} : Where{file, 0, 0};
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& order : schedule.orders) {
    std::string line = to_text(order);
    std::replace(line.begin(), line.end(), ' ', ',');
    text += line + "\n";
  }
  return text;
}

std::span<const ScheduleDialect> schedule_dialects() {
  static constexpr std::array kDialects = {
      ScheduleDialect{kOurs, "F0@1: work, micro-batch, stage"},
      ScheduleDialect{kPytorch,
                      "1F0 of torch.distributed.pipelining: stage, work, micro-batch; B is the whole backward"},
      ScheduleDialect{kPytorchOld, "its older files: B is the gradient of the input alone"},
  };
  return kDialects;
}

std::variant<std::string, Infeasible> to_csv(const Schedule& schedule, std::string_view dialect, bool messages) {
  if (dialect == kOurs) {
    return messages ? std::variant<std::string, Infeasible>{Infeasible{"our own CSV has no messages"}}
                    : to_csv(schedule);
  }
  const bool old = dialect == kPytorchOld;
  return to_pytorch_csv(schedule, old ? PytorchDialect::old : PytorchDialect::current, messages);
}

ScheduleFile read_schedule(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  ScheduleFile read{.dialect = std::string(kOurs)};
  for_each_line(text, [&](std::string_view, int number) { read.lines.push_back(number); });
  if (is_pytorch_csv(text)) {
    PytorchSchedule foreign = read_pytorch_csv(text, file);
    read.schedule = std::move(foreign.schedule);
    read.dialect = foreign.dialect == PytorchDialect::old ? kPytorchOld : kPytorch;
    read.defects = std::move(foreign.defects);
  } else {
    for_each_line(text, [&](std::string_view line, int number) {
      read.schedule.orders.emplace_back();
      for_each_cell(line, ',', [&](std::string_view cell, int column) {
        read_cell(cell, {file, number, column}, read.schedule);
      });
    });
  }
  if (read.schedule.stages == 0) {
    throw InputError({file, 1, 1}, "no tasks; allowed: a line of tasks per device, as F0@0,B0@0");
  }
  read.schedule.name = std::filesystem::path(file).stem().string();
  return read;
}

} // namespace stagecraft
