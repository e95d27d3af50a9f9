// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/pipeline_layout.hpp"

#include <algorithm>
#include <string_view>

#include "sim/base/named_table.hpp"
#include "sim/base/units.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/blocks.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostLetters = 1'000'000;
constexpr int kMostRepetitions = 1 << 20;

struct Letter {
  char letter = 't';
  std::size_t at = 0; // in the text
};

// Expands a layout into letters and bars with their places.
class Reader {
public:
  explicit Reader(const LayoutText& layout) : layout_(layout), text_(layout.text) {}

  PipelineLayout read() {
    std::vector<Letter> letters;
    while (next_ < text_.size()) {
      append(unit(), letters);
    }
    return split(letters);
  }

private:
  [[noreturn]] void fail(std::size_t at, const std::string& what, const std::string& allowed) const {
    Where where = layout_.where;
    where.column += layout_.by_column ? static_cast<int>(at) : 0;
    throw InputError(where, what + (layout_.by_column ? "" : ", at character " + std::to_string(at + 1)) +
                                "; allowed: " + allowed);
  }

  // Reads one letter or group with its repetition.
  std::vector<Letter> unit() {
    std::vector<Letter> one;
    if (text_[next_] == '(') {
      const std::size_t start = next_;
      for (++next_; next_ < text_.size() && text_[next_] != ')';) {
        if (text_[next_] == '(') {
          fail(next_, "a group within a group", "(…)*n");
        }
        append(unit(), one);
      }
      if (next_ == text_.size() || text_.compare(next_, 2, ")*") != 0) {
        fail(start, "a group without its repetition", "(…)*n");
      }
      ++next_;
    } else {
      one = letter();
    }
    return repeated(std::move(one));
  }

  std::vector<Letter> letter() {
    const char c = text_[next_];
    if (std::string_view("Et|mL,").find(c) == std::string_view::npos) {
      fail(next_, "unknown layer '" + excerpt(text_.substr(next_, 1)) + "' in the layout",
           "E (embedding), t (transformer layer), m (layer that predicts a further token), L (loss), | between stages, "
           "x*n and (…)*n");
    }
    const Letter one{c, next_++};
    return c == ',' ? std::vector<Letter>{} : std::vector<Letter>{one};
  }

  std::vector<Letter> repeated(std::vector<Letter> one) {
    if (next_ >= text_.size() || text_[next_] != '*') {
      return one;
    }
    const std::size_t end = std::min(text_.find_first_not_of("0123456789", ++next_), text_.size());
    Where where = layout_.where;
    where.column += layout_.by_column ? static_cast<int>(next_) : 0;
    const int count = parse_integer(text_.substr(next_, end - next_), 0, kMostRepetitions, where);
    std::vector<Letter> many;
    for (int i = 0; i < count && !one.empty(); ++i) {
      append(one, many);
    }
    next_ = end;
    return many;
  }

  void append(const std::vector<Letter>& from, std::vector<Letter>& to) const {
    if (from.size() + to.size() > kMostLetters) {
      throw InputError(layout_.where, "the layout is longer than 1000000 layers and stages");
    }
    to.insert(to.end(), from.begin(), from.end());
  }

  // One E first, then t, then m, one L last.
  PipelineLayout split(const std::vector<Letter>& letters) const {
    constexpr std::string_view kOrder = "EtmL";
    PipelineLayout layout{{""}, layout_.where};
    std::size_t first_of = 0; // in kOrder: what may come next
    std::size_t further = 0;  // stages up to that of the first m
    for (const Letter& one : letters) {
      if (one.letter == '|') {
        layout.stages.emplace_back();
        continue;
      }
      const std::size_t place = kOrder.find(one.letter);
      const bool once = one.letter == 'E' || one.letter == 'L';
      if (place < first_of || (place > 0 && first_of == 0) || (one.letter == 'E' && layout.stages.size() > 1)) {
        fail(one.at, "the layout is out of order", "one E first, then t, then m, one L last");
      }
      if (one.letter == 'm') {
        further = further == 0 ? layout.stages.size() : further;
        if (further != layout.stages.size()) {
          fail(one.at, "m stands in two stages", "all m in one");
        }
      }
      first_of = std::max<std::size_t>(1, place + (once ? 1 : 0));
      layout.stages.back() += one.letter;
    }
    if (first_of != kOrder.size()) {
      fail(letters.empty() ? 0 : letters.back().at, "the layout has no L", "one L last");
    }
    return layout;
  }

  const LayoutText& layout_;
  const std::string& text_;
  std::size_t next_ = 0;
};

} // namespace

