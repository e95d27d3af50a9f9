// SPDX-License-Identifier: Apache-2.0
#include "sim/app/run/given_study.hpp"

#include <nlohmann/json.hpp>

#include "sim/app/common/output.hpp"
#include "sim/app/common/program.hpp"
#include "sim/app/run/assumptions.hpp"
#include "sim/app/run/save_study.hpp"
#include "sim/base/format/physical_ranges.hpp"
#include "sim/base/format/yaml_text.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/system/file.hpp"
#include "sim/base/units.hpp"
#include "sim/study/compare/compare.hpp"
#include "sim/study/compare/replay_prepared.hpp"

namespace stagecraft {

void add_setting_flags(Flags& flags, SettingOptions& options) {
  flags.add("--set", &options.set, "set a key of the study, as training.global_batch=64; may be repeated",
            {.name = "KEY=VALUE"});
  flags.add("--engine", &options.engine, "simgrid, simgrid-full or analytic", {.name = "NAME"});
  flags.add("--detail", &options.detail, "which exchanges of tensor-parallel groups are tasks: auto, all or blocks",
            {.name = "NAME"});
  flags.add("--unfold", &options.unfold,
            "simulate every device, also where some are alike and one could stand for them");
  flags.add("--per-device", &options.per_device, "list the figures of each device, also of more than 64");
  flags.add("--cost-model", &options.cost_model, join({"auto", join(names_of(cost_models()))}), {.name = "NAME"});
  flags.add("--seed", &options.seed, "seed of the strategies that draw random numbers", {.name = "N"});
}

void add_confidence_flag(Flags& flags, SettingOptions& options) {
  flags.add("--confidence", &options.confidence, "draw the cost model's errors N times (100 where no N is given)",
            {.name = "N", .alone = "100"});
}

void add_money_flags(Flags& flags, SettingOptions& options) {
  flags.add("--tokens", &options.tokens,
            "of the whole training, as 300B: says how many days and how much money it takes", {.name = "N"});
  flags.add("--price", &options.prices,
            "of one device, as '2.49 USD/h', or of a type, as 'h100-sxm-80gb=2.49 USD/h'; may be repeated",
            {.name = "[TYPE=]RATE"});
}

void add_reading_flags(Flags& flags, ModelReading& options) {
  flags.add("--dim", &options.dimensions, "size of a symbolic dimension, as batch=8; may be repeated",
            {.name = "NAME=N"});
  flags.add("--cost-scale", &options.cost_scale, "multiply the costs of a file's edges by this", {.name = "X"});
  flags.add("--seq", &options.sequence,
            "tokens of a sequence, for a config.json of Hugging Face or a workload of tokens",
            {.name = "N", .check = whole_number(1, kMostSequence)});
  flags.add("--lora", &options.lora, "train adapters of this rank beside each block's products, and nothing else",
            {.name = "R", .check = whole_number(1, kMostLora)});
  flags.add("--lora-layers", &options.lora_layers,
            "of these products of a block alone, as qkv,projection; `show MODEL` names them",
            {.name = "A,B,…", .commas = true});
  flags.add("--mtp-layers", &options.mtp_layers,
            "layers that predict further tokens, of a config.json of Hugging Face: 0 leaves them out",
            {.name = "N", .check = whole_number(0, kMostMtpLayers)});
}

void add_model_flags(Flags& flags, ModelOptions& options, const ModelPositional& positional) {
  constexpr int kMostDevices = 100'000, kMostMicroBatches = 1 << 24;
  flags.add(positional.name, &options.model, positional.help, {.required = positional.required});
  flags.add("--platform", &options.platform,
            "a name in platforms/, or a file; without it, the devices that MODEL brings along", {.name = "P"});
  if (positional.made_devices) {
    flags.add("--devices", &options.devices, "instead of a platform: N devices like the one the model was profiled on",
              {.name = "N", .check = whole_number(1, kMostDevices)});
    flags.add("--bandwidth", &options.bandwidth, "with --devices: bandwidth of each device's own link",
              {.name = "'B/s'"});
    flags.add("--latency", &options.latency, "with --devices: latency between two devices", {.name = "T"});
    flags.add("--memory", &options.memory, "with --devices: memory of each device", {.name = "M"});
  }
  const Check one_number = either(one_of({"auto"}), whole_number(1, kMostMicroBatches));
  if (positional.several_micro_batches) {
    flags.add("--micro-batches", &options.micro_batches,
              "numbers of micro-batches to try, as 8,16; auto: all divisors of the batch up to 64",
              {.name = "M,…|auto", .check = each_of(one_number)});
  } else {
    flags.add("--micro-batches", &options.micro_batches,
              "number of micro-batches; auto: the divisor of the batch, up to 64, with the least estimate",
              {.name = "M|auto", .check = one_number});
  }
  add_reading_flags(flags, options.reading);
}

std::vector<Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw InputError({"--set " + text, 0, 0}, "not of the form KEY=VALUE; allowed: training.global_batch=64");
    }
    settings.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return settings;
}

