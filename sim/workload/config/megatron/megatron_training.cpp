// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/config/megatron/megatron_training.hpp"

#include <algorithm>

#include "sim/base/divisors.hpp"
#include "sim/base/named_table.hpp"
#include "sim/base/utf8.hpp"
#include "sim/workload/config/common/model_sizes.hpp"
#include "sim/workload/config/common/training_draft.hpp"
#include "sim/workload/config/megatron/megatron_layers.hpp"
#include "sim/workload/training/captured_modules.hpp"
#include "sim/workload/training/latent_product.hpp"
#include "sim/workload/training/recompute_modules.hpp"

namespace stagecraft {
namespace {

// Arguments of which any but these values changes a time or a size that is not modelled.
struct ListedValue {
  const char* flag;
  std::array<std::string_view, 3> modelled;
};
constexpr std::array kListedValues = {ListedValue{"attention-backend", {"auto", "flash", "fused"}},
                                      ListedValue{"transformer-impl", {"transformer_engine"}},
                                      ListedValue{"main-grads-dtype", {"fp32", "float32", "torch.float32"}},
                                      ListedValue{"main-params-dtype", {"fp32", "float32", "torch.float32"}}};

// What the optimiser that is aware of precisions may keep its states in, the widest first.
struct StateFormat {
  std::string_view name;                   ///< of `state_precision`
  std::array<std::string_view, 2> aliases; ///< PyTorch's
};
constexpr std::array kStateFormats = {
    StateFormat{"fp32", {"float32", "torch.float32"}}, StateFormat{"bf16", {"bfloat16", "torch.bfloat16"}},
    StateFormat{"fp16", {"float16", "torch.float16"}}, StateFormat{"fp8", {"uint8", "torch.uint8"}}};

class Reading {
public:
  Reading(const MegatronArguments& arguments, const ConfigContext& context, std::string_view dispatcher)
      : given_(arguments), draft_(context, arguments.where("")), usual_dispatcher_(dispatcher) {}

  ImportedTraining read(std::vector<std::string> unheeded) {
    read_degrees();
    read_precision();
    read_batch();
    read_sharding();
    read_layers();
    read_recompute();
    read_captured_graphs();
    read_optimizer();
    read_sizes();
    list_values();
    for (std::string& what : unheeded) {
      draft_.leave(std::move(what));
    }
    return draft_.take();
  }

private:
  // The value of an argument that names one of a few things. InputError naming the nearest.
  std::string choice(const char* flag, std::string_view what, const std::vector<std::string>& known) const {
    std::string given = given_.text(flag);
    if (std::find(known.begin(), known.end(), given) == known.end()) {
      throw InputError(given_.where(flag), unknown_name(what, given, known));
    }
    return given;
  }

  int degree(const char* flag, const char* key) {
    const int degree = given_.integer(flag, 1, kMostConfigDegree, 1);
    draft_.degree(key, degree, given_.where(flag));
    return degree;
  }

  bool has_experts() const {
    const std::vector<Operator>& operators = draft_.context().model.operators;
    return std::any_of(operators.begin(), operators.end(), [](const Operator& op) { return op.routing.has_value(); });
  }

  void list_values() {
    for (const ListedValue& one : kListedValues) {
      const std::string given = given_.text(one.flag);
      if (!given.empty() && std::find(one.modelled.begin(), one.modelled.end(), given) == one.modelled.end()) {
        draft_.leave(given_.written(one.flag) + " " + excerpt(given));
      }
    }
  }

  // Megatron-LM's HybridDeviceOptimizer: that part of the parameters is stepped by the host.
  void read_offload() {
    const char* flag = "optimizer-cpu-offload";
    const char* part = "optimizer-offload-fraction"; // 0 by default
    if (given_.has(flag)) {
      const double fraction = given_.number(part, 0);
      if (fraction > 0 && fraction <= 1) {
        draft_.set("offload.optimizer", given_.text(part), given_.where(part));
      } else {
        draft_.leave(given_.written(flag) + " (with " + given_.written(part) + " above 0 and up to 1)");
      }
    }
  }

