// SPDX-License-Identifier: Apache-2.0
#include "sim/validate/run_record.hpp"

#include <algorithm>
#include <fstream>

#include "sim/base/units.hpp"

namespace stagecraft {

double RunRecord::condition(std::string_view wanted) const {
  for (const auto& [name, value] : conditions) {
    if (name == wanted) {
      return parse_number(value, {name, 0, 0});
    }
  }
  return 0;
}

double RunRecord::latest_sleeper() const { return condition("latest_sleeper_seconds"); }

bool RunRecord::disturbed() const {
  constexpr double kShare = 0.002, kWaking = 0.5e-3; // s
  const bool all = condition("runs") > 0 && condition("disturbed_runs") == condition("runs");
  return all || latest_sleeper() > std::max(kWaking, kShare * makespan());
}

bool is_run_record(const std::filesystem::path& path) {
  std::error_code failure;
  if (path.extension() != ".json" || !std::filesystem::is_regular_file(path, failure)) {
    return false;
  }
  constexpr std::size_t kHead = 200;
  std::string head(kHead, '\0');
  std::ifstream(path).read(head.data(), kHead);
  return head.find("\"executed\"") != std::string::npos;
}

} // namespace stagecraft
