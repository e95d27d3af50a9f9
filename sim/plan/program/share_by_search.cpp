// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/program/share_by_search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

#include "sim/base/error.hpp"
#include "sim/plan/program/letter_costs.hpp"
#include "sim/plan/program/operator_placements.hpp"
#include "sim/plan/program/product_regions.hpp"

namespace stagecraft {
namespace {

// The letters that frameworks' rules choose, of those rules that work.
std::vector<SharedLetters> letters_by_rules(const std::vector<Signature>& operators, const Layout& layout,
                                            bool sequence) {
  std::vector<SharedLetters> found;
  const auto keep = [&](const std::variant<SharedLetters, Infeasible>& shared) {
    if (const SharedLetters* letters = std::get_if<SharedLetters>(&shared)) {
      found.push_back(*letters);
    }
  };
  keep(share_by_megatron(operators, layout, {sequence, true, true}));
  keep(share_by_torchtitan(operators, layout, {.sequence = sequence}));
  keep(share_by_torchtitan(operators, layout, {.sequence = sequence, .loss_parallel = false}));
  return found;
}

// The elements of an operator's parameters that a rank holds.
double held_elements(const Signature& signature, int letter, int degree) {
  double held = 0;
  for (const ParameterSignature& parameter : signature.parameters) {
    const bool cut = placement_used(parameter.dimensions, letter).is_shard();
    held += elements_of(parameter.dimensions) / (cut ? degree : 1);
  }
  return held;
}

// First those of the rules, so that they stay where others take as long.
std::vector<int> possible_letters(const Signature& signature, const std::vector<int>& of_rules, int degree) {
  std::vector<int> letters;
  const auto add = [&](int letter) {
    if (std::find(letters.begin(), letters.end(), letter) == letters.end()) {
      letters.push_back(letter);
    }
  };
  std::for_each(of_rules.begin(), of_rules.end(), add);
  add(kNone);
  for (int letter = 0; letter < static_cast<int>(signature.letters.size()); ++letter) {
    const Letter& one = signature.letters[letter];
    if (one.along != Along::whole && one.name != kSamples && one.name != kExperts && one.pieces % degree == 0) {
      add(letter);
    }
  }
  return letters;
}

// Without letters that leave a rank more of the parameters than the rules do, or than it must have.
std::vector<int> lean_letters(const Signature& signature, const std::vector<int>& letters,
                              const std::vector<int>& of_rules, int degree) {
  const auto held = [&](int letter) { return held_elements(signature, letter, degree); };
  double most = std::numeric_limits<double>::infinity();
  for (const int letter : letters) {
    most = std::min(most, held(letter));
  }
  for (const int letter : of_rules) {
    most = std::max(most, held(letter));
  }
  std::vector<int> lean;
  std::copy_if(letters.begin(), letters.end(), std::back_inserter(lean), [&](int one) { return held(one) <= most; });
  return lean;
}

// At a border a tensor is whole, or cut by tokens.
int border_letter(const Signature& border, bool sequence, int degree) {
  const int tokens = find_letter(border, kTokens);
  const bool can =
      tokens != kNone && border.letters[tokens].along == Along::each && border.letters[tokens].pieces % degree == 0;
  return sequence && can ? tokens : kNone;
}

using Key = std::vector<std::uint8_t>;

// The dynamic program. Once an operator has its letter, the terms of those tensors are added of which it is the last
// reader. A state is what later terms depend on: the letters of operators whose tensors still have readers to come, and
// what was asked of these tensors so far.
class Search {
public:
  Search(const std::vector<Signature>& operators, const std::vector<std::vector<int>>& choices, const StepTimes& times)
      : operators_(operators), choices_(choices), costs_(operators, times), complete_(operators.size()),
        letter_until_(operators.size(), 0), term_until_(operators.size(), 0), kept_until_(operators.size(), 0),
        asked_(operators.size()), known_(operators.size()), letters_(operators.size(), kNone),
        picked_(operators.size(), 0) {
    find_spans();
    number_readings();
  }

  // No letters where no choice keeps ties.
  std::optional<FoundLetters> find() {
    std::vector<State> states(1);
    for (int op = 0; op < count(); ++op) {
      states = extended(std::move(states), op);
      if (states.empty()) {
        return std::nullopt;
      }
    }
    return traced_back(states.front());
  }

private:
  // The best way to a key. Others that lead there have the same to come.
  struct State {
    Key live{}; // choices of the operators that later terms ask for, in their order
    double seconds = 0;
    int before = -1;         // in the last step's list
    std::uint8_t choice = 0; // of the step's operator
  };
  static constexpr std::size_t kMostStates = 1 << 12;