  // With its experimental functions one kernel turns latent queries, and one keys, unless --no-rope-fusion.
  void read_rotation() {
    const bool latent = std::any_of(draft_.context().model.operators.begin(), draft_.context().model.operators.end(),
                                    [](const Operator& op) { return op.type == "latent_attention"; });
    const char *flag = "enable-experimental", *apart = "no-rope-fusion";
    if (given_.has(apart) && !latent) {
      draft_.leave(given_.written(apart));
    }
    if (latent && given_.has(flag) && !given_.has(apart)) {
      const std::string key = "launches.types." + std::string(kLatentProduct);
      draft_.set(key + ".forward", std::to_string(static_cast<int>(kFusedLatentProduct.forward)), given_.where(flag));
      draft_.set(key + ".backward", std::to_string(static_cast<int>(kFusedLatentProduct.backward)), given_.where(flag));
    }
  }

  // The row of kStateFormats that an argument names.
  std::size_t state_format(const char* flag) const {
    const std::string given = given_.has(flag) ? given_.text(flag) : std::string(kStateFormats[0].name);
    std::vector<std::string> names;
    for (std::size_t at = 0; at < kStateFormats.size(); ++at) {
      const StateFormat& format = kStateFormats[at];
      if (given == format.name || given == format.aliases[0] || given == format.aliases[1]) {
        return at;
      }
      names.emplace_back(format.name);
    }
    throw InputError(given_.where(flag), unknown_name("format of optimizer states", given, names));
  }

  // Both of Adam's states count in the wider of their formats. Master weights are then the bits that weights in bf16
  // lack, but beside products in 8 bits with scales of today (use_precision_aware_optimizer_no_fp8_or_ds_fp8).
  void read_states() {
    const char *first = "exp-avg-dtype", *second = "exp-avg-sq-dtype", *aware = "use-precision-aware-optimizer";
    const std::size_t of_first = state_format(first), of_second = state_format(second);
    const std::size_t both = given_.has(aware) ? std::min(of_first, of_second) : 0;
    for (const char* flag : {first, second}) {
      if (state_format(flag) != both) {
        draft_.leave(given_.written(flag) + " " + given_.text(flag) +
                     (given_.has(aware) ? " (both states count alike)" : " (without " + given_.written(aware) + ")"));
      }
    }
    if (!given_.has(aware)) {
      return;
    }
    draft_.set("state_precision", std::string(kStateFormats[both].name),
               given_.where(of_first == both ? first : second));
    const bool scaled_late = eight_bits_.empty() || eight_bits_ == "delayed";
    if (given_.has("bf16") && scaled_late && state_format("main-params-dtype") == 0) {
      draft_.set("master_remainders", "true", given_.where(aware));
    }
  }

  void read_dispatcher() {
    const char* type = "moe-token-dispatcher-type";
    const std::string name = given_.has(type) ? given_.text(type) : std::string(usual_dispatcher_);
    if (given_.has(type)) {
      choice(type, "token dispatcher", {"allgather", "alltoall", "flex", "alltoall_seq"});
    }
    const std::string backend =
        given_.has("moe-flex-dispatcher-backend")
            ? choice("moe-flex-dispatcher-backend", "backend of flex", {"deepep", "hybridep", "ncclep"})
            : "deepep";
    if (name == "alltoall" || name == "allgather") {
      draft_.set("token_dispatcher", name, given_.where(type));
    } else if (name == "flex" && (backend == "deepep" || backend == "hybridep")) { // both send once to a node
      draft_.set("token_dispatcher", backend, given_.where(type));
      const char* processors = backend == "deepep" ? "moe-deepep-num-sms" : "moe-hybridep-num-sms";
      if (given_.has(processors)) {
        draft_.set("dispatch_processors", std::to_string(given_.integer(processors, 1, 1024, 1)),
                   given_.where(processors));
      }
    } else if (name == "flex") {
      draft_.leave(given_.written("moe-flex-dispatcher-backend") + " " + excerpt(backend));
    } else if (!name.empty()) {
      draft_.leave(given_.written(type) + " " + excerpt(name));
    }
  }

