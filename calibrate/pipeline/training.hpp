// A perceptron trained by the tasks of a run. Each stage holds some of its layers; each F, B, W, R and optimiser step
// does what its name says; and data reaches a device only by the graph's transfers. So a schedule, an order or an
// executor that breaks a dependency shows in the weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "calibrate/pipeline/backend.hpp"
#include "calibrate/pipeline/work/perceptron.hpp"

namespace stagecraft::pipeline {

/// The part of every micro-batch that a replica computes.
struct ReplicaShare {
  DeviceId device = -1;
  double share = 1;
};

/// What is trained, and how its layers are divided among stages.
struct TrainingSetup {
  std::vector<int> layers;                       ///< [stage]: number of its layers
  std::vector<std::vector<ReplicaShare>> shares; ///< [stage]: shares of its replicas in order; empty: equal shares
  int iterations = 20;
  int width = 12;
  int samples = 12; ///< samples per micro-batch
  double rate = 0.1;
  std::uint64_t seed = 1;
};

/// The outcome of training.
struct TrainingResult {
  Layers layers;                 ///< the whole perceptron, with each stage from its first replica
  double replicas_differ = 0;    ///< the largest difference between weights of two replicas
  std::vector<double> losses;    ///< [iteration]: mean over its micro-batches, each with the weights of its forward
  std::vector<double> staleness; ///< [stage]: mean over micro-batches of the optimiser steps between the weights that F
                                 ///< used and those that its gradient updates
  std::vector<int> versions;     ///< [stage]: the most versions of its weights that existed at once on a device
  std::vector<int> held;         ///< [stage]: the most micro-batches on a device between F and its last gradient
};

/// A backend that trains; for a single run.
class Training final : public Backend {
public:
  /// `schedule` must be that of the graph, `setup.iterations` the number of times that it will run.
  /// std::invalid_argument if a replica would get no sample, or two neighbouring stages exchange nothing.
  Training(const Setting& setting, const Schedule& schedule, TrainingSetup setup);

  void compute(const Job& job) override;
  void transfer(const Job& job, int channel) override;

  /// The outcome, after the run.
  TrainingResult result() const;

private:
  // A micro-batch on one replica.
  struct Slot {
    Eigen::MatrixXd input, output_gradient; // NaN until they arrive
    std::vector<Eigen::MatrixXd> outputs;   // [layer]; emptied where recompute makes them again
    Eigen::MatrixXd output, input_gradient; // what is sent on
    Gradients gradients;
    std::shared_ptr<const Layers> used; // weights of its forward, while they are kept
    bool waits = false;                 // whether its backward is still to come
    int steps = 0;                      // number of steps that had made those weights
  };
  // A replica of a stage.
  struct Replica {
    int device = 0, stage = 0;
    double begin = 0, end = 1;                          // its part of a micro-batch
    std::vector<std::shared_ptr<const Layers>> weights; // as many versions as the schedule keeps, the newest first
    Layers last_change;                                 // by the last step
    std::array<Layers, 4> gradients; // of this step and of the next, and of those before, which others may still read
    int steps = 0;
    double stale_sum = 0;
    int updates = 0, versions = 1, held = 0, most_held = 0;
    std::vector<Slot> slots; // [number of a micro-batch over the whole run]
  };

  void find_replicas(const Setting& setting);
  void share_out();
  void find_receivers();
  void check_chain() const;
  int number(const Job& job) const; ///< number of the job's micro-batch over the whole run
  bool last(const Replica& replica) const { return replica.stage + 1 == static_cast<int>(setup_.layers.size()); }
  int first_column(const Replica& replica) const;
  int end_column(const Replica& replica) const;
  const Examples& examples(int number) const { return examples_[static_cast<std::size_t>(number)]; }

  void copy_columns(const Eigen::MatrixXd& from, const Replica& sender, Eigen::MatrixXd& to,
                    const Replica& receiver) const;
  void gather(Replica& replica, int number, bool forwards);
  int step_of(const Replica& replica, int number) const;
  Layers& gradients_of(Replica& replica, int step) const;
  /// Whether B uses the weights that F used, not the newest ones.
  bool keeps_weights() const {
    return schedule_.flushes || (!schedule_.versions.empty() && !schedule_.predicts_weights);
  }
  const Layers& weights_of(const Replica& replica, const Slot& slot) const {
    return slot.used != nullptr ? *slot.used : *replica.weights.front();
  }
  void run_forward(Replica& replica, const Job& job, int number);
  void run_again(Replica& replica, int number);
  void run_backward(Replica& replica, int number);
  void add_gradients(Replica& replica, int number);
  void step(Replica& replica);
  void count_versions(Replica& replica, int number);

  const TaskGraph& graph_;
  const Schedule& schedule_;
  TrainingSetup setup_;
  int first_ = 0; // micro-batches before this one began before the run
  std::vector<Replica> replicas_;
  std::vector<std::vector<int>> replica_of_;  // [device][stage]: index of the replica, or -1
  std::vector<std::vector<int>> replicas_of_; // [stage], in the order of its replicas
  std::vector<std::vector<int>> receivers_;   // [task]: replicas that a transfer brings data to
  std::vector<char> runs_again_;              // [task]: whether recompute makes a forward again
  std::vector<Examples> examples_;            // [number]
  std::vector<std::atomic<double>> losses_;   // [number]
};

/// The same training on one device: every step adds up the gradients of all micro-batches, then updates.
TrainingResult train_sequentially(const TrainingSetup& setup, int micro_batches);

} // namespace stagecraft::pipeline