int PipelineLayout::count(char letter) const {
  int count = 0;
  for (const std::string& stage : stages) {
    count += static_cast<int>(std::count(stage.begin(), stage.end(), letter));
  }
  return count;
}

PipelineLayout read_pipeline_layout(const LayoutText& layout) { return Reader(layout).read(); }

std::string to_text(const PipelineLayout& layout) {
  std::string text;
  for (const std::string& stage : layout.stages) {
    text += text.empty() ? "" : "|";
    for (std::size_t at = 0; at < stage.size();) {
      const std::size_t end = std::min(stage.find_first_not_of(stage[at], at), stage.size());
      text += stage[at] + (end - at > 1 ? "*" + std::to_string(end - at) : "");
      at = end;
    }
  }
  return text;
}

std::string layers_defect(const PipelineLayout& layout, const ModelGraph& model) {
  const int layers = layout.count('t'), further = layout.count('m');
  const auto blocks = static_cast<int>(layer_row_of(model).layers.size());
  if (layers + further == blocks && layers > 0) {
    return "";
  }
  const std::string here = std::to_string(layers) + " transformer layers" +
                           (further > 0 ? " and " + std::to_string(further) + " that predict further tokens" : "");
  return here + " here, and '" + excerpt(model.name) + "' has " + std::to_string(blocks) +
         " numbered blocks; allowed: the same number";
}

PipelineLayout with_layers(PipelineLayout layout, int layers) {
  const auto count = [](const std::string* stage) { return std::count(stage->begin(), stage->end(), 't'); };
  const auto fewer = [&](const std::string* a, const std::string* b) { return count(a) < count(b); };
  std::vector<std::string*> with_any;
  for (std::string& stage : layout.stages) {
    if (count(&stage) > 0) {
      with_any.push_back(&stage);
    }
  }
  for (int left = with_any.empty() ? 0 : layers - layout.count('t'); left != 0; left += left > 0 ? -1 : 1) {
    if (left > 0) {
      std::string& stage = **std::min_element(with_any.begin(), with_any.end(), fewer);
      stage.insert(stage.find('t'), 1, 't');
    } else {
      std::string& stage = **std::max_element(with_any.begin(), with_any.end(), fewer);
      stage.erase(stage.find('t'), 1);
    }
  }
  return layout;
}

std::vector<LaidLayer> laid_layers(const ModelGraph& model, int further) {
  LayerRow row = layer_row_of(model);
  const auto plain = static_cast<int>(row.layers.size()) - further;
  std::vector<LaidLayer> laid = {
      {'E', row.layers.empty() ? "" : "what stands before '" + row.layers.front().name + "'", std::move(row.before)}};
  std::vector<OperatorId> after = std::move(row.after);
  const auto is_own = [&](OperatorId op) { return is_in_numbered_block(model.operators[op].name); };
  std::vector<char> between(model.size(), 0); // behind the last t and not of a numbered block
  for (int layer = 0; layer < plain + further; ++layer) {
    std::vector<OperatorId> operators = std::move(row.layers[layer].operators);
    if (further > 0 && layer >= plain - 1) {
      const auto last = std::find_if(operators.rbegin(), operators.rend(), is_own).base();
      for (auto op = last; op != operators.end(); ++op) {
        between[*op] = 1;
      }
      operators.erase(last, operators.end());
    }
    if (layer >= plain) {
      for (std::size_t i = 0; i < operators.size(); ++i) { // grows
        for (const OperatorId maker : model.predecessors[operators[i]]) {
          if (between[maker] != 0) {
            between[maker] = 0;
            operators.push_back(maker);
          }
        }
      }
      std::sort(operators.begin(), operators.end());
    }
    laid.push_back({layer < plain ? 't' : 'm', "'" + row.layers[layer].name + "'", std::move(operators)});
  }
  for (OperatorId op = 0; op < model.size(); ++op) {
    if (between[op] != 0) {
      after.push_back(op);
    }
  }
  std::sort(after.begin(), after.end());
  laid.push_back({'L', row.layers.empty() ? "" : "what stands behind '" + row.layers.back().name + "'", after});
  return laid;
}

std::vector<std::vector<OperatorId>> stages_of(const PipelineLayout& layout, const ModelGraph& model) {
  const std::vector<LaidLayer> laid = laid_layers(model, layout.count('m'));
  std::vector<std::vector<OperatorId>> stages;
  auto next = laid.begin();
  for (const std::string& letters : layout.stages) {
    std::vector<OperatorId>& stage = stages.emplace_back();
    for (std::size_t i = 0; i < letters.size(); ++i, ++next) {
      stage.insert(stage.end(), next->operators.begin(), next->operators.end());
    }
    std::sort(stage.begin(), stage.end());
  }
  return stages;
}

} // namespace stagecraft
