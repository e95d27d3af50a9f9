// Measured runs that differ in one setting, and runs that are ranked: how well a prediction answers "what if".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The setting of pairs of device types that did the same work, which count apart from pairs of one machine.
inline constexpr std::string_view kDeviceTypeSetting = "device type";

/// Two measured runs that differ in one setting. Ratios are of the time per token: of `after` over `before`.
struct WhatIf {
  std::string group;         ///< the table that both stand in
  std::string setting;       ///< what differs, as "recompute"
  std::string from, to;      ///< its values
  std::string before, after; ///< the cases
  double measured = 1, predicted = 1;
  double tie = 0.03; ///< runs that are measured nearer than this share are equal: nothing says which is faster

  bool is_of_devices() const { return setting == kDeviceTypeSetting; }
  bool is_tie() const;
  /// Whether the prediction says rightly which run is faster. Equal predictions are wrong.
  bool is_sign_right() const;
  /// predicted / measured - 1.
  double error() const { return predicted / measured - 1; }
};

/// How well the ratios of some pairs are predicted.
struct WhatIfAccuracy {
  int pairs = 0, ties = 0;
  double signs_right = 0;  ///< the part of the pairs that are no ties; 0 where all are
  double median_error = 0; ///< of the ratio, absolute, over all pairs
};
WhatIfAccuracy accuracy_of_pairs(const std::vector<WhatIf>& pairs);

/// Those of one machine, or those of two device types.
std::vector<WhatIf> pairs_of_devices(const std::vector<WhatIf>& pairs, bool of_devices);

/// Pairs by table and setting, in order of first appearance.
std::vector<std::pair<std::string, std::vector<WhatIf>>> families_of_pairs(const std::vector<WhatIf>& pairs);

/// Five or more measured runs of one model on one device type.
struct Ranking {
  std::string name;
  int runs = 0;
  std::optional<double> spearman; ///< of predicted and measured device time per token
  double regret = 0;              ///< measured time of the run that is predicted fastest over the least, minus 1
};

/// What both say together: medians over families and rankings, a sentence each; none where there are no pairs.
std::vector<std::string> sentences_of(const std::vector<WhatIf>& pairs, const std::vector<Ranking>& rankings);

/// For a terminal: a line for each family and for all, and one for each ranking.
std::string to_text(const std::vector<WhatIf>& pairs, const std::vector<Ranking>& rankings, bool color);
/// A line per pair: table, setting, from, to, before, after, measured, predicted, error, tie.
std::string to_csv(const std::vector<WhatIf>& pairs);

} // namespace stagecraft
