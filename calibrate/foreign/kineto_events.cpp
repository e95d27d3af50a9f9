// SPDX-License-Identifier: Apache-2.0
#include "calibrate/foreign/kineto_events.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/format/json.hpp"
#include "sim/base/utf8.hpp"

namespace stagecraft::foreign {
namespace {

using Id = long long;
using Thread = std::pair<std::string, std::string>;

struct Span {
  double begin = 0, end = 0; ///< microseconds
};

// An integer, which may be written as text.
std::optional<Id> id_in(const json::Value& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) {
    return std::nullopt;
  }
  if (found->is_number_integer()) {
    return found->get<Id>();
  }
  const std::string text = found->is_string() ? found->get<std::string>() : "";
  const bool whole = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
  return whole ? std::optional<Id>(std::stoll(text)) : std::nullopt;
}

std::string text_in(const json::Value& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? "" : found->is_string() ? found->get<std::string>() : found->dump();
}

class TraceReader {
public:
  explicit TraceReader(const json::Source& source) : source_(source) {}

  KinetoTrace read(const json::Value& document) {
    json::Object top(document, source_, "");
    device(document);
    const json::Value& events = top.list("traceEvents");
    for (std::size_t i = 0; i < events.size(); ++i) {
      event(events[i], i);
    }
    attribute();
    return std::move(trace_);
  }

private:
  struct Operator {
    const json::Value* event;
    std::size_t index;
    Thread thread;
    double begin;
  };
  struct Launched {
    TraceKernel kernel;
    std::optional<Id> correlation, external;
  };

  // `path` is that of a value in the event, as ".args".
  InputError error(std::size_t index, const std::string& path, const std::string& what) const {
    return source_.error("traceEvents[" + std::to_string(index) + "]" + path, what);
  }

  double number(const json::Value& object, const char* key, std::size_t index) const {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number() || !(found->get<double>() >= 0)) {
      throw error(index, std::string(".") + key,
                  std::string("must be a number of 0 or more") +
                      (found == object.end() ? ", is missing" : ", got " + excerpt(found->dump())));
    }
    return found->get<double>();
  }

  void device(const json::Value& document) {
    const auto devices = document.find("deviceProperties");
    if (devices != document.end() && devices->is_array() && !devices->empty() && devices->front().is_object()) {
      trace_.device = text_in(devices->front(), "name");
      const auto memory = devices->front().find("totalGlobalMem");
      trace_.memory = Bytes{memory != devices->front().end() && memory->is_number() ? memory->get<double>() : 0};
    }
  }

