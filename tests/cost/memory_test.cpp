// Bytes per parameter, memory of a stage part by part, and the optimiser step.
// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/memory.hpp"
#include "tests/catch.hpp"
#include "tests/cost/devices.hpp"

namespace stagecraft {
namespace {

using test::near;

Training training_of(std::string_view optimizer, Precision precision) {
  Training training;
  for (const OptimizerRow& row : kOptimizers) {
    training.optimizer = row.name == optimizer ? &row : training.optimizer;
  }
  training.precision = precision;
  return training;
}

double bytes_per_parameter(std::string_view optimizer, Precision precision) {
  const ParameterBytes bytes = parameter_bytes(training_of(optimizer, precision));
  return bytes.weight + bytes.gradient + bytes.optimizer;
}

TEST_CASE("bytes per parameter", "[cost][memory]") {
  // Weight 4 + gradient 4 + 4 per state.
  CHECK(bytes_per_parameter("sgd", Precision::fp32) == 8);
  CHECK(bytes_per_parameter("momentum", Precision::fp32) == 12);
  CHECK(bytes_per_parameter("adam", Precision::fp32) == 16);
  CHECK(bytes_per_parameter("lamb", Precision::fp32) == 16);
  CHECK(bytes_per_parameter("adam", Precision::tf32) == 16);
  // Weight 2 + gradient 2 + master weight 4 + 4 per state.
  CHECK(bytes_per_parameter("sgd", Precision::fp16) == 8);
  CHECK(bytes_per_parameter("momentum", Precision::bf16) == 12);
  CHECK(bytes_per_parameter("adam", Precision::fp16) == 16);
  CHECK(bytes_per_parameter("adam", Precision::bf16) == 16);
}

TEST_CASE("memory of a stage part by part", "[cost][memory]") {
  const Training training = training_of("adam", Precision::fp16);
  const StageMemory memory =
      stage_memory(training, 1000, {Bytes{500}, Bytes{0}}, Bytes{30}, Bytes{20}, Recompute::none);
  CHECK(memory.weights.value == 2000);
  CHECK(memory.gradients.value == 2000);
  CHECK(memory.optimizer.value == 12000);
  CHECK(memory.per_micro_batch.value == 500);
  CHECK(memory.workspace.value == 0);
  CHECK(memory.buffers.value == 2 * (30 + 20));
  CHECK(memory.total(3, 1).value == 16000 + 3 * 500 + 100);
  CHECK(memory.total(3, 4).value == 16000 + 3 * 2000 + 3 * 500 + 100);
  CHECK(memory.fixed(1).value == 16000 + 100);
}

// Beside weights and gradients: master weights of 4 bytes, or of the 2 that bf16 lacks, and two states of 4, 2 or 1.
TEST_CASE("states and master weights may take less", "[cost][memory]") {
  Training training = training_of("adam", Precision::bf16);
  const auto optimizer = [&](Precision states, bool remainders) {
    training.state_precision = states;
    training.master_remainders = remainders;
    return parameter_bytes(training).optimizer;
  };
  CHECK(optimizer(Precision::fp32, false) == 4 + 2 * 4);
  CHECK(optimizer(Precision::bf16, false) == 4 + 2 * 2);
  CHECK(optimizer(Precision::fp8, false) == 4 + 2 * 1);
  CHECK(optimizer(Precision::bf16, true) == 2 + 2 * 2);
  training.precision = Precision::fp32; // weights are their own master
  CHECK(optimizer(Precision::bf16, false) == 2 * 2);
}

// FSDP: a part of the weights in fp32, of Adam's two states and of the gradients, 16 bytes in all; a copy of the part
// in 16 bits makes it 18.
TEST_CASE("weights that are cast as they are gathered have no copy", "[cost][memory]") {
  Training training = training_of("adam", Precision::bf16);
  training.gradient_precision = Precision::fp32;
  training.sharding.replicas = 4;
  const auto fixed = [&](Zero zero, bool copy) {
    training.sharding.zero = zero;
    training.weight_copy = copy;
    return stage_memory(training, 1000, {}, Bytes{0}, Bytes{0}, Recompute::none).fixed(1).value;
  };
  CHECK(fixed(Zero::weights, false) == 1000 * 16 / 4);
  CHECK(fixed(Zero::weights, true) == 1000 * 18 / 4);
  // Each has all weights, which nobody gathers.
  CHECK(fixed(Zero::gradients, false) == fixed(Zero::gradients, true));
  training.precision = Precision::fp32; // there is nothing else
  CHECK(fixed(Zero::weights, false) == 1000 * 16 / 4);
}

TEST_CASE("recompute keeps a stage's input per micro-batch, and the restored activations once", "[cost][memory]") {
  const Training training = training_of("sgd", Precision::fp32);
  const StageMemory memory = stage_memory(training, 0, {Bytes{0}, Bytes{500}}, Bytes{30}, Bytes{20}, Recompute::full);
  CHECK(memory.per_micro_batch.value == 30);
  CHECK(memory.workspace.value == 500);
  CHECK(memory.total(4, 1).value == 4 * 30 + 500 + 100);
}

TEST_CASE("the optimiser step reads and writes weights and states and reads gradients", "[cost][memory]") {
  const DeviceType type = test::round_device(); // 10 B/s, launches of 0.5 s
  // fp32: SGD 4 + 4 read, 4 written; each state 4 more both ways.
  CHECK(optimizer_time(training_of("sgd", Precision::fp32), 100, type).value == near(0.5 + 100 * 12 / 10.0));
  CHECK(optimizer_time(training_of("adam", Precision::fp32), 100, type).value == near(0.5 + 100 * 28 / 10.0));
  // LAMB: Adam's, its update of 4 written, it and the weight read for their norms, and both read for the step.
  CHECK(optimizer_time(training_of("lamb", Precision::fp32), 100, type).value == near(0.5 + 100 * (28 + 20) / 10.0));
  // fp16 Adam: weight 2, gradient 2, master weight and two states 12 read; weight 2 and 12 written.
  CHECK(optimizer_time(training_of("adam", Precision::fp16), 100, type).value == near(0.5 + 100 * 30 / 10.0));
  CHECK(optimizer_time(training_of("adam", Precision::fp16), 0, type).value == 0);
}

// 1e6 parameters in bf16 are 2 MB of gradients; at 1 GB/s that is 2 ms to read, and 4 ms to read and write.
TEST_CASE("clipping reads gradients for their norm, and reads and writes them to scale them", "[cost][memory]") {
  DeviceType type;
  type.memory_bandwidth = BytesPerSecond{1e9};
  type.launch_overhead = Seconds{1e-5};
  Training training = training_of("adam", Precision::bf16);
  CHECK(clipping_times(training, 1e6, type).norm.value == 0);
  CHECK(clipping_times(training, 1e6, type).scale.value == 0);
  training.clip_gradients = true;
  CHECK(clipping_times(training, 1e6, type).norm.value == near(1e-5 + 2e-3));
  CHECK(clipping_times(training, 1e6, type).scale.value == near(1e-5 + 4e-3));
  CHECK(clipping_times(training, 0, type).norm.value == 0);
  training.sharding = {.zero = Zero::states, .replicas = 4}; // each has a fourth of the gradients
  CHECK(clipping_times(training, 1e6, type).norm.value == near(1e-5 + 5e-4));
}

// 1000 parameters in bf16 with Adam, four replicas that share states: of 250 of them the host has 12 B of states and 2
// of gradients, reads both, writes states and weights, with 15 operations each.
TEST_CASE("what the host steps and holds", "[cost][memory][offload]") {
  Training training = training_of("adam", Precision::bf16);
  training.sharding = {.zero = Zero::states, .replicas = 4};
  training.offload.optimizer = 1;
  const HostStep step = host_step(training, 1000);
  CHECK(step.gradients.value == 250 * 2);
  CHECK(step.weights.value == 250 * 2);
  CHECK(step.moved.value == 250 * (2 + 2 * 12 + 2));
  CHECK(step.work == 250 * 15);
  CHECK(host_bytes(training, 1000).value == 250 * (12 + 2));
  const DeviceType type = test::round_device();
  CHECK(optimizer_time(training, 1000, type).value == 0);
  const auto of_stage = [&] { return stage_memory(training, 1000, {}, Bytes{0}, Bytes{0}, Recompute::none); };
  CHECK(of_stage().optimizer.value == 0);
  CHECK(of_stage().weights.value == 2000);
  training.offload.optimizer = 0.5;
  CHECK(host_step(training, 1000).moved.value == 125 * 28);
  CHECK(host_bytes(training, 1000).value == 125 * 14);
  CHECK(of_stage().optimizer.value == 125 * 12);
  CHECK(optimizer_time(training, 1000, type).value == near(0.5 + 125 * 30 / 10.0));
  // Single precision has no master weights: the host keeps the weights, and reads and writes them.
  training.precision = Precision::fp32;
  CHECK(host_step(training, 1000).moved.value == 125 * (4 + 2 * 8 + 2 * 4));
  CHECK(host_bytes(training, 1000).value == 125 * (8 + 4 + 4));
  // Weights that rest there are not copied back after the step.
  training.precision = Precision::bf16;
  training.sharding.zero = Zero::weights;
  training.offload = {.optimizer = 1, .gradients = true, .parameters = true};
  CHECK(host_step(training, 1000).weights.value == 0);
  CHECK(host_bytes(training, 1000).value == 250 * (12 + 2 + 2));
  CHECK(of_stage().weights.value == 0);
  CHECK(of_stage().gradients.value == 0);
}

TEST_CASE("what is held beside tensors, and what it leaves for them", "[cost][memory]") {
  const MemoryReserve reserve{.context = Bytes{100}, .communicator = Bytes{7}, .fragmentation = 0.25};
  CHECK(reserve.with(Bytes{1000}, Bytes{14}).value == 1000 * 1.25 + 100 + 14);
  CHECK(reserve.room(Bytes{1350}).value == 1000);
  CHECK(MemoryReserve{}.with(Bytes{1000}, Bytes{0}).value == 1000);
  CHECK(MemoryReserve{}.room(Bytes{1000}).value == 1000);
}

} // namespace
} // namespace stagecraft
