// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/run/sweep_task.hpp"

#include "sim/base/bytes.hpp"

namespace stagecraft {
namespace {

void put_point(std::string& bytes, const Point& point) {
  put(bytes, point.number);
  put(bytes, point.run);
}

Point take_point(ByteReader& reader) {
  const auto number = reader.take<std::uint64_t>();
  return {number, reader.take<std::uint32_t>()};
}

} // namespace

std::pair<SweepTask, SweepTask> SweepTask::split(std::uint64_t units) const {
  SweepTask one = *this;
  SweepTask other = *this;
  if (points.empty()) {
    one.end = other.first = first + units;
  } else {
    const auto middle = points.begin() + static_cast<std::ptrdiff_t>(units);
    one.points.assign(points.begin(), middle);
    other.points.assign(middle, points.end());
  }
  return {std::move(one), std::move(other)};
}

std::string to_bytes(const SweepTask& task) {
  std::string bytes;
  put(bytes, task.first);
  put(bytes, task.end);
  put(bytes, task.are_absent);
  for (const Point& point : task.points) {
    put_point(bytes, point);
  }
  return bytes;
}

SweepTask task_from(const std::string& bytes) {
  ByteReader reader(bytes);
  SweepTask task;
  task.first = reader.take<std::uint64_t>();
  task.end = reader.take<std::uint64_t>();
  task.are_absent = reader.take<bool>();
  while (!reader.done()) {
    task.points.push_back(take_point(reader));
  }
  return task;
}

std::string to_bytes(const TaskResult& result) {
  std::string bytes;
  put(bytes, result.units);
  put(bytes, static_cast<std::uint64_t>(result.done.size()));
  put_text(bytes, result.done.bytes());
  put(bytes, static_cast<std::uint64_t>(result.left.size()));
  for (const Point& point : result.left) {
    put_point(bytes, point);
  }
  for (const TaskResult::Known& known : result.known) {
    put_point(bytes, known.point);
    put(bytes, known.key);
  }
  return bytes;
}

TaskResult task_result_from(const std::string& bytes) {
  ByteReader reader(bytes);
  TaskResult result;
  result.units = reader.take<std::uint64_t>();
  const auto done = reader.take<std::uint64_t>();
  result.done = {std::string(reader.take_text()), done};
  for (auto left = reader.take<std::uint64_t>(); left > 0; --left) {
    result.left.push_back(take_point(reader));
  }
  while (!reader.done()) {
    const Point point = take_point(reader);
    result.known.push_back({point, reader.take<Digest>()});
  }
  return result;
}

} // namespace stagecraft
