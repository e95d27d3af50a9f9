// Backend `emulated`: computations sleep, transfers cross a network inside this machine.
// SPDX-License-Identifier: Apache-2.0
#include "calibrate/pipeline/network.hpp"

namespace stagecraft::pipeline {
namespace {

class Emulated : public Backend {
public:
  explicit Emulated(const Setting& setting) : network_(setting) {}

  void compute(const Job& job) override { sleep_until(job.start + nanoseconds(job.work.seconds), stopped()); }

  // The sender waits for a link's latency, since not every machine has queues that delay packets. It also waits for
  // what the links' token buckets, full after a pause, would let through too early.
  void transfer(const Job& job, int channel) override {
    sleep_until(job.start + nanoseconds(job.work.latency + network_.head_start(channel)), stopped());
    network_.send(channel, job.work.bytes);
  }

  std::vector<std::pair<std::string, std::string>> conditions() const override { return network_.conditions(); }

private:
  void interrupted() override { network_.shut(); }

  Network network_;
};

} // namespace

std::unique_ptr<Backend> make_emulated(const Setting& setting) { return std::make_unique<Emulated>(setting); }

} // namespace stagecraft::pipeline
