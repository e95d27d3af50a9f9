// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

int find_letter(const Signature& signature, std::string_view name) {
  const auto& letters = signature.letters;
  const auto found = std::find_if(letters.begin(), letters.end(), [&](const Letter& one) { return one.name == name; });
  return found == letters.end() ? kNone : static_cast<int>(found - letters.begin());
}

// The letter that a parameter of the operator is summed over; kNone where there is none.
int summed_letter(const Signature& signature) {
  for (const ParameterSignature& parameter : signature.parameters) {
    for (const TensorDimension& dimension : parameter.dimensions) {
      if (signature.letters[dimension.letter].along == Along::sum) {
        return dimension.letter;
      }
    }
  }
  return kNone;
}

// Multiplies an activation with a weight.
bool is_product(const Signature& signature) {
  const int letter = summed_letter(signature);
  return letter != kNone &&
         std::any_of(signature.inputs.begin(), signature.inputs.end(),
                     [&](const InputSignature& input) { return dimension_of(input.dimensions, letter) >= 0; });
}

bool is_look_up(const Signature& signature) { return summed_letter(signature) != kNone && !is_product(signature); }

int reduced_letter(const Signature& signature) {
  const auto& letters = signature.letters;
  const auto found =
      std::find_if(letters.begin(), letters.end(), [](const Letter& one) { return one.along == Along::reduce; });
  return found == letters.end() ? kNone : static_cast<int>(found - letters.begin());
}

// The letter of the output's last dimension, if the operator keeps it apart and it counts features.
int feature_letter(const Signature& signature) {
  if (signature.output.empty()) {
    return kNone;
  }
  const int letter = signature.output.back().letter;
  const Letter& last = signature.letters[letter];
  return last.along == Along::each && last.name != kSamples && last.name != kTokens ? letter : kNone;
}

// Products, and what lies between them: `first` are shared by outputs, `last` by inputs.
struct Region {
  std::set<int> first, between, last;
};

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
      if (std::optional<Infeasible> defect = find_defect()) {
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
        if (const std::optional<Region> region = region_after(op)) {
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
    if (reduces(region)) { // logits, and the loss over them
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

  bool reduces(const Region& region) const {
    return std::any_of(region.between.begin(), region.between.end(),
                       [&](int op) { return reduced_letter(operators_[op]) != kNone; });
  }

  // What a product's output reaches, with all that leads there; no value where it reaches what needs all features, or a
  // product that is shared otherwise.
  std::optional<Region> region_after(int product) {
    Region region{{product}, {}, {}};
    std::vector<int> open = {product};
    while (!open.empty()) {
      const int op = open.back();
      open.pop_back();
      for (const OutputReader& read : readers_[op]) {
        const int reader = read.op;
        if (is_product(operators_[reader])) {
          region.last.insert(reader);
        } else if (!enter(region, open, reader)) {
          return std::nullopt;
        }
      }
    }
    return is_free(region) && (reduces(region) || !region.last.empty()) ? std::optional(region) : std::nullopt;
  }

  // Adds an operator that keeps features apart, or reduces over them, with the makers of what it reads.
  bool enter(Region& region, std::vector<int>& open, int op) {
    if (feature_letter(operators_[op]) == kNone && reduced_letter(operators_[op]) == kNone) {
      return false;
    }
    if (!region.between.insert(op).second) {
      return true;
    }
    open.push_back(op);
    const int reduced = reduced_letter(operators_[op]);
    const int features = reduced != kNone ? reduced : feature_letter(operators_[op]);
    for (const InputSignature& input : operators_[op].inputs) {
      if (input.maker < 0 || dimension_of(input.dimensions, features) < 0) { // weights of rows, say
        continue;
      }
      if (is_product(operators_[input.maker])) {
        if (region.first.insert(input.maker).second) {
          open.push_back(input.maker);
        }
      } else if (!enter(region, open, input.maker)) {
        return false;
      }
    }
    return true;
  }

  bool is_free(const Region& region) {
    const auto free = [&](int op) { return letter(op) == kNone; };
    const auto both = [&](int op) { return region.last.count(op) > 0; };
    return std::all_of(region.first.begin(), region.first.end(), free) &&
           std::all_of(region.between.begin(), region.between.end(), free) &&
           std::all_of(region.last.begin(), region.last.end(), free) &&
           std::none_of(region.first.begin(), region.first.end(), both);
  }

  std::optional<Infeasible> find_defect() const {
    const auto& [axis, size, stride] = layout_.dimensions[axis_];
    for (int op = 0; op < count(); ++op) {
      const int shared = shared_[op][axis_];
      if (size == 1 || shared == kNone) {
        continue;
      }
      const Letter& letter = operators_[op].letters[shared];
      if (letter.along == Along::whole) {
        return Infeasible{"operator " + std::to_string(op) + " needs all " + letter.name + " at once, so the " +
                          std::string(name_of(axis)) + " axis cannot share them"};
      }
      if (letter.pieces % size != 0 && !(axis == Axis::tensor && padded_.count(op) > 0)) {
        return Infeasible{std::to_string(letter.pieces) + " " + letter.name + " do not divide over " +
                          std::to_string(size) + " " + std::string(name_of(axis)) +
                          "-parallel ranks; nearest that does: " + std::to_string(nearest(letter.pieces, size))};
      }
    }
    return std::nullopt;
  }

  static std::int64_t nearest(std::int64_t pieces, std::int64_t size) {
    for (std::int64_t away = 1;; ++away) {
      if (size > away && pieces % (size - away) == 0) {
        return size - away;
      }
      if (size + away <= pieces && pieces % (size + away) == 0) {
        return size + away;
      }
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