std::vector<Setting> settings_of(const SettingOptions& options) {
  std::vector<Setting> settings = parse_settings(options.set);
  for (const auto& [key, value] : {std::pair{"engine", options.engine},
                                   {"detail", options.detail},
                                   {"cost_model", options.cost_model},
                                   {"seed", options.seed},
                                   {"tokens", options.tokens},
                                   {"confidence", options.confidence}}) {
    if (!value.empty()) {
      settings.push_back({key, value});
    }
  }
  for (const std::string& price : options.prices) {
    const std::size_t equals = price.find('=');
    const std::string type = price.substr(0, equals == std::string::npos ? 0 : equals);
    settings.push_back({type.empty() ? "price" : "price." + type, "",
                        yaml::text_node(type.empty() ? price : price.substr(equals + 1), {"--price", 0, 0})});
  }
  for (const auto& [key, given] : {std::pair{"unfold", options.unfold}, {"per_device", options.per_device}}) {
    if (given) {
      settings.push_back({key, "true"});
    }
  }
  return settings;
}

std::vector<Setting> settings_of(const SettingOptions& options, const ModelOptions& model) {
  std::vector<Setting> settings = settings_of(options);
  if (!model.micro_batches.empty()) {
    const bool several = model.micro_batches.find(',') != std::string::npos;
    settings.push_back({"training.micro_batches", several ? "[" + model.micro_batches + "]" : model.micro_batches});
  }
  return settings;
}

namespace {

void add_entry(yaml::Node& map, const std::string& key, const std::string& value, const std::string& flag) {
  if (!value.empty()) {
    map.entries.push_back({key, {flag, 0, 0}, yaml::text_node(value, {flag, 0, 0})});
  }
}

} // namespace

yaml::Node model_node(const std::string& model, const ModelReading& reading) {
  yaml::Node name = yaml::text_node(model, {"MODEL", 0, 0});
  if (reading.dimensions.empty() && reading.cost_scale.empty() && reading.sequence == 0 && reading.lora == 0 &&
      reading.lora_layers.empty() && reading.mtp_layers < 0) {
    return name;
  }
  yaml::Node mapping{.kind = yaml::Node::Kind::map, .where = name.where};
  mapping.entries.push_back({"file", name.where, name});
  yaml::Node sizes{.kind = yaml::Node::Kind::map, .where = {"--dim", 0, 0}};
  for (const Setting& size : parse_settings(reading.dimensions)) {
    add_entry(sizes, size.key, size.value, "--dim");
  }
  mapping.entries.push_back({"dimensions", sizes.where, std::move(sizes)});
  add_entry(mapping, "cost_scale", reading.cost_scale, "--cost-scale");
  add_entry(mapping, "sequence", reading.sequence > 0 ? std::to_string(reading.sequence) : "", "--seq");
  add_entry(mapping, "mtp_layers", reading.mtp_layers >= 0 ? std::to_string(reading.mtp_layers) : "", "--mtp-layers");
  const std::string rank = reading.lora > 0 ? std::to_string(reading.lora) : "";
  if (reading.lora_layers.empty()) {
    add_entry(mapping, "lora", rank, "--lora");
    return mapping;
  }
  const Where where{"--lora-layers", 0, 0};
  yaml::Node adapters{.kind = yaml::Node::Kind::map, .where = where};
  add_entry(adapters, "rank", rank, "--lora");
  yaml::Node layers{.kind = yaml::Node::Kind::sequence, .where = where};
  for (const std::string& layer : reading.lora_layers) {
    layers.items.push_back(yaml::text_node(layer, {"--lora-layers", 0, 0}));
  }
  adapters.entries.push_back({"layers", where, std::move(layers)});
  mapping.entries.push_back({"lora", where, std::move(adapters)});
  return mapping;
}

