// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/training/token_dispatcher.hpp"

namespace stagecraft {

TokenDispatcher read_token_dispatcher(yaml::Map& map, Precision precision) {
  constexpr int kMostProcessors = 1024;
  TokenDispatcher dispatcher;
  dispatcher.kind = map.choice("token_dispatcher", kDispatchers, kDispatchers.front().name).kind;
  dispatcher.fp8 = map.choice("dispatch_precision", kDispatchPrecisions, kDispatchPrecisions.front().name).fp8;
  if (dispatcher.fp8 && row_of(precision).bytes != 2) {
    throw InputError(map.where("dispatch_precision"),
                     "casts numbers of 16 bits; allowed: 'precision' bf16 or fp16, or 'dispatch_precision' training");
  }
  if (dispatcher.fp8 && dispatcher.kind == DispatcherKind::allgather) {
    throw InputError(map.where("dispatch_precision"),
                     "casts rows on their way to experts, and 'token_dispatcher' allgather sends tokens to all; "
                     "allowed: with alltoall, deepep or hybridep");
  }
  if (dispatcher.kind == DispatcherKind::hybridep) {
    dispatcher.processors = TokenDispatcher::kHybridEpProcessors;
  }
  if (map.has("dispatch_processors")) {
    if (!dispatcher.sends_once()) {
      throw InputError(map.where("dispatch_processors"),
                       "says how many multiprocessors DeepEP's kernels take; allowed: "
                       "with 'token_dispatcher' deepep or hybridep");
    }
    dispatcher.processors = map.integer("dispatch_processors", 1, kMostProcessors);
  }
  return dispatcher;
}

} // namespace stagecraft