  // Rows that an expert takes at most, to those of an equal share; below 0 is none, as there.
  void read_expert_capacity() {
    const char* factor = "moe-expert-capacity-factor";
    const char* pad = "moe-pad-expert-input-to-capacity";
    if (const double given = given_.number(factor, -1); given > 0) {
      draft_.expert_capacity(given_.written(factor), given, given_.has(pad), given_.where(factor));
    } else if (given_.has(pad)) {
      draft_.leave(given_.written(pad) + " (which Megatron-LM does only with " + given_.written(factor) + ")");
    }
  }

  void read_tensor_overlap() {
    if (tensor_ > 1 && given_.has("sequence-parallel")) {
      draft_.set("pipelined_exchange", "true", given_.where("tp-comm-overlap"));
    } else {
      draft_.leave(given_.written("tp-comm-overlap") + " (which Megatron-LM does only with --sequence-parallel of "
                                                       "several ranks)");
    }
  }

  // The model's own sizes, which a launch script repeats.
  void read_sizes() {
    if (given_.has("seq-length")) {
      draft_.sequence_length(given_.written("seq-length"), given_.integer("seq-length", 1, kMostConfigSamples, 1),
                             given_.where("seq-length"));
    }
    const ModelSizes sizes = sizes_of(draft_.context().model);
    for (const auto& [flag, size] : {std::pair{"hidden-size", sizes.hidden},
                                     {"ffn-hidden-size", sizes.feed_forward},
                                     {"num-attention-heads", sizes.heads},
                                     {"num-query-groups", sizes.groups},
                                     {"kv-channels", sizes.head_width},
                                     {"num-experts", sizes.experts},
                                     {"moe-router-topk", sizes.top},
                                     {"moe-ffn-hidden-size", sizes.expert_feed_forward}}) {
      if (given_.has(flag)) {
        draft_.size(given_.written(flag), given_.integer(flag, 1, kMostConfigSamples, 1), size, given_.where(flag));
      }
    }
    if (given_.has("vocab-size") && sizes.vocabulary) { // which is filled up to a multiple
      const int given = given_.integer("vocab-size", 1, kMostConfigSamples, 1);
      constexpr long long kMostFilled = 4096;
      const bool filled = *sizes.vocabulary >= given && *sizes.vocabulary - given < kMostFilled;
      draft_.size(given_.written("vocab-size"), given, filled ? given : *sizes.vocabulary, given_.where("vocab-size"));
    }
  }

  // Ranks are tensor x context x pipeline x data; experts divide the ranks of data and context anew.
  void read_degrees() {
    tensor_ = degree("tensor-model-parallel-size", "tensor");
    pipeline_ = degree("pipeline-model-parallel-size", "pipeline");
    const int context = context_ = degree("context-parallel-size", "context");
    const int expert = degree("expert-model-parallel-size", "expert");
    read_expert_tensor(expert);
    if (expert > 1 || has_experts()) {
      read_dispatcher();
    }
    read_expert_capacity();
    if (context > 1) {
      read_context_rule();
    }
    const bool sequence = tensor_ > 1 && given_.has("sequence-parallel"); // Megatron-LM ignores it for one
    draft_.set("parallel.sequence", sequence ? "true" : "false", given_.where("sequence-parallel"));
    if (given_.has("tp-comm-overlap")) {
      read_tensor_overlap();
    }
    if (given_.has("use-tp-pp-dp-mapping")) {
      draft_.set("parallel.order", "tensor-pipeline-data", given_.where("use-tp-pp-dp-mapping"));
    }
    std::vector<NamedDegree> degrees;
    for (const auto& [flag, degree] : {std::pair{"tensor-model-parallel-size", tensor_},
                                       {"pipeline-model-parallel-size", pipeline_},
                                       {"context-parallel-size", context}}) {
      degrees.push_back({given_.written(flag), degree, given_.where(flag)});
    }
    const int world = given_.world();
    if (world > 0) {
      check_degrees(degrees, world, "the " + std::to_string(world) + " ranks that the file asks for");
    }
    replicas_ =
        given_.has("data-parallel-size") ? degree("data-parallel-size", "data") : draft_.replicas_beside(degrees);
    check_experts(expert);
    if (world > 0 && world != draft_.context().devices) {
      draft_.leave(std::to_string(world) + " ranks (the platform has " + std::to_string(draft_.context().devices) +
                   " devices)");
    }
  }

