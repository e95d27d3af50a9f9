// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store/sweep_row.hpp"

#include <array>
#include <cstddef>
#include <cstring>

#include "sim/base/bytes.hpp"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, kStatuses> kStatus = {"feasible", "infeasible", "failed"};

template <class Text> std::array<Text BasicPointRow<Text>::*, 7> texts() {
  using Row = BasicPointRow<Text>;
  return {&Row::settings, &Row::strategy, &Row::schedule, &Row::recompute, &Row::engine, &Row::order, &Row::reason};
}

} // namespace

std::string_view name_of(PointStatus status) { return kStatus.at(static_cast<std::size_t>(status)); }

bool SweepShard::has(const Digest& key) const {
  constexpr int kByte = 256;
  return (key.bytes[0] * kByte + key.bytes[1]) % count == index - 1;
}

// Writes the point's length, then the point, which begins with its key.
void PackedPoints::add(const PointRow& row) {
  const std::size_t start = bytes_.size();
  put(bytes_, std::uint32_t{0});
  put(bytes_, static_cast<const PointNumbers&>(row));
  for (std::string PointRow::*const text : texts<std::string>()) {
    put_text(bytes_, row.*text);
  }
  const auto length = static_cast<std::uint32_t>(bytes_.size() - start - sizeof(std::uint32_t));
  std::memcpy(bytes_.data() + start, &length, sizeof length);
  ++size_;
}

void PackedPoints::list(std::vector<std::string_view>& points) const {
  for (ByteReader reader(bytes_); !reader.done();) {
    points.push_back(reader.take_text());
  }
}

PointView view_of(std::string_view point) {
  ByteReader reader(point);
  PointView view;
  static_cast<PointNumbers&>(view) = reader.take<PointNumbers>();
  for (std::string_view PointView::*const text : texts<std::string_view>()) {
    view.*text = reader.take_text();
  }
  return view;
}

Digest key_of(std::string_view point) {
  static_assert(offsetof(PointNumbers, key) == 0);
  return ByteReader(point).take<Digest>();
}

} // namespace stagecraft
