// SPDX-License-Identifier: Apache-2.0
#include "sim/study/keys/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/utf8.hpp"
#include "sim/platform/known_types.hpp"
#include "sim/study/keys/input_files.hpp"
#include "sim/study/keys/node_shorthand.hpp"

namespace stagecraft {

namespace fs = std::filesystem;

bool is_below(std::string_view key, std::string_view above) {
  return key.size() > above.size() && key[above.size()] == '.' && key.starts_with(above);
}

bool is_of(const Setting& setting, std::string_view key) { return setting.key == key || is_below(setting.key, key); }

ChangedStudy changed_study(const yaml::Node& document, const std::vector<Setting>& settings) {
  ChangedStudy changed{.document = document};
  const auto is_named = [&](std::string_view key) {
    const yaml::Node* node = changed.document.find(key);
    return node != nullptr && node->kind == yaml::Node::Kind::scalar;
  };
  for (const Setting& setting : settings) {
    const std::string_view key = setting.key;
    const auto below = [&](std::string_view front) { return std::string(key.substr(front.size())); };
    if (key.starts_with("model.") && is_named("model")) {
      changed.of_model.push_back({below("model."), setting.value, setting.parsed});
    } else if (key.starts_with("platform.") && is_named("platform")) {
      changed.of_platform.push_back({below("platform."), setting.value, setting.parsed});
    } else {
      apply(changed.document, setting);
    }
  }
  return changed;
}

yaml::Node read_document(const Folders& folders, const fs::path& file) {
  return folders.files != nullptr ? folders.files->document(file) : yaml::load(file);
}

std::vector<std::string> shipped_names(const Folders& folders, std::string_view kind) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folders.shipped / kind, failure)) {
    if (entry.path().extension() == ".yaml") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

bool lies_in(const fs::path& path, const fs::path& folder) {
  const fs::path below = path.lexically_normal().lexically_relative(folder.lexically_normal());
  return !below.empty() && *below.begin() != "..";
}

// Without those that are closed to the study.
std::vector<fs::path> open_places(const Folders& folders, std::vector<fs::path> places) {
  std::erase_if(places, [&](const fs::path& place) {
    return folders.closed && !lies_in(place, folders.study) && !lies_in(place, folders.shipped);
  });
  return places;
}

} // namespace

std::vector<fs::path> places_of(const Folders& folders, const std::string& name) {
  return open_places(folders, {folders.study / name, name});
}

fs::path find_file(const Folders& folders, std::string_view kind, const std::string& name, const Where& where) {
  std::error_code failure;
  for (const fs::path& candidate : open_places(
           folders, {folders.study / name, name, folders.shipped / name, folders.shipped / kind / (name + ".yaml")})) {
    if (fs::is_regular_file(candidate, failure)) {
      return candidate.lexically_normal();
    }
  }
  const std::vector<std::string> known = shipped_names(folders, kind);
  if (const auto same = std::find_if(known.begin(), known.end(), [&](auto& one) { return same_name(one, name); });
      same != known.end() && !open_places(folders, {folders.shipped / kind / (*same + ".yaml")}).empty()) {
    return (folders.shipped / kind / (*same + ".yaml")).lexically_normal(); // in letters of another case
  }
  const std::size_t last = kind.rfind('/') + 1;
  const std::string_view one = kind.substr(last, kind.size() - 1 - last); // "workloads" -> "workload"
  throw InputError(where, "no such file, and " + unknown_name(one, name, known));
}

void apply(yaml::Node& document, const Setting& setting, std::string_view prefix) {
  if (setting.parsed) {
    yaml::set(document, setting.key, *setting.parsed);
  } else {
    yaml::set(document, setting.key, setting.value, {"--set " + std::string(prefix) + setting.key, 0, 0});
  }
}

namespace {

void apply(yaml::Node& document, const std::vector<Setting>& settings, std::string_view prefix) {
  for (const Setting& setting : settings) {
    stagecraft::apply(document, setting, prefix);
  }
}

ModelGraph load_with_settings(const fs::path& path, const Folders& folders, const ImportOptions& options,
                              const std::vector<Setting>& settings) {
  if (settings.empty()) {
    return folders.files != nullptr ? load_model(path, folders.files->bytes(path), options) : load_model(path, options);
  }
  if (!yaml::is_named_yaml(path)) {
    throw InputError({"--set model." + settings.front().key, 0, 0}, "only models in YAML have keys to set");
  }
  if (folders.files != nullptr) {
    return load_workload(folders.files->document(path, settings, "model."), options);
  }
  yaml::Node document = yaml::load(path);
  apply(document, settings, "model.");
  return load_workload(document, options);
}

ModelGraph load_workload_with_settings(yaml::Node workload, const ImportOptions& options,
                                       const std::vector<Setting>& settings) {
  apply(workload, settings, "model.");
  return load_workload(workload, options);
}

// A device type that runs every kernel and never waits for memory: its times come from the profile alone.
DeviceType profiled_device(const std::string& name, Bytes memory) {
  DeviceType type;
  type.name = name;
  type.vendor = "profiled";
  type.origin = Origin::measured;
  for (auto& row : type.rates) {
    row.fill(FlopsPerSecond{1});
  }
  type.peak.fill(FlopsPerSecond{1});
  type.memory = memory;
  type.memory_bandwidth = BytesPerSecond{std::numeric_limits<double>::infinity()};
  return type;
}

} // namespace