  // As many as a tensor group unless told otherwise. Without ranks that share experts that group shares each.
  void read_expert_tensor(int expert) {
    const char* flag = "expert-tensor-parallel-size";
    const int of_each = given_.integer(flag, 1, kMostConfigDegree, tensor_);
    if (expert > 1) {
      draft_.degree("expert_tensor", of_each, given_.where(flag));
    } else if (of_each != tensor_ && has_experts()) {
      draft_.leave(given_.written(flag) + " " + std::to_string(of_each) + " beside " +
                   given_.written("tensor-model-parallel-size") + " " + std::to_string(tensor_) +
                   " (here as many ranks share an expert where no ranks have experts of their own)");
    }
  }

  // Experts, or with expert tensor groups parts of them, are shared by ranks of tensor x context x data.
  void check_experts(int expert) const {
    const char* flag = "expert-model-parallel-size";
    const int of_each = given_.integer("expert-tensor-parallel-size", 1, kMostConfigDegree, expert > 1 ? tensor_ : 1);
    const long long ranks = 1LL * tensor_ * context_ * replicas_;
    if (expert > 1 && ranks % (1LL * expert * of_each) != 0) {
      throw InputError(given_.where(flag),
                       given_.written(flag) + " " + std::to_string(expert) +
                           (of_each > 1 ? " x " + std::to_string(of_each) + " ranks of an expert's tensor group" : "") +
                           " does not divide the " + std::to_string(ranks) + " ranks of a stage" +
                           (ranks % of_each == 0
                                ? "; nearest that do: " + nearest_divisors(static_cast<int>(ranks / of_each), expert)
                                : "; allowed: an expert tensor group that divides them"));
    }
    draft_.check_experts(given_.written(flag), expert, given_.where(flag));
  }

  // Transformer Engine's names of how keys and values come to the ranks that share tokens; by a ring unless told.
  void read_context_rule() {
    const Where& where = given_.where("cp-comm-type");
    const std::string type = given_.has("cp-comm-type") ? given_.text("cp-comm-type") : "p2p";
    struct Name {
      std::string_view name, rule;
    };
    static constexpr std::array kRules = {Name{"p2p", "ring"}, Name{"all_gather", "all-gather"},
                                          Name{"a2a", "all-to-all"}, Name{"a2a+p2p", "both"}};
    const std::string_view rule = find_by_name(kRules, type, "cp-comm-type", where).rule;
    draft_.set("parallel.context_rule", std::string(rule), where);
    if (rule == "both") {
      const char* sizes = "hierarchical-context-parallel-sizes";
      if (!given_.has(sizes)) {
        throw InputError(where, "'" + given_.written("cp-comm-type") + " a2a+p2p' is given without '" +
                                    given_.written(sizes) + "', of which the first is the ranks that exchange heads");
      }
      const std::string first = given_.text(sizes).substr(0, given_.text(sizes).find_first_of(" ,"));
      draft_.set("parallel.context_heads", parse_integer(first, 1, kMostConfigDegree, given_.where(sizes)),
                 given_.where(sizes));
    }
  }

