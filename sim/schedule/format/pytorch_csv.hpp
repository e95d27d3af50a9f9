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

/// What B says: in today's files the whole backward pass (I is the gradient of the input, W that of the weights); in
/// old ones the gradient of the input alone (the whole is BW).
enum class PytorchDialect { current, old };

struct PytorchSchedule {
  Schedule schedule; ///< without the messages; a whole backward among split ones is a B with its W fused to it
  PytorchDialect dialect = PytorchDialect::current;
  bool messages = false;            ///< whether the file has SEND and RECV
  std::vector<std::string> defects; ///< of the messages: one without its peer or out of place, or a deadlock of theirs
};

/// Whether a text is of this form: its first token begins with a stage or a parenthesis.
bool is_pytorch_csv(std::string_view text);

/// The dialect is told by its tokens: BW, or B and W of one micro-batch and stage, are old. Throws InputError at a
/// token that is none, or of the other dialect.
PytorchSchedule read_pytorch_csv(std::string_view text, const std::string& file);

/// A schedule that can run, in PyTorch's tokens. Without messages cells are steps of equal length; with them a SEND
/// follows the work that makes its data, and all RECVs stand so that even sends that wait for their receiver cannot
/// block each other. Infeasible where it recomputes, or fuses more than a forward and a backward.
std::variant<std::string, Infeasible> to_pytorch_csv(const Schedule& schedule, PytorchDialect dialect, bool messages);

} // namespace stagecraft
