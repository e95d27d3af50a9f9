// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

class TorchTitanLayout {
public:
  TorchTitanLayout(const std::vector<Signature>& operators, const Layout& layout, const TorchTitanRule& rule)
      : operators_(operators), layout_(layout), rule_(rule),
        shared_(operators.size(), std::vector<int>(layout.dimensions.size(), kNone)), readers_(readers_of(operators)) {}

  std::variant<SharedLetters, Infeasible> share() {
    for (std::size_t axis = 0; axis < layout_.dimensions.size(); ++axis) {
      axis_ = axis;
      switch (layout_.dimensions[axis].axis) {
      case Axis::data:
        share_letter(kSamples);
        break;
      case Axis::context:
        share_letter(kTokens);
        break;
      case Axis::tensor:
        if (const std::optional<Infeasible> reason = mixture_defect()) {
          return *reason;
        }
        share_tensor();
        break;
      default:
        return Infeasible{"the rule of TorchTitan lays out experts by their own layout"};
      }
      if (std::optional<Infeasible> defect = sharing_defect(operators_, layout_, shared_, axis, padded_)) {
        return *defect;
      }
    }
    return shared_;
  }

private:
  int count() const { return static_cast<int>(operators_.size()); }
  int& letter(int op) { return shared_[op][axis_]; }

  void share_letter(std::string_view name) {
    for (int op = 0; op < count(); ++op) {
      letter(op) = find_letter(operators_[op], name);
    }
  }

  // apply_moe_ep_tp(): every rank makes all rows from gathered tokens, and terms of rows are combined to terms of
  // tokens before anything is added up. No signature says that an operator may work on terms.
  std::optional<Infeasible> mixture_defect() const {
    for (int op = 0; op < count() && layout_.dimensions[axis_].size > 1; ++op) {
      const auto& inputs = operators_[op].inputs;
      if (std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return !input.passes_gradient; })) {
        return Infeasible{"operator " + std::to_string(op) +
                          " works on rows of experts, which the rule of TorchTitan combines as terms of sums; that is "
                          "not modelled"};
      }
    }
    return std::nullopt;
  }

  void share_tensor() {
    const auto free = [this](int other) { return letter(other) == kNone; };
    for (int op = 0; op < count(); ++op) {
      if (is_look_up(operators_[op])) { // RowwiseParallel: words
        letter(op) = summed_letter(operators_[op]);
        padded_.insert(op);
      } else if (is_product(operators_[op]) && free(op)) {
        if (const std::optional<Region> region = region_after(op, operators_, readers_, free)) {
          share_region(*region);
        } else {
          whole_.insert(op); // NoParallel
        }
      }
    }
    for (int op = 0; op < count() && rule_.sequence; ++op) {
      share_tokens(op);
    }
  }

  // ColwiseParallel for the first, RowwiseParallel for the last. Without a parallel loss the logits are gathered, and
  // what reads them works on all of them.
  void share_region(const Region& region) {
    for (const int op : region.first) {
      letter(op) = feature_letter(operators_[op]);
    }
    for (const int op : region.last) {
      letter(op) = summed_letter(operators_[op]);
    }
    if (region.reduces) {
      padded_.insert(region.first.begin(), region.first.end());
      padded_.insert(region.between.begin(), region.between.end());
    }
    if (region.reduces && !rule_.loss_parallel) {
      whole_.insert(region.between.begin(), region.between.end());
      return;
    }
    for (const int op : region.between) {
      const int reduced = reduced_letter(operators_[op]);
      letter(op) = reduced != kNone ? reduced : feature_letter(operators_[op]);
    }
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
  const Layout& layout_;
  const TorchTitanRule& rule_;
  SharedLetters shared_;
  std::vector<std::vector<OutputReader>> readers_;
  std::set<int> padded_; // what they share may be made up to any number
  std::set<int> whole_;  // done by every rank, all of it
  std::size_t axis_ = 0;
};

} // namespace

std::variant<SharedLetters, Infeasible> share_by_torchtitan(const std::vector<Signature>& operators,
                                                            const Layout& layout, const TorchTitanRule& rule) {
  return TorchTitanLayout(operators, layout, rule).share();
}

} // namespace stagecraft
