// Exchanges of a tensor-parallel group in pieces beside its products, and in 8 bits.
// SPDX-License-Identifier: Apache-2.0
#include "tests/study/studies.hpp"

namespace stagecraft::test {
namespace {

// Both passes of GPT-2 on two groups of four H100, under sequence parallelism.
GroupPasses passes_of(const std::string& training) {
  const Study read = study("model: gpt2\nplatform: dgx-h100\ncost_model: roofline\ntraining: {global_batch: 8, "
                           "precision: bf16, parallel: {tensor: 4, data: 2, sequence: true}" +
                           training + "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n");
  ScheduleCounts counts;
  StudyMemo memo(read, counts);
  const ComparisonResult result = compare(memo);
  return *cost_plan(memo.costs.problem(1, 0), result.prepared.front().plan).stages.front().groups.front().passes;
}

double bytes_of(const GroupPass& pass, CollectiveKind kind) {
  double bytes = 0;
  for (const PassExchange& one : pass.exchanges) {
    bytes += one.kind == kind ? one.bytes.value : 0;
  }
  return bytes;
}

int count_of_kind(const GroupPass& pass, CollectiveKind kind) {
  return static_cast<int>(std::count_if(pass.exchanges.begin(), pass.exchanges.end(),
                                        [&](const PassExchange& one) { return one.kind == kind; }));
}

// Each of 12 layers gathers for two products and reduces and scatters what two products leave; the head gathers, too,
// and the embedding, which is no product, reduces and scatters. In pieces of a fourth, three of each are sent on.
TEST_CASE("what a group exchanges for products goes round in pieces", "[study][tensor]") {
  const GroupPasses whole = passes_of(""), pieces = passes_of(", pipelined_exchange: true");
  constexpr int kLayers = 12;
  CHECK(count_of_kind(whole.forward, CollectiveKind::all_gather) == 2 * kLayers + 1);
  CHECK(count_of_kind(whole.forward, CollectiveKind::reduce_scatter) == 2 * kLayers + 1);
  CHECK(count_of_kind(pieces.forward, CollectiveKind::all_gather) == 0);
  CHECK(count_of_kind(pieces.forward, CollectiveKind::reduce_scatter) == 1);
  CHECK(count_of_kind(pieces.forward, CollectiveKind::shift) == 3 * (4 * kLayers + 1));
  const double embedded = bytes_of(pieces.forward, CollectiveKind::reduce_scatter);
  CHECK(bytes_of(pieces.forward, CollectiveKind::shift) ==
        near(3.0 / 4 *
             (bytes_of(whole.forward, CollectiveKind::all_gather) +
              bytes_of(whole.forward, CollectiveKind::reduce_scatter) - embedded)));
}

TEST_CASE("pieces hide what is exchanged, and no more than that", "[study][tensor]") {
  const GroupPasses whole = passes_of(""), pieces = passes_of(", pipelined_exchange: true");
  CHECK(pieces.forward.exchanged.hidden.value > 0);
  CHECK(pieces.forward.exchanged.all < whole.forward.exchanged.all);
  // Pieces of a product launch more kernels than the whole: what they compute takes no less.
  CHECK(pieces.forward.seconds - pieces.forward.exchanged.all >= whole.forward.seconds - whole.forward.exchanged.all);
  // In backward what the input's gradient leaves stays beside the weights' gradient, as Megatron-LM has it.
  CHECK(count_of_kind(pieces.backward, CollectiveKind::reduce_scatter) ==
        count_of_kind(whole.backward, CollectiveKind::reduce_scatter));
}

// A piece of 512 tokens by itself is far slower in 8 bits than an eighth of all; several are computed at once.
TEST_CASE("pieces take no longer than the whole and the exchange behind it", "[study][tensor]") {
  const auto forward = [](const std::string& in_pieces) {
    const Study read = study("model: llama3-8b\nplatform: dgx-h100\ntraining: {global_batch: 1, precision: bf16, fp8: "
                             "delayed, parallel: {tensor: 8, sequence: true}" +
                             in_pieces + "}\ncompare: {strategies: [mesh], schedules: [1f1b]}\n");
    ScheduleCounts counts;
    StudyMemo memo(read, counts);
    const ComparisonResult result = compare(memo);
    return cost_plan(memo.costs.problem(1, 0), result.prepared.front().plan)
        .stages.front()
        .groups.front()
        .passes->forward;
  };
  const GroupPass whole = forward(""), pieces = forward(", pipelined_exchange: true");
  CHECK(pieces.seconds - pieces.exchanged.all <= whole.seconds);
}

// Of what is gathered forward only the head, which stays in 16 bits, and of its 25 gathers of equal size 24 are for
// products of blocks.
TEST_CASE("what is cast before it is gathered takes a byte an element", "[study][tensor][fp8]") {
  const double whole = bytes_of(passes_of("").forward, CollectiveKind::all_gather);
  const auto gathered = [&](const std::string& recipe) {
    return bytes_of(passes_of(", fp8: " + recipe).forward, CollectiveKind::all_gather);
  };
  CHECK(gathered("delayed") == near(whole * (24 * 0.5 + 1) / 25));
  CHECK(gathered("tensorwise") == near(whole * (24 * 0.5 + 1) / 25));
  CHECK(gathered("rowwise") == near(whole));
}

// Who casts by rows casts all that was gathered, so that no product reads it piece by piece (pytorch/pytorch issue
// 149990); what products leave is added up in pieces all the same, and what the head reads is not cast.
TEST_CASE("what is cast behind its gather goes round as a whole", "[study][tensor][fp8]") {
  const GroupPass rows = passes_of(", fp8: rowwise, pipelined_exchange: true").forward;
  const GroupPass tensors = passes_of(", fp8: tensorwise, pipelined_exchange: true").forward;
  constexpr int kLayers = 12;
  CHECK(count_of_kind(tensors, CollectiveKind::all_gather) == 0);
  CHECK(count_of_kind(rows, CollectiveKind::all_gather) == 2 * kLayers);
  CHECK(count_of_kind(rows, CollectiveKind::reduce_scatter) == count_of_kind(tensors, CollectiveKind::reduce_scatter));
}

} // namespace
} // namespace stagecraft::test