ModelGraph with_profile_samples(ModelGraph model, double samples) {
  bool unknown = false;
  for (Profile& profile : model.profiles) {
    if (profile.samples == 0) {
      profile.samples = samples;
      unknown = true;
    }
  }
  if (!unknown || samples == 1) {
    return model;
  }
  model.input_elements /= samples;
  for (Operator& op : model.operators) {
    op.output_elements /= samples;
    op.stash_elements /= samples;
    op.weight_elements /= samples;
    for (Pass* pass : {&op.forward, &op.backward_input, &op.backward_weight}) {
      pass->flops = pass->flops / samples;
      pass->moved_elements /= samples;
      pass->instructions /= samples;
      pass->instructions_channels_first /= samples;
    }
  }
  return model;
}

namespace {

// A rank, or {rank, layers}.
void read_adapters(const yaml::Node& node, ImportOptions& options) {
  if (node.kind == yaml::Node::Kind::scalar) {
    options.lora = yaml::integer(node, "lora", 1, kMostLora);
    return;
  }
  yaml::Map map(node, "lora");
  options.lora = map.integer("rank", 1, kMostLora);
  options.lora_where = map.where("layers");
  for (const yaml::Node* layer : map.list("layers")) {
    options.lora_layers.push_back(yaml::scalar(*layer, "layers"));
  }
  map.finish();
}

// A factor, or none: then all rows are kept, whatever the model's file says.
std::optional<ExpertCapacity> read_expert_capacity(yaml::Map& map) {
  constexpr yaml::Range kCapacity{1e-3, 1e5, true, "none, or 0.001 to 100000"};
  const yaml::Node* node = map.find("expert_capacity");
  const bool padded = map.boolean("expert_padding", false);
  if (node == nullptr) {
    if (map.has("expert_padding")) {
      throw InputError(map.where("expert_padding"), "'expert_padding' fills up to 'expert_capacity', which is not "
                                                    "given; allowed: both");
    }
    return {};
  }
  const bool none = node->kind == yaml::Node::Kind::scalar && node->text == "none";
  return ExpertCapacity{none ? 0 : yaml::number(*node, "expert_capacity", kCapacity), padded, node->where};
}

} // namespace

ModelGraph read_model(const yaml::Node& node, const Folders& folders, const std::vector<Setting>& settings) {
  if (node.kind == yaml::Node::Kind::scalar) {
    return load_with_settings(find_file(folders, "workloads", node.text, node.where), folders, {}, settings);
  }
  yaml::Map map(node, "model");
  const yaml::Node* workload = map.find("workload");
  if (workload != nullptr && map.has("file")) {
    throw InputError(map.where("workload"), "a model is one workload; allowed: 'file' or 'workload'");
  }
  const fs::path path =
      workload != nullptr ? fs::path() : find_file(folders, "workloads", map.text("file"), map.where("file"));
  ImportOptions options;
  if (const yaml::Node* dimensions = map.find("dimensions")) {
    for (const yaml::Node::Entry& entry : dimensions->entries) {
      options.dimensions[entry.key] = yaml::integer(entry.value, entry.key, 1, std::numeric_limits<int>::max());
    }
  }
  const double samples = map.number("samples", physical::kFactor, 0);
  const std::string device = map.text("device", "");
  if (map.has("cost_scale")) {
    options.cost_scale = map.number("cost_scale", physical::kFactor);
  }
  if (map.has("sequence")) {
    options.sequence = map.integer("sequence", 1, kMostSequence);
  }
  if (const yaml::Node* adapters = map.find("lora")) {
    read_adapters(*adapters, options);
  }
  if (map.has("mtp_layers")) {
    options.mtp_layers = map.integer("mtp_layers", 0, kMostMtpLayers);
  }
  options.experts = read_expert_capacity(map);
  map.finish();
  ModelGraph model = workload != nullptr ? load_workload_with_settings(*workload, options, settings)
                                         : load_with_settings(path, folders, options, settings);
  if (!device.empty() && !model.devices.empty()) {
    throw InputError(map.where("device"), "the file itself names the devices of its times; allowed: no 'device'");
  }
  const auto of_another = [&](const Profile& profile) { return profile.device != model.profiles.front().device; };
  if (!device.empty() && std::any_of(model.profiles.begin(), model.profiles.end(), of_another)) {
    throw InputError(map.where("device"), "the file has times of several device types; allowed: no 'device'");
  }
  for (Profile& profile : model.profiles) {
    profile.device = device.empty() ? profile.device : device;
  }
  return samples > 0 ? with_profile_samples(std::move(model), samples) : model;
}