  void read_batch() {
    if (!given_.has("micro-batch-size")) {
      throw InputError(given_.where("micro-batch-size"),
                       "'" + given_.written("micro-batch-size") + "' is missing: the samples of a replica at a time");
    }
    const int size = given_.integer("micro-batch-size", 1, kMostConfigSamples, 1);
    draft_.set("micro_batch_size", size, given_.where("micro-batch-size"));
    const long long all = static_cast<long long>(size) * replicas_;
    const bool is_given = given_.has("global-batch-size");
    draft_.set("global_batch",
               is_given ? given_.integer("global-batch-size", 1, kMostConfigSamples, 1)
                        : std::min<long long>(all, kMostConfigSamples),
               given_.where(is_given ? "global-batch-size" : "micro-batch-size"));
  }

  void read_precision() {
    const bool half = given_.has("fp16"), brain = given_.has("bf16");
    if (half && brain) {
      throw InputError(given_.where("fp16"), "both '" + given_.written("fp16") + "' and '" + given_.written("bf16") +
                                                 "' are given; allowed: one of them");
    }
    const char* flag = half ? "fp16" : "bf16";
    draft_.set("precision", half || brain ? flag : "fp32", given_.where(flag));
    gradient_bytes_ = half || brain ? 2 : 4;
    const bool single =
        brain ? !given_.has("grad-reduce-in-bf16") : half && given_.has("accumulate-allreduce-grads-in-fp32");
    if (half || brain) { // single is its default with bf16
      draft_.set("gradient_precision", single ? "fp32" : flag, given_.where(flag));
      gradient_bytes_ = single ? 4 : 2;
    }
    if (given_.has("fp4-format")) {
      read_four_bits();
    } else if (given_.has("fp8-format")) {
      choice("fp8-format", "format of fp8", {"e4m3", "hybrid"});
      std::vector<std::string> recipes;
      for (const Fp8Row& row : kFp8Recipes) {
        if (row.gathers && row.products != Precision::nvfp4) { // all but torchao's
          recipes.emplace_back(row.name);
        }
      }
      recipes.emplace_back("custom"); // which the code that starts Megatron-LM says
      const std::string recipe = given_.has("fp8-recipe") ? choice("fp8-recipe", "recipe of fp8", recipes) : "delayed";
      const bool known = recipe != recipes.back();
      if (known) {
        draft_.set("fp8", recipe, given_.where("fp8-format"));
        if (given_.has("activation-func-fp8-input-store")) {
          draft_.set("fp8_activations", "true", given_.where("activation-func-fp8-input-store"));
        }
      } else {
        draft_.leave(given_.written("fp8-recipe") + " " + excerpt(recipe));
      }
      eight_bits_ = known ? recipe : "";
    }
  }

  void read_four_bits() {
    if (given_.has("fp8-format")) {
      throw InputError(given_.where("fp4-format"), "both '" + given_.written("fp8-format") + "' and '" +
                                                       given_.written("fp4-format") +
                                                       "' are given; allowed: one of them");
    }
    choice("fp4-format", "format of fp4", {"e2m1"});
    const std::string recipe =
        given_.has("fp4-recipe") ? choice("fp4-recipe", "recipe of fp4", {"nvfp4", "mxfp4", "custom"}) : "nvfp4";
    if (recipe == "nvfp4") {
      draft_.set("fp8", recipe, given_.where("fp4-format"));
    } else {
      draft_.leave(given_.written("fp4-recipe") + " " + recipe + " (here products are of the precision)");
    }
  }