  int count() const { return static_cast<int>(operators_.size()); }

  void find_spans() {
    for (int op = 0; op < count(); ++op) {
      const auto& readers = costs_.readers()[op];
      term_until_[op] = readers.empty() ? op : readers.back().op;
      complete_[term_until_[op]].push_back(op);
      letter_until_[op] = std::max(letter_until_[op], term_until_[op]);
      for (const OutputReader& reader : readers) {
        kept_until_[reader.op] = std::max(kept_until_[reader.op], term_until_[op]);
      }
      for (const ParameterSignature& parameter : operators_[op].parameters) {
        if (parameter.tied_to >= 0) {
          letter_until_[parameter.tied_to] = std::max(letter_until_[parameter.tied_to], op);
        }
      }
    }
    for (int op = 0; op < count(); ++op) {
      kept_until_[op] = std::max(kept_until_[op], letter_until_[op]);
    }
  }

  // Readings of one tensor that ask for the same have the same number.
  void number_readings() {
    for (int op = 0; op < count(); ++op) {
      std::vector<Reading> known;
      for (const OutputReader& reader : costs_.readers()[op]) {
        Key& numbers = asked_[op].emplace_back();
        for (const int letter : choices_[reader.op]) {
          const Reading reading = costs_.reading(reader, letter);
          const auto found = std::find(known.begin(), known.end(), reading);
          numbers.push_back(static_cast<std::uint8_t>(found - known.begin()));
          if (found == known.end()) {
            known.push_back(reading);
          }
        }
      }
    }
  }

  std::vector<State> extended(std::vector<State> states, int op) {
    std::vector<int> now = live_;
    now.push_back(op);
    live_.clear();
    std::copy_if(now.begin(), now.end(), std::back_inserter(live_), [&](int one) { return kept_until_[one] > op; });
    std::map<Key, State> best;
    for (std::size_t before = 0; before < states.size(); ++before) {
      Key picked = states[before].live;
      picked.push_back(0);
      for (std::size_t choice = 0; choice < choices_[op].size(); ++choice) {
        picked.back() = static_cast<std::uint8_t>(choice);
        pick(now, picked);
        if (costs_.tie_holds(op, letters_)) {
          keep(best, key_after(op),
               {live_choices(), states[before].seconds + completed(op), static_cast<int>(before), picked.back()});
        }
      }
    }
    history_.push_back(std::move(states));
    return fewest(best);
  }

  void pick(const std::vector<int>& now, const Key& picked) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      picked_[now[i]] = picked[i];
      letters_[now[i]] = choices_[now[i]][picked[i]];
    }
  }

  Key live_choices() const {
    Key choices;
    for (const int op : live_) {
      choices.push_back(picked_[op]);
    }
    return choices;
  }

  // What terms after this operator depend on.
  Key key_after(int op) const {
    Key key;
    for (const int one : live_) {
      if (letter_until_[one] > op) {
        key.push_back(picked_[one]);
      }
      if (term_until_[one] > op) {
        const Key asked = asked_until(one, op);
        key.push_back(static_cast<std::uint8_t>(asked.size()));
        key.insert(key.end(), asked.begin(), asked.end());
      }
    }
    return key;
  }

  // The numbers of what the readers up to this operator ask of a tensor, each once.
  Key asked_until(int tensor, int op) const {
    Key asked;
    const auto& readers = costs_.readers()[tensor];
    for (std::size_t i = 0; i < readers.size() && readers[i].op <= op; ++i) {
      asked.push_back(asked_[tensor][i][picked_[readers[i].op]]);
    }
    std::sort(asked.begin(), asked.end());
    asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
    return asked;
  }

  static void keep(std::map<Key, State>& best, Key key, State state) {
    const auto [known, is_new] = best.try_emplace(std::move(key), state);
    if (!is_new && state.seconds < known->second.seconds) {
      known->second = std::move(state);
    }
  }

  std::vector<State> fewest(const std::map<Key, State>& best) {
    std::vector<State> states;
    for (const auto& [key, state] : best) {
      states.push_back(state);
    }
    if (states.size() > kMostStates) {
      exact_ = false;
      std::stable_sort(states.begin(), states.end(),
                       [](const State& a, const State& b) { return a.seconds < b.seconds; });
      states.resize(kMostStates);
    }
    return states;
  }

