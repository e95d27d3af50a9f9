// Schedules as PyTorch's torch.distributed.pipelining writes and reads them: a row per rank, a cell per step, tokens
// like 1F0: stage, work, micro-batch. docs/formats/schedule.md, "PyTorch".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace stagecraft {

/// The meaning of B. In current files it is the whole backward pass (I is the input's gradient, W that of the weights);
/// in old files it is the input's gradient only (the whole pass is BW).
enum class PytorchDialect { current, old };

struct PytorchSchedule {
  Schedule schedule; ///< without messages; a whole backward pass among split ones becomes a B with its W fused to it
  PytorchDialect dialect = PytorchDialect::current;
  bool messages = false; ///< whether the file has SEND and RECV
  std::vector<ScheduleDefect>
      defects; ///< defects of the messages: one without its peer, one out of place, or a deadlock
};

/// Whether a text has this format: its first token begins with a stage or a parenthesis.
bool is_pytorch_csv(std::string_view text);

/// Reads a schedule. Tokens show the dialect: BW, or both B and W of one micro-batch and stage, are old. Throws
/// InputError at a token that is unknown or of the other dialect.
PytorchSchedule read_pytorch_csv(std::string_view text, const std::string& file);

/// Writes a schedule, which must be able to run, in PyTorch's tokens. Without messages, cells are steps of equal
/// length. With them, a SEND follows the work that makes its data, and all RECVs are placed so that nothing blocks even
/// if a send waits for its receiver. Infeasible if the schedule recomputes, or fuses more than a forward and a
/// backward.
std::variant<std::string, Infeasible> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect, bool messages);

} // namespace stagecraft