Platform brought_platform(const ModelGraph& model) {
  std::vector<StarDevices> groups;
  for (const BroughtDevices& brought : model.devices) {
    groups.push_back({profiled_device(brought.type, brought.memory), brought.count, brought.bandwidth});
  }
  return make_star_platform(groups, Seconds{0});
}

namespace {

// A platform file's keys in the study itself.
Platform load_here(yaml::Node document, const Folders& folders, const std::vector<Setting>& settings) {
  const fs::path types = folders.shipped / "platforms" / "devices";
  apply(document, settings, "platform.");
  if (folders.files == nullptr) {
    return load_platform(document, device_types_in(types));
  }
  folders.files->note_beside(document);
  return load_platform(document, folders.files->device_types(types), folders.files->types());
}

Platform load_with_settings(const fs::path& path, const Folders& folders, const std::vector<Setting>& settings) {
  const fs::path types = folders.shipped / "platforms" / "devices";
  if (folders.files == nullptr) {
    yaml::Node document = yaml::load(path);
    apply(document, settings, "platform.");
    return load_platform(document, device_types_in(types));
  }
  const yaml::Node& document = folders.files->document(path, settings, "platform.");
  folders.files->note_beside(document);
  return load_platform(document, folders.files->device_types(types), folders.files->types());
}

// So many nodes like a shipped one, with the settings on top.
Platform read_nodes(const NodeShorthand& shorthand, const yaml::Node* network, const Folders& folders,
                    const std::vector<Setting>& settings, const Where& where) {
  const fs::path path = find_file(folders, "platforms", shorthand.node, where);
  std::vector<Setting> all = settings_of(shorthand, read_document(folders, path), network, where);
  all.insert(all.end(), settings.begin(), settings.end());
  return load_with_settings(path, folders, all);
}

// {nodes: N x NAME, network: {…}}
Platform read_nodes(const yaml::Node& node, const Folders& folders) {
  yaml::Map map(node, "platform");
  const std::string text = map.text("nodes");
  const auto shorthand = node_shorthand(text, map.where("nodes"));
  if (!shorthand) {
    throw InputError(map.where("nodes"), "'nodes' must be a number of nodes and a platform of one node, such as "
                                         "128 x dgx-h100, got '" +
                                             excerpt(text) + "'");
  }
  const yaml::Node* network = map.find("network");
  if (network != nullptr && network->kind != yaml::Node::Kind::map) {
    throw InputError(network->where, "'network' must be a mapping; its keys: docs/formats/platform.md");
  }
  map.finish();
  return read_nodes(*shorthand, network, folders, {}, map.where("nodes"));
}

} // namespace

Platform read_platform(const yaml::Node& node, const Folders& folders, const std::vector<Setting>& settings) {
  if (node.kind == yaml::Node::Kind::scalar) {
    if (const auto sum = node_sum(node.text, node.where); !sum.empty()) {
      std::vector<yaml::Node> documents;
      for (const NodeShorthand& part : sum) {
        documents.push_back(read_document(folders, find_file(folders, "platforms", part.node, node.where)));
      }
      return load_here(document_of(sum, documents, node.where), folders, settings);
    }
    if (const auto shorthand = node_shorthand(node.text, node.where)) {
      return read_nodes(*shorthand, nullptr, folders, settings, node.where);
    }
    return load_with_settings(find_file(folders, "platforms", node.text, node.where), folders, settings);
  }
  if (const yaml::Node* nodes = node.find("nodes")) {
    return nodes->kind == yaml::Node::Kind::sequence ? load_here(node, folders, settings) : read_nodes(node, folders);
  }
  yaml::Map map(node, "platform");
  constexpr int kMostDevices = 100'000;
  const int devices = map.integer("devices", 1, kMostDevices);
  const BytesPerSecond unlimited{std::numeric_limits<double>::infinity()};
  const auto bandwidth = map.quantity<BytesPerSecond>("bandwidth", physical::kBandwidth, unlimited);
  const auto latency = map.quantity<Seconds>("latency", yaml::kDelay, Seconds{0});
  const auto memory =
      map.quantity<Bytes>("memory", physical::kCapacity, Bytes{std::numeric_limits<double>::infinity()});
  map.finish();
  return make_star_platform(profiled_device("profiled", memory), devices, bandwidth, latency);
}

} // namespace stagecraft