  void event(const json::Value& event, std::size_t index) {
    static const json::Value kNone = json::Value::object();
    if (!event.is_object()) {
      throw error(index, "", "is no object but " + std::string(event.type_name()));
    }
    if (text_in(event, "ph") != "X") {
      return;
    }
    const auto args = event.find("args");
    const json::Value& details = args != event.end() && args->is_object() ? *args : kNone;
    std::string category = text_in(event, "cat");
    std::transform(category.begin(), category.end(), category.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (category == "kernel") {
      kernel(event, details, index);
    } else if (category == "cpu_op" || category == "operator") {
      cpu_operator(event, details, index);
    } else if (category == "cuda_runtime" || category == "cuda_driver" || category == "runtime") {
      const auto correlation = id_in(details, "correlation"), external = id_in(details, "External id");
      if (correlation && external) {
        launches_[*correlation] = *external;
      }
    }
  }

  void kernel(const json::Value& event, const json::Value& details, std::size_t index) {
    const TraceKernel kernel{text_in(event, "name"), Seconds{number(event, "dur", index) * 1e-6}};
    trace_.kernel_time += kernel.time;
    if (details.contains("Collective name") && details.contains("In msg nelems")) {
      collective(details, kernel.time, index);
    } else {
      launched_.push_back({kernel, id_in(details, "correlation"), id_in(details, "External id")});
    }
  }

  void collective(const json::Value& details, Seconds time, std::size_t index) {
    TraceCollective collective{
        .name = text_in(details, "Collective name"), .type = text_in(details, "dtype"), .time = time};
    collective.elements_in = number(details, "In msg nelems", index);
    collective.elements_out =
        details.contains("Out msg nelems") ? number(details, "Out msg nelems", index) : collective.elements_in;
    collective.ranks = static_cast<int>(std::min(number(details, "Group size", index), 1e6));
    trace_.collectives.push_back(std::move(collective));
  }

  void cpu_operator(const json::Value& event, const json::Value& details, std::size_t index) {
    const Thread thread{text_in(event, "pid"), text_in(event, "tid")};
    const double begin = number(event, "ts", index);
    if (text_in(event, "name").starts_with("autograd::engine::evaluate_function")) {
      backward_[thread].push_back({begin, begin + number(event, "dur", index)});
    }
    if (const auto external = id_in(details, "External id")) {
      operators_.insert_or_assign(*external, Operator{&event, index, thread, begin});
    }
  }

  // Assigns each kernel to its operator.
  void attribute() {
    for (auto& [thread, spans] : backward_) {
      std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
      for (std::size_t i = 1; i < spans.size(); ++i) { // of nested spans the outer one counts
        spans[i].end = std::max(spans[i].end, spans[i - 1].end);
      }
    }
    std::map<Id, std::size_t> calls;
    for (Launched& launched : launched_) {
      const auto launch = launched.correlation ? launches_.find(*launched.correlation) : launches_.end();
      const std::optional<Id> id = launch != launches_.end() ? launch->second : launched.external;
      const auto owner = id ? operators_.find(*id) : operators_.end();
      if (owner == operators_.end()) {
        trace_.unowned.push_back(std::move(launched.kernel));
        continue;
      }
      const auto [at, fresh] = calls.try_emplace(*id, trace_.calls.size());
      if (fresh) {
        trace_.calls.push_back(call_of(owner->second));
      }
      trace_.calls[at->second].kernels.push_back(std::move(launched.kernel));
    }
  }

  bool in_backward(const Operator& op) const {
    const auto spans = backward_.find(op.thread);
    if (spans == backward_.end()) {
      return false;
    }
    const auto after = std::upper_bound(spans->second.begin(), spans->second.end(), op.begin,
                                        [](double begin, const Span& span) { return begin < span.begin; });
    return after != spans->second.begin() && op.begin < std::prev(after)->end;
  }

  OperatorCall call_of(const Operator& op) const {
    OperatorCall call{.name = text_in(*op.event, "name"), .in_backward = in_backward(op)};
    const json::Value& details = op.event->at("args");
    const json::Value* dims = list_in(details, "Input Dims", op.index);
    const json::Value* types = list_in(details, "Input type", op.index);
    const json::Value* strides = list_in(details, "Input Strides", op.index);
    const json::Value* values = list_in(details, "Concrete Inputs", op.index);
    for (std::size_t i = 0; dims != nullptr && i < dims->size(); ++i) {
      OperatorInput& input = call.inputs.emplace_back();
      input.dims = numbers((*dims)[i]);
      const auto text = [&](const json::Value* list) {
        return list != nullptr && i < list->size() && (*list)[i].is_string() ? (*list)[i].get<std::string>() : "";
      };
      input.type = text(types);
      input.value = text(values);
      input.strides = strides != nullptr && i < strides->size() ? numbers((*strides)[i]) : std::vector<double>();
    }
    return call;
  }

  const json::Value* list_in(const json::Value& details, const char* key, std::size_t index) const {
    const auto found = details.find(key);
    if (found == details.end()) {
      return nullptr;
    }
    if (!found->is_array()) {
      throw error(index, std::string(".args.") + key, "must be an array, got " + excerpt(found->dump()));
    }
    return &*found;
  }

  // A list of tensors contains lists, not numbers.
  static std::vector<double> numbers(const json::Value& list) {
    std::vector<double> values;
    for (const json::Value& value : list.is_array() ? list : json::Value::array()) {
      if (!value.is_number()) {
        return {};
      }
      values.push_back(value.get<double>());
    }
    return values;
  }

  const json::Source& source_;
  KinetoTrace trace_;
  std::vector<Launched> launched_;
  std::map<Id, Id> launches_;        ///< correlation -> External id of the operator
  std::map<Id, Operator> operators_; ///< External id -> operator
  std::map<Thread, std::vector<Span>> backward_;
};

} // namespace

KinetoTrace read_kineto(std::string_view text, const std::string& file) {
  if (text.starts_with("\x1f\x8b")) {
    throw InputError({file, 0, 0}, "compressed by gzip; allowed: JSON, as gunzip makes of it");
  }
  const json::Source source(text, file);
  return TraceReader(source).read(json::parse(source));
}

} // namespace stagecraft::foreign
