// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/product_regions.hpp"

#include <algorithm>

#include "sim/plan/program/shared_letters.hpp"

namespace stagecraft {
namespace {

template <class Is> int first_letter(const Signature& signature, const Is& is) {
  const auto found = std::find_if(signature.letters.begin(), signature.letters.end(), is);
  return found == signature.letters.end() ? kNone : static_cast<int>(found - signature.letters.begin());
}

// Grows a region from its first product, reader by reader.
class Grower {
public:
  Grower(const std::vector<Signature>& operators, const std::vector<std::vector<OutputReader>>& readers)
      : operators_(operators), readers_(readers) {}

  std::optional<Region> grow(int product) {
    region_.first = {product};
    open_ = {product};
    while (!open_.empty()) {
      const int op = open_.back();
      open_.pop_back();
      for (const OutputReader& read : readers_[op]) {
        if (is_product(operators_[read.op])) {
          region_.last.insert(read.op);
        } else if (!enter(read.op)) {
          return std::nullopt;
        }
      }
    }
    region_.reduces = std::any_of(region_.between.begin(), region_.between.end(),
                                  [&](int op) { return reduced_letter(operators_[op]) != kNone; });
    return region_;
  }

private:
  // Adds an operator that keeps features apart, or reduces over them, with the makers of what it reads.
  bool enter(int op) {
    const int reduced = reduced_letter(operators_[op]);
    const int features = reduced != kNone ? reduced : feature_letter(operators_[op]);
    if (features == kNone) {
      return false;
    }
    if (!region_.between.insert(op).second) {
      return true;
    }
    open_.push_back(op);
    for (const InputSignature& input : operators_[op].inputs) {
      if (input.maker < 0 || dimension_of(input.dimensions, features) < 0) { // weights of rows, say
        continue;
      }
      if (is_product(operators_[input.maker])) {
        if (region_.first.insert(input.maker).second) {
          open_.push_back(input.maker);
        }
      } else if (!enter(input.maker)) {
        return false;
      }
    }
    return true;
  }

  const std::vector<Signature>& operators_;
  const std::vector<std::vector<OutputReader>>& readers_;
  Region region_;
  std::vector<int> open_;
};

} // namespace

int find_letter(const Signature& signature, std::string_view name) {
  return first_letter(signature, [&](const Letter& one) { return one.name == name; });
}

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

int reduced_letter(const Signature& signature) {
  return first_letter(signature, [](const Letter& one) { return one.along == Along::reduce; });
}

int feature_letter(const Signature& signature) {
  if (signature.output.empty()) {
    return kNone;
  }
  const int letter = signature.output.back().letter;
  const Letter& last = signature.letters[letter];
  return last.along == Along::each && last.name != kSamples && last.name != kTokens ? letter : kNone;
}

bool is_product(const Signature& signature) {
  const int letter = summed_letter(signature);
  return letter != kNone &&
         std::any_of(signature.inputs.begin(), signature.inputs.end(),
                     [&](const InputSignature& input) { return dimension_of(input.dimensions, letter) >= 0; });
}

bool is_look_up(const Signature& signature) { return summed_letter(signature) != kNone && !is_product(signature); }

std::optional<Region> region_after(int product, const std::vector<Signature>& operators,
                                   const std::vector<std::vector<OutputReader>>& readers,
                                   const std::function<bool(int)>& free) {
  const std::optional<Region> region = Grower(operators, readers).grow(product);
  if (!region || (!region->reduces && region->last.empty())) {
    return std::nullopt;
  }
  const auto all_free = [&](const std::set<int>& some) { return std::all_of(some.begin(), some.end(), free); };
  const bool both =
      std::any_of(region->first.begin(), region->first.end(), [&](int op) { return region->last.count(op) > 0; });
  return !both && all_free(region->first) && all_free(region->between) && all_free(region->last) ? region
                                                                                                 : std::nullopt;
}

std::set<int> share_terms_of_rows(const Region& region, const std::vector<Signature>& operators,
                                  const std::vector<std::vector<OutputReader>>& readers, std::vector<int>& letters) {
  const auto takes_terms = [&](const OutputReader& reader) {
    return operators[reader.op].inputs[reader.input].takes_terms;
  };
  std::set<int> routers;
  for (const int op : region.first) {
    const auto& inputs = operators[op].inputs;
    if (inputs.size() < 2 || inputs[1].passes_gradient) {
      continue; // no product of experts
    }
    if (const int router = inputs[1].maker; router >= 0 && !operators[router].parameters.empty()) {
      routers.insert(router);
    }
    const int rows = inputs[0].maker;
    if (rows >= 0 && takes_terms({rows, 0}) &&
        std::all_of(readers[rows].begin(), readers[rows].end(),
                    [&](const OutputReader& reader) { return region.first.count(reader.op) > 0; })) {
      letters[rows] = kTermsOfGradient;
    }
  }
  for (const int op : region.last) {
    if (std::all_of(readers[op].begin(), readers[op].end(), takes_terms)) {
      for (const OutputReader& reader : readers[op]) {
        letters[reader.op] = kTerms;
      }
    }
  }
  return routers;
}

void share_region(const Region& region, const std::vector<Signature>& operators, std::vector<int>& letters) {
  for (const int op : region.first) {
    letters[op] = feature_letter(operators[op]);
  }
  for (const int op : region.between) {
    const int reduced = reduced_letter(operators[op]);
    letters[op] = reduced != kNone ? reduced : feature_letter(operators[op]);
  }
  for (const int op : region.last) {
    letters[op] = summed_letter(operators[op]);
  }
}

} // namespace stagecraft
