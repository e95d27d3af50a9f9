// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep_row.hpp"

#include <array>

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

void PackedPoints::add(const PointRow& row) {
  put(bytes_, static_cast<const PointNumbers&>(row));
  for (std::string PointRow::*const text : texts<std::string>()) {
    put_text(bytes_, row.*text);
  }
  ++size_;
}

void PackedPoints::list(std::vector<PointView>& views) const {
  for (ByteReader reader(bytes_); !reader.done();) {
    PointView& view = views.emplace_back();
    static_cast<PointNumbers&>(view) = reader.take<PointNumbers>();
    for (std::string_view PointView::*const text : texts<std::string_view>()) {
      view.*text = reader.take_text();
    }
  }
}

} // namespace stagecraft