ImportOptions import_options(const ModelReading& reading) {
  ImportOptions options;
  for (const std::string& text : reading.dimensions) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw InputError({"--dim " + text, 0, 0}, "not of the form NAME=N; allowed: batch=8");
    }
    constexpr int kMost = 1 << 30;
    options.dimensions[text.substr(0, equals)] =
        parse_integer(text.substr(equals + 1), 1, kMost, {"--dim " + text, 0, 0});
  }
  if (!reading.cost_scale.empty()) {
    yaml::Node scale = yaml::text_node(reading.cost_scale, {"--cost-scale", 0, 0});
    options.cost_scale = yaml::number(scale, "cost_scale", physical::kFactor);
  }
  if (reading.sequence > 0) {
    options.sequence = reading.sequence;
  }
  if (reading.lora > 0) {
    options.lora = reading.lora;
  }
  if (reading.mtp_layers >= 0) {
    options.mtp_layers = reading.mtp_layers;
  }
  options.lora_layers = reading.lora_layers;
  options.lora_where = {"--lora-layers", 0, 0};
  return options;
}

Folders folders_of(const std::string& study_file) {
  const std::filesystem::path folder = std::filesystem::path(study_file).parent_path();
  return {folder.empty() ? "." : folder, shipped_folder()};
}

std::vector<std::string> inputs_of(const std::string& study_file, const InputFiles& files) {
  std::vector<std::string> inputs;
  if (!study_file.empty()) {
    inputs.push_back(study_file);
  }
  for (const std::filesystem::path& file : files.asked()) {
    inputs.push_back(input_name(file));
  }
  return inputs;
}

yaml::Node document_of(const ModelOptions& options) {
  yaml::Node document = study_document(options.model, options.platform);
  if (options.devices > 0) {
    if (!options.platform.empty()) {
      throw InputError({"--devices", 0, 0}, "given beside --platform; allowed: one of them");
    }
    yaml::Node star{.kind = yaml::Node::Kind::map, .where = {"--devices", 0, 0}};
    add_entry(star, "devices", std::to_string(options.devices), "--devices");
    add_entry(star, "bandwidth", options.bandwidth, "--bandwidth");
    add_entry(star, "latency", options.latency, "--latency");
    add_entry(star, "memory", options.memory, "--memory");
    document.entries.push_back({"platform", star.where, std::move(star)});
  }
  document.entries.front().value = model_node(options.model, options.reading);
  return document;
}

GivenStudy study_of_document(const yaml::Node& document, const std::string& file, const std::vector<Setting>& settings,
                             Purpose purpose) {
  InputFiles files;
  Folders folders = folders_of(file);
  folders.files = &files;
  Study study = load_study(document, folders, settings, purpose);
  for (const std::string& what : study.training.unheeded) {
    remark("note: " + (study.training.config.empty() ? "the study" : study.training.config) + " asks for " + what +
           ", which is not taken over\n");
  }
  for (const std::string& conflict : study.config_conflicts) {
    remark("note: " + conflict + "\n");
  }
  if (!study.framework_of_config.empty()) {
    remark("note: kernels and what the file leaves out are as in the recipe " + study.framework_of_config + " of " +
           study.training.config +
           "'s framework; --set training.framework=NAME takes another, none an ideal machine\n");
  }
  return {.study = std::move(study),
          .inputs = inputs_of(file, files),
          .document = document,
          .settings = settings,
          .file = file,
          .comparison = purpose == Purpose::comparison};
}

GivenStudy study_of_file(const std::string& file, const std::vector<Setting>& settings, Purpose purpose) {
  return study_of_document(yaml::load(file), file, settings, purpose);
}

std::string plain_training_note(const Study& study, const std::vector<Setting>& settings) {
  const bool given = std::any_of(settings.begin(), settings.end(),
                                 [](const Setting& setting) { return setting.key.starts_with("training"); });
  if (given || !study.model->profiles.empty() || study.model->memory_given) {
    return "";
  }
  return "nobody says how it is trained, so: " + std::to_string(study.training.global_batch) + " sample in " +
         std::string(row_of(study.training.precision).name) + " with " + std::string(study.training.optimizer->name) +
         "; --micro-batches 16 --set training='{global_batch: 64, precision: bf16, optimizer: adam}' says otherwise";
}