  // Weights are held in 8 bits alone, and gathered so. Of mxfp8, whose two copies have scales of their own, the
  // distributed optimiser gathers 16 bits, which are cast after that (reuse_grad_buf_for_mxfp8_param_ag).
  void read_fp8_gather(int zero) {
    const char* flag = "fp8-param-gather";
    if (!given_.has(flag)) {
      return;
    }
    if (eight_bits_.empty() || given_.has("use-torch-fsdp2")) {
      draft_.leave(given_.written(flag) + " (which Megatron-LM does only with " + given_.written("fp8-format") +
                   ", and not with " + given_.written("use-torch-fsdp2") + ")");
      return;
    }
    draft_.set("fp8_weights", "true", given_.where(flag));
    const bool fsdp = zero > 1;
    if (zero > 0 && (eight_bits_ != "mxfp8" || fsdp)) {
      draft_.set("parallel.quantized_weights", "fp8", given_.where(flag));
    }
  }

  // What replicas share, and the buckets in which they reduce gradients while a backward runs.
  void read_sharding() {
    const bool fsdp = given_.has("use-megatron-fsdp") || given_.has("use-custom-fsdp");
    int zero = given_.has("use-torch-fsdp2") ? 3 : given_.has("use-distributed-optimizer") ? 1 : 0;
    Where where = given_.where(zero == 3 ? "use-torch-fsdp2" : "use-distributed-optimizer");
    if (fsdp || given_.has("data-parallel-sharding-strategy")) {
      const std::vector<std::string> known = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
      const std::string strategy = given_.text("data-parallel-sharding-strategy");
      const auto found = std::find(known.begin(), known.end(), strategy.empty() ? known.front() : strategy);
      where = given_.where("data-parallel-sharding-strategy");
      if (found == known.end()) {
        throw InputError(where, unknown_name("sharding strategy", strategy, known));
      }
      zero = fsdp ? std::max(zero, static_cast<int>(found - known.begin())) : zero;
    }
    draft_.set("parallel.zero", zero, where);
    read_fp8_gather(zero);
    const bool overlaps = given_.has("overlap-grad-reduce") || zero >= 2;
    if (zero == 1 || zero == 2) {
      draft_.set("parallel.gather", zero == 1 && given_.has("overlap-param-gather") ? "before-use" : "after-step",
                 given_.where("overlap-param-gather"));
      if (zero == 1 && given_.has("overlap-param-gather") && given_.has("num-experts")) { // a chain of buckets
        draft_.set("parallel.late_experts", "true", given_.where("overlap-param-gather"));
      }
    }
    if (const int parts = given_.integer("num-distributed-optimizer-instances", 1, kMostConfigDegree, 1); parts > 1) {
      read_instances(parts, zero);
    }
    // Megatron-LM's own size of a bucket, in parameters, grows with the replicas.
    constexpr long long kLeast = 40'000'000, kOfReplica = 1'000'000;
    const long long parameters = given_.has("ddp-bucket-size")
                                     ? given_.integer("ddp-bucket-size", 1, kMostConfigSamples, 1)
                                     : std::max(kLeast, kOfReplica * replicas_);
    draft_.set("gradient_bucket", overlaps ? std::to_string(parameters * gradient_bytes_) + " B" : "none",
               given_.where(given_.has("ddp-bucket-size") ? "ddp-bucket-size" : "overlap-grad-reduce"));
  }

  // Each instance of the optimiser holds all states among its own replicas.
  void read_instances(int parts, int zero) {
    const Where where = given_.where("num-distributed-optimizer-instances");
    const int all = replicas_ * context_; // ranks of data and context
    if (all % parts != 0) {
      throw InputError(where, std::to_string(parts) + " instances of the optimiser do not divide the " +
                                  std::to_string(all) + " replicas; allowed: a divisor");
    }
    if (zero > 0) {
      draft_.set("parallel.shard", all / parts, where);
    } else {
      draft_.leave(given_.written("num-distributed-optimizer-instances") + " " + std::to_string(parts));
    }
  }

