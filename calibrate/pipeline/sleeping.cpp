// Backend `sleeping`: every task only takes its time. Many devices fit on few cores.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/backend.hpp"

namespace stagecraft::pipeline {
namespace {

class Sleeping : public Backend {
public:
  void compute(const Job& job) override { sleep(job); }
  void transfer(const Job& job, int /*channel*/) override { sleep(job); }

private:
  void sleep(const Job& job) { sleep_until(job.start + nanoseconds(job.work.seconds), stopped()); }
};

} // namespace

std::unique_ptr<Backend> make_sleeping(const Setting& /*setting*/) { return std::make_unique<Sleeping>(); }

} // namespace stagecraft::pipeline