std::string gradient_note(const Study& study, const std::vector<Setting>& settings, const Plan& plan) {
  const bool given = std::any_of(settings.begin(), settings.end(), [](const Setting& setting) {
    return setting.key.ends_with("gradient_bucket") || setting.value.find("gradient_bucket") != std::string::npos;
  });
  const bool reduces =
      std::any_of(plan.stages.begin(), plan.stages.end(), [](const Stage& stage) { return stage.replicas() > 1; });
  if (given || !reduces || study.training.gradient_bucket.value > 0 || !study.training.config.empty() ||
      !study.model->profiles.empty()) {
    return "";
  }
  constexpr double kMegabyte = 1e6;
  const std::string usual = std::to_string(std::llround(kUsualBucket.value / kMegabyte)) + " MB";
  return "gradients are reduced after the passes; a comparison reduces them in buckets of " + usual +
         " meanwhile, as --set training.gradient_bucket='" + usual + "' does here";
}

GivenStudy study_of_model(const ModelOptions& options, const std::vector<Setting>& settings, Purpose purpose) {
  return study_of_document(document_of(options), "", settings, purpose);
}

namespace {

// A study is a YAML file that names a model. Nothing where the name is of something else.
std::optional<yaml::Node> read_study(const std::string& name) {
  if (!yaml::is_named_yaml(name) || !std::filesystem::exists(name)) {
    return std::nullopt;
  }
  yaml::Node document = yaml::load(name);
  return document.find("model") != nullptr ? std::optional(std::move(document)) : std::nullopt;
}

} // namespace

bool is_study(const std::string& name) { return read_study(name).has_value(); }

void refuse_model_flags(const ModelOptions& options) {
  const ModelReading& reading = options.reading;
  const std::string what = options.model.ends_with(".json") ? "result" : "study";
  for (const auto& [flag, given] : {std::pair{"--platform", !options.platform.empty()},
                                    {"--devices", options.devices > 0},
                                    {"--bandwidth", !options.bandwidth.empty()},
                                    {"--latency", !options.latency.empty()},
                                    {"--memory", !options.memory.empty()},
                                    {"--dim", !reading.dimensions.empty()},
                                    {"--cost-scale", !reading.cost_scale.empty()},
                                    {"--seq", reading.sequence > 0},
                                    {"--lora", reading.lora > 0},
                                    {"--lora-layers", !reading.lora_layers.empty()},
                                    {"--mtp-layers", reading.mtp_layers >= 0}}) {
    if (given) {
      throw InputError({flag, 0, 0}, "'" + options.model + "' is a " + what +
                                         ", which names its model and platform; allowed: --set model=M, --set "
                                         "platform=P, or a model instead of the " +
                                         what);
    }
  }
}

namespace {

// The least time of an iteration of what the settings ask for; none where nothing fits, or they are wrong, which is
// said when they are read again.
std::optional<Seconds> quick_time(const yaml::Node& document, const Folders& folders,
                                  const std::vector<Setting>& settings) {
  std::optional<Seconds> least;
  try {
    const Study study = load_study(document, folders, settings, Purpose::comparison);
    ScheduleCounts counts;
    StudyMemo memo(study, counts);
    std::vector<Scenario> scenarios = scenarios_of(study);
    for (Scenario& scenario : scenarios) {
      scenario.explain = false;
      scenario.brief = true;
    }
    std::vector<Prepared> prepared = prepare(memo, scenarios);
    replay(memo.costs, prepared);
    for (const Prepared& one : prepared) {
      if (one.run.feasible && (!least || one.run.metrics.iteration < *least)) {
        least = one.run.metrics.iteration;
      }
    }
  } catch (const InputError&) {
  }
  return least;
}

// What a document says of training and comparison, as settings would; model and platform aside.
std::vector<Setting> given_in(const yaml::Node& document) {
  std::vector<Setting> given;
  for (const char* key : {"training", "compare"}) {
    const yaml::Node* node = document.find(key);
    for (const yaml::Node::Entry& entry : node != nullptr ? node->entries : std::vector<yaml::Node::Entry>{}) {
      const bool plain = entry.value.kind == yaml::Node::Kind::scalar;
      given.push_back({std::string(key) + "." + entry.key, plain ? entry.value.text : yaml::flow_text(entry.value)});
    }
  }
  return given;
}

// What a document leaves open.
Assumptions assumptions_of(const yaml::Node& document, const std::string& file, const std::vector<Setting>& settings,
                           AssumedDegrees degrees, bool are_tried) {
  InputFiles files; // that the model and the platform are read from, for every attempt
  Folders folders = folders_of(file);
  folders.files = &files;
  std::vector<Setting> of_inputs; // the rest may not fit together before the assumptions are made
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(of_inputs),
               [](const Setting& setting) { return is_of(setting, "model") || is_of(setting, "platform"); });
  yaml::Node inputs = document;
  yaml::erase(inputs, {"training", "compare"});
  const Study study = load_study(inputs, folders, of_inputs);
  std::vector<Setting> given = given_in(document);
  given.insert(given.end(), settings.begin(), settings.end());
  const TryDegrees attempt = [&](std::vector<Setting> tried) {
    tried.insert(tried.end(), settings.begin(), settings.end());
    tried.insert(tried.end(), {{"compare.strategies", "mesh"}, {"compare.schedules", "1f1b"}, {"engine", "analytic"}});
    return quick_time(document, folders, tried);
  };
  return assumptions_for(*study.model, study.platform, given, are_tried ? attempt : TryDegrees{}, degrees);
}