  void read_layers() {
    if (given_.has("num-layers")) {
      const int further = given_.integer("mtp-num-layers", 0, kMostConfigDegree, 0); // which predict further tokens
      draft_.size(given_.written("num-layers") + (further > 0 ? " and " + given_.written("mtp-num-layers") : ""),
                  given_.integer("num-layers", 1, kMostConfigDegree, 1) + further, draft_.layers(),
                  given_.where(further > 0 ? "mtp-num-layers" : "num-layers"));
    }
    const bool virtual_stages =
        given_.has("num-layers-per-virtual-pipeline-stage") || given_.has("num-virtual-stages-per-pipeline-rank");
    int stages = pipeline_;
    if (places_unevenly(given_)) {
      const bool is_written = given_.has("pipeline-model-parallel-layout");
      const PipelineLayout layout = read_megatron_layout(given_, is_written ? 0 : draft_.layers(), pipeline_);
      stages = static_cast<int>(layout.stages.size());
      draft_.set("parallel.layers", to_text(layout), layout.where);
    } else if (given_.has("num-layers-per-virtual-pipeline-stage")) {
      stages = static_cast<int>(read_megatron_layout(given_, draft_.layers(), pipeline_).stages.size());
    } else if (virtual_stages) {
      stages = pipeline_ * given_.integer("num-virtual-stages-per-pipeline-rank", 1, kMostConfigDegree / pipeline_, 1);
    }
    const bool interleaved = stages > pipeline_;
    const Where where =
        given_.where(given_.has("num-layers-per-virtual-pipeline-stage") ? "num-layers-per-virtual-pipeline-stage"
                     : virtual_stages                                    ? "num-virtual-stages-per-pipeline-rank"
                                                                         : "pipeline-model-parallel-size");
    if (interleaved && !places_unevenly(given_)) {
      draft_.set("parallel.interleave", stages / pipeline_, where);
    }
    const char* overlap = "overlap-moe-expert-parallel-comm";
    const bool beside = given_.has(overlap);
    draft_.schedule(beside        ? interleaved ? "combined-interleaved" : "combined-1f1b"
                    : interleaved ? "interleaved"
                                  : "1f1b",
                    beside ? given_.where(overlap) : where);
    if (beside && !interleaved && pipeline_ > 1) {
      draft_.leave(given_.written(overlap) +
                   " without virtual stages, which Megatron-LM refuses (here a rank has one)");
    }
    if (const char* delay = "delay-wgrad-compute"; given_.has(delay) && beside) {
      draft_.set("delayed_weights", "true", given_.where(delay));
    } else if (given_.has(delay)) {
      draft_.leave(given_.written(delay) + " (which Megatron-LM does only with " + given_.written(overlap) + ")");
    }
    if (const char* apart = "no-overlap-p2p-communication"; given_.has(apart)) {
      draft_.set("blocking_sends", "unsplit", given_.where(apart));
    }
    if (const char* whole = "no-scatter-gather-tensors-in-pipeline"; given_.has(whole)) {
      draft_.set("scatter_gather", "false", given_.where(whole));
    }
    read_deferred_head();
    const char* group = "microbatch-group-size-per-virtual-pipeline-stage";
    if (const int size = given_.integer(group, 1, kMostConfigSamples, pipeline_); size != pipeline_) {
      draft_.leave(given_.written(group) + " " + std::to_string(size) + " (here it is the ranks of the pipeline)");
    }
  }

  void read_deferred_head() {
    const char* flag = "defer-embedding-wgrad-compute";
    if (!given_.has(flag)) {
      return;
    }
    if (pipeline_ == 1 || given_.has("use-megatron-fsdp") || given_.has("use-torch-fsdp2")) {
      draft_.leave(given_.written(flag) + (pipeline_ == 1 ? " (which Megatron-LM does only in a pipeline)"
                                                          : " (here not where replicas share gradients)"));
      return;
    }
    draft_.set("deferred_head", "true", given_.where(flag));
    if (const int limit = given_.integer("wgrad-deferral-limit", 0, kMostConfigSamples, 0); limit > 0) {
      draft_.leave(given_.written("wgrad-deferral-limit") + " " + std::to_string(limit) +
                   " (here the gradients of all micro-batches wait)");
    }
  }

