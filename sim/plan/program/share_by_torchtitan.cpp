// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

// What the ranks of a tensor axis share.
class TorchTitanAxis {
public:
  TorchTitanAxis(const std::vector<Signature>& operators, const TorchTitanRule& rule)
      : operators_(operators), rule_(rule), readers_(readers_of(operators)) {
    chosen_.letters.assign(operators.size(), kNone);
  }

  AxisLetters share() {
    const auto free = [this](int op) { return letter(op) == kNone; };
    for (int op = 0; op < count(); ++op) {
      if (is_look_up(operators_[op])) { // RowwiseParallel: words
        letter(op) = summed_letter(operators_[op]);
        chosen_.padded.insert(op);
      } else if (is_product(operators_[op]) && free(op)) {
        if (std::optional<Region> region = region_after(op, operators_, readers_, free)) {
          if (!rule_.experts_by_token) { // apply_moe_ep_tp(), moe_sharding.py; routers are NoParallel
            whole_.merge(share_terms_of_rows(*region, operators_, readers_, chosen_.letters));
          }
          share_products(*std::move(region));
        } else {
          whole_.insert(op); // NoParallel
        }
      }
    }
    for (int op = 0; op < count() && rule_.sequence; ++op) {
      share_tokens(op);
    }
    return std::move(chosen_);
  }

private:
  int count() const { return static_cast<int>(operators_.size()); }
  int& letter(int op) { return chosen_.letters[op]; }

  // ColwiseParallel for the first, RowwiseParallel for the last. Without a parallel loss the logits are gathered, and
  // what reads them works on all of them.
  void share_products(Region region) {
    if (region.reduces) {
      chosen_.padded.insert(region.first.begin(), region.first.end());
      chosen_.padded.insert(region.between.begin(), region.between.end());
    }
    if (region.reduces && !rule_.loss_parallel) {
      whole_.merge(region.between);
      region.between.clear();
    }
    share_region(region, operators_, chosen_.letters);
  }

  // SequenceParallel for all that is left, except for what follows an operator that is done whole: on latent
  // attention's way down nothing is cut again before the next product.
  void share_tokens(int op) {
    if (letter(op) != kNone || whole_.count(op) > 0) {
      return;
    }
    const auto is_whole = [this](const InputSignature& input) {
      return input.maker >= 0 && whole_.count(input.maker) > 0;
    };
    const auto& inputs = operators_[op].inputs;
    const int tokens = find_letter(operators_[op], kTokens);
    if (!inputs.empty() && std::all_of(inputs.begin(), inputs.end(), is_whole)) {
      whole_.insert(op);
    } else if (tokens != kNone && operators_[op].letters[tokens].along == Along::each) {
      letter(op) = tokens;
    }
  }

  const std::vector<Signature>& operators_;
  const TorchTitanRule& rule_;
  std::vector<std::vector<OutputReader>> readers_;
  AxisLetters chosen_;
  std::set<int> whole_; // done by every rank, all of it
};

} // namespace

std::variant<SharedLetters, Infeasible> share_by_torchtitan(const std::vector<Signature>& operators,
                                                            const Layout& layout, const TorchTitanRule& rule) {
  return share_axes(operators, layout, "TorchTitan", [&](int) { return TorchTitanAxis(operators, rule).share(); });
}

} // namespace stagecraft