void save_study(const std::string& file, const yaml::Node& document, const std::vector<Setting>& settings,
                const Folders& folders) {
  const std::filesystem::path path = file;
  std::string text = "# Written by stagecraft --save-study; every key: docs/formats/study.md.\n";
  if (document.find("name") == nullptr) {
    text += "name: " + yaml_text(path.stem().string()) + "\n";
  }
  text += study_text(document, settings, folders, path.parent_path().empty() ? "." : path.parent_path());
  load_study(yaml::parse(text, file), folders_of(file), {}, Purpose::comparison); // it says what is meant, or throws
  write_file(file, text);
}

// The longest sequence that a config.json of Hugging Face says; 0 for another file, or where it says none.
int longest_of(const std::string& file) {
  constexpr int kMost = 16; // MiB
  std::error_code failure;
  if (!file.ends_with(".json") || !std::filesystem::is_regular_file(file, failure)) {
    return 0;
  }
  const auto config = nlohmann::json::parse(read_file(file, kMost), nullptr, false);
  for (const char* key : {"max_position_embeddings", "n_positions", "n_ctx"}) {
    const auto found = config.is_object() ? config.find(key) : config.end();
    if (config.is_object() && found != config.end() && found->is_number_integer() && *found > 0 &&
        *found <= kMostSequence) {
      return found->get<int>();
    }
  }
  return 0;
}

} // namespace

std::string sequence_note(const ModelOptions& options) {
  const int longest = longest_of(options.model), asked = options.reading.sequence;
  return longest > 0 && asked > longest
             ? "a sequence of " + std::to_string(asked) + " tokens is longer than the " + std::to_string(longest) +
                   " that '" + options.model + "' says its model is made for"
             : "";
}

GivenStudy completed_study(const yaml::Node& document, const std::string& file, const std::vector<Setting>& settings,
                           AssumedDegrees degrees) {
  Assumptions assumed = assumptions_of(document, file, settings, degrees, true);
  std::vector<Setting> all = assumed.settings;
  all.insert(all.end(), settings.begin(), settings.end());
  GivenStudy given = study_of_document(document, file, all, Purpose::comparison);
  given.assumed = std::move(assumed);
  return given;
}

std::vector<Setting> first_assumptions(const yaml::Node& document, const std::string& file,
                                       const std::vector<Setting>& settings, AssumedDegrees degrees) {
  return assumptions_of(document, file, settings, degrees, false).settings;
}

int longest_sequence(const ModelOptions& options) {
  return options.reading.sequence == 0 ? longest_of(options.model) : 0;
}

GivenStudy compared_study(const ModelOptions& options, const std::vector<Setting>& settings, const std::string& save) {
  check_writable(save);
  const std::optional<yaml::Node> study = read_study(options.model);
  if (study) {
    refuse_model_flags(options);
  }
  if (!save.empty()) {
    keep_inputs(save, {options.model});
  }
  GivenStudy given = study ? study_of_document(*study, options.model, settings, Purpose::comparison)
                           : completed_study(document_of(options), "", settings, AssumedDegrees::where_needed);
  given.longest = study ? 0 : longest_sequence(options);
  if (!save.empty()) {
    save_study(save, given.document, given.settings, folders_of(given.file));
  }
  return given;
}

} // namespace stagecraft
