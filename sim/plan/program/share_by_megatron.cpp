// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

// What the ranks of a tensor axis share.
class MegatronAxis {
public:
  MegatronAxis(const std::vector<Signature>& operators, int ranks, const MegatronRule& rule)
      : operators_(operators), ranks_(ranks), rule_(rule), readers_(readers_of(operators)) {
    chosen_.letters.assign(operators.size(), kNone);
  }

  AxisLetters share() {
    for (int op = 0; op < count(); ++op) {
      if (is_look_up(operators_[op])) {
        letter(op) = summed_letter(operators_[op]);
        pad({op});
      } else if (is_product(operators_[op]) && letter(op) == kNone) {
        share_product(op);
      }
    }
    for (int op = 0; op < count() && rule_.sequence; ++op) {
      const int tokens = find_letter(operators_[op], kTokens);
      if (letter(op) == kNone && tokens != kNone && operators_[op].letters[tokens].along == Along::each &&
          !is_product(operators_[op])) {
        letter(op) = tokens;
      }
    }
    return std::move(chosen_);
  }

private:
  int count() const { return static_cast<int>(operators_.size()); }
  int& letter(int op) { return chosen_.letters[op]; }

  void share_product(int product) {
    const auto free = [this](int op) { return letter(op) == kNone; };
    const std::optional<Region> region = region_after(product, operators_, readers_, free);
    if (region) {
      if (rule_.gathers_tokens) {
        share_terms_of_rows(*region, operators_, readers_, chosen_.letters);
      }
      share_region(*region, operators_, chosen_.letters);
    } else if (rule_.alone) {
      share_alone(product);
    }
    if (region && region->reduces) { // logits, and the loss over them
      pad(region->first);
      pad(region->between);
    }
  }

  // A product without a partner. Under sequence parallelism one that leads straight to a norm, as the way down to the
  // short vectors of latent attention, works on each rank's tokens; Megatron-LM has such weights on all ranks.
  void share_alone(int product) {
    const int tokens = find_letter(operators_[product], kTokens);
    if (rule_.sequence && tokens != kNone && leads_to_norm(product)) {
      letter(product) = tokens;
      return;
    }
    const int features = feature_letter(operators_[product]);
    if (features != kNone && operators_[product].letters[features].pieces % ranks_ == 0) {
      letter(product) = features;
    }
  }

  bool leads_to_norm(int op) const {
    return std::any_of(readers_[op].begin(), readers_[op].end(), [&](const OutputReader& reader) {
      const Signature& signature = operators_[reader.op];
      const bool alone = signature.inputs.size() == 1 && feature_letter(signature) == kNone;
      return alone && (!signature.parameters.empty() || leads_to_norm(reader.op));
    });
  }

  // What the operators share may be made up to any number.
  void pad(const std::set<int>& operators) {
    if (rule_.pads_vocabulary) {
      chosen_.padded.insert(operators.begin(), operators.end());
    }
  }

  const std::vector<Signature>& operators_;
  int ranks_;
  const MegatronRule& rule_;
  std::vector<std::vector<OutputReader>> readers_;
  AxisLetters chosen_;
};

} // namespace

std::variant<SharedLetters, Infeasible> share_by_megatron(const std::vector<Signature>& operators, const Layout& layout,
                                                          const MegatronRule& rule) {
  return share_axes(operators, layout, "Megatron-LM",
                    [&](int ranks) { return MegatronAxis(operators, ranks, rule).share(); });
}

} // namespace stagecraft