  void read_recompute() {
    const MegatronRecompute asked = read_megatron_recompute(given_);
    const Where where = given_.where("recompute-granularity");
    if (asked.full) {
      draft_.recompute_blocks(asked.layers, asked.first_ones ? asked.layers : 0, where);
    } else if (asked.selective) {
      draft_.modules("recompute.modules", kRecomputeModules, asked.modules, given_.written("recompute-modules"), where);
    } else {
      draft_.set("recompute", "none", where);
    }
  }

  // What is captured as CUDA graphs, by the arguments of today, of 2025 (a scope instead of modules), and before.
  void read_captured_graphs() {
    const char* implementation = "cuda-graph-impl";
    const std::string by = given_.has(implementation)
                               ? choice(implementation, "implementation of CUDA graphs",
                                        {"none", "local", "transformer_engine", "full_iteration"})
                           : given_.has("enable-cuda-graph") || given_.has("external-cuda-graph") ? "local"
                                                                                                  : "none";
    if (by == "none") {
      return;
    }
    const char* argument = given_.has("cuda-graph-modules") ? "cuda-graph-modules" : "cuda-graph-scope";
    std::vector<std::string> modules = given_.words(argument);
    if (given_.has("cuda-graph-modules") && given_.has("cuda-graph-scope")) {
      draft_.leave(given_.written("cuda-graph-scope") + " (beside " + given_.written("cuda-graph-modules") + ")");
    }
    if (by == "full_iteration" && !modules.empty() && modules != std::vector{by}) {
      draft_.leave(given_.written(argument) + " (the whole iteration is captured)");
    }
    if (by == "full_iteration") {
      modules = {by};
    } else if (modules.empty() || modules == std::vector<std::string>{"full"}) {
      modules = {"layer"};
    }
    draft_.modules("launches.captured", kCapturedModules, modules, given_.written(argument),
                   given_.where(given_.has(argument) ? argument : implementation));
  }

  void read_optimizer() {
    const std::string name = given_.has("optimizer") ? given_.text("optimizer") : "adam";
    constexpr double kMomentum = 0.9; // its default
    if (name == "sgd") {
      draft_.set("optimizer", given_.number("sgd-momentum", kMomentum) > 0 ? "momentum" : "sgd",
                 given_.where("optimizer"));
    } else if (name == "adam") {
      draft_.set("optimizer", "adam", given_.where("optimizer"));
    } else {
      draft_.other_optimizer(given_.written("optimizer"), name, {"adam", "sgd"}, given_.where("optimizer"));
    }
    read_states();
    read_rotation();
    read_offload();
    if (given_.has("no-gradient-accumulation-fusion")) {
      draft_.set("fused_gradient_sums", "false", given_.where("no-gradient-accumulation-fusion"));
    }
    draft_.set("clip_gradients", given_.number("clip-grad", 1) > 0 ? "true" : "false", given_.where("clip-grad"));
  }

  const MegatronArguments& given_;
  TrainingDraft draft_;
  int tensor_ = 1, pipeline_ = 1, context_ = 1, replicas_ = 1, gradient_bytes_ = 4;
  std::string_view usual_dispatcher_;
  std::string eight_bits_; // the recipe of products in 8 bits; "": none
};

} // namespace

ImportedTraining megatron_training(const MegatronArguments& arguments, std::vector<std::string> unheeded,
                                   const ConfigContext& context, std::string_view dispatcher) {
  return Reading(arguments, context, dispatcher).read(std::move(unheeded));
}

} // namespace stagecraft
