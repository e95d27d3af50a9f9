// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "sim/plan/program/product_regions.hpp"
#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

class Rule {
public:
  Rule(const std::vector<Signature>& operators, const Layout& layout, const MegatronRule& rule)
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
        share_tensor();
        break;
      default:
        return Infeasible{"the rule of Megatron-LM lays out experts by their own layout"};
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

  void share_tensor() {
    for (int op = 0; op < count(); ++op) {
      if (is_look_up(operators_[op])) {
        letter(op) = summed_letter(operators_[op]);
        pad(op);
      } else if (is_product(operators_[op]) && letter(op) == kNone) {
        const auto free = [this](int other) { return letter(other) == kNone; };
        if (const std::optional<Region> region = region_after(op, operators_, readers_, free)) {
          share_region(*region);
        } else if (rule_.alone) {
          share_alone(op);
        }
      }
    }
    for (int op = 0; op < count() && rule_.sequence; ++op) {
      const int tokens = find_letter(operators_[op], kTokens);
      if (letter(op) == kNone && tokens != kNone && operators_[op].letters[tokens].along == Along::each &&
          !is_product(operators_[op])) {
        letter(op) = tokens;
      }
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
    if (features != kNone && operators_[product].letters[features].pieces % layout_.dimensions[axis_].size == 0) {
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

  void share_region(const Region& region) {
    for (const int op : region.first) {
      letter(op) = feature_letter(operators_[op]);
    }
    for (const int op : region.between) {
      const int reduced = reduced_letter(operators_[op]);
      letter(op) = reduced != kNone ? reduced : feature_letter(operators_[op]);
    }
    for (const int op : region.last) {
      letter(op) = summed_letter(operators_[op]);
    }
    if (region.reduces) { // logits, and the loss over them
      std::for_each(region.first.begin(), region.first.end(), [this](int op) { pad(op); });
      std::for_each(region.between.begin(), region.between.end(), [this](int op) { pad(op); });
    }
  }

  // What the operator shares may be made up to any number.
  void pad(int op) {
    if (rule_.pads_vocabulary) {
      padded_.insert(op);
    }
  }

  const std::vector<Signature>& operators_;
  const Layout& layout_;
  const MegatronRule& rule_;
  SharedLetters shared_;
  std::vector<std::vector<OutputReader>> readers_;
  std::set<int> padded_;
  std::size_t axis_ = 0;
};

} // namespace

std::variant<SharedLetters, Infeasible> share_by_megatron(const std::vector<Signature>& operators, const Layout& layout,
                                                          const MegatronRule& rule) {
  return Rule(operators, layout, rule).share();
}

} // namespace stagecraft