  // The terms that are complete with this operator, at the letters of now.
  double completed(int op) {
    double sum = 0;
    for (const int term : complete_[op]) {
      Key key = asked_until(term, op);
      key.push_back(picked_[term]);
      const auto [known, is_new] = known_[term].try_emplace(std::move(key), 0);
      if (is_new) {
        known->second = costs_.seconds(term, letters_);
      }
      sum += known->second;
    }
    return sum;
  }

  FoundLetters traced_back(State state) const {
    FoundLetters found{.shared = SharedLetters(operators_.size(), {kNone}), .seconds = Seconds{state.seconds}};
    found.exact = exact_;
    for (int op = count() - 1; op >= 0; --op) {
      found.shared[op] = {choices_[op][state.choice]};
      state = history_[op][state.before];
    }
    return found;
  }

  const std::vector<Signature>& operators_;
  const std::vector<std::vector<int>>& choices_;
  LetterCosts costs_;
  std::vector<std::vector<int>> complete_;   // [operator]: whose terms are complete with it
  std::vector<int> letter_until_;            // [operator]: until when its letter itself is asked for
  std::vector<int> term_until_;              // [operator]: its last reader
  std::vector<int> kept_until_;              // [operator]: until when its choice is kept, as a reader's too
  std::vector<std::vector<Key>> asked_;      // [operator][its reader][choice of that]: the number of the reading
  std::vector<std::map<Key, double>> known_; // [operator]: its term, by what it depends on
  std::vector<int> letters_;                 // [operator]: of the state at hand
  Key picked_;                               // [operator]: the choices that these are
  std::vector<int> live_;                    // operators of the states' `live`
  std::vector<std::vector<State>> history_;  // [operator]: the states before it
  bool exact_ = true;
};

// The rule's letters that take least, if that is less than what was found.
FoundLetters or_by_rule(FoundLetters found, const std::vector<Signature>& operators, const Layout& layout,
                        const SearchRule& rule, const StepTimes& times) {
  const LetterCosts costs(operators, times);
  for (const SharedLetters& shared : letters_by_rules(operators, layout, rule.sequence)) {
    std::vector<int> letters;
    for (const auto& one : shared) {
      letters.push_back(one.front());
    }
    double sum = 0;
    for (int op = 0; op < static_cast<int>(operators.size()); ++op) {
      sum += costs.seconds(op, letters);
    }
    if (sum < found.seconds.value) {
      found = {shared, Seconds{sum}, false};
    }
  }
  return found;
}

} // namespace

std::vector<std::vector<int>> letters_to_search(const std::vector<Signature>& operators, const Layout& layout,
                                                const SearchRule& rule) {
  const int degree = layout.dimensions.front().size;
  const std::vector<SharedLetters> rules = letters_by_rules(operators, layout, rule.sequence);
  std::vector<std::vector<int>> choices;
  for (std::size_t op = 0; op < operators.size(); ++op) {
    if (!rule.borders.empty() && rule.borders[op] != 0) {
      choices.push_back({border_letter(operators[op], rule.sequence, degree)});
      continue;
    }
    std::vector<int> of_rules;
    for (const SharedLetters& one : rules) {
      of_rules.push_back(one[op].front());
    }
    std::vector<int> letters = possible_letters(operators[op], of_rules, degree);
    choices.push_back(rule.whole_weights ? letters : lean_letters(operators[op], letters, of_rules, degree));
  }
  return choices;
}

FoundLetters share_by_search(const std::vector<Signature>& operators, const Layout& layout, const SearchRule& rule,
                             const StepTimes& times) {
  check(layout.dimensions.size() == 1 && layout.dimensions.front().axis == Axis::tensor,
        "letters are searched for along one tensor axis");
  std::vector<Signature> agreed = operators;
  agree_on_order(agreed);
  const auto choices = letters_to_search(agreed, layout, rule);
  std::optional<FoundLetters> found = Search(agreed, choices, times).find();
  if (!found && !rule.whole_weights) { // a weight of two operators that cannot cut it alike
    SearchRule any = rule;
    any.whole_weights = true;
    return share_by_search(operators, layout, any, times);
  }
  check(found.has_value(), "operators that share nothing share a parameter in the same way");
  return found->exact ? *found : or_by_rule(std::move(*found), agreed, layout, rule, times);
}

} // namespace stagecraft
