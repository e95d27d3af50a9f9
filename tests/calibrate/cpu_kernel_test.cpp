// The kernels of the harness for processors compute what their names say: against plain loops, gradients against
// finite differences, for every instruction set that this machine has, by one thread and by three.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "tests/catch.hpp"

#include "calibrate/cpu/team.hpp"

namespace stagecraft::cpu {
namespace {

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;

// The operands after one run.
Named run_kernel(const std::string& text, const Routines& routines, int parts, Arena& arena) {
  arena.clear();
  const Work work = make_work(gpu::parse_kernel(text), {routines, arena, parts});
  for (int part = 0; part < parts; ++part) {
    const Index begin = work.items * part / parts, end = work.items * (part + 1) / parts;
    if (begin < end) {
      work.run(part, begin, end);
    }
  }
  if (work.finish) {
    work.finish();
  }
  Named named;
  for (const Work::Operand& operand : work.operands) {
    named[operand.name] = Values(operand.values, operand.values + operand.count);
  }
  return named;
}

void for_each_way(const std::string& text, const std::function<void(const Named&)>& check) {
  static Arena arena(std::int64_t{64} << 20);
  for (const Routines* routines : all_routines()) {
    for (const int parts : {1, 3}) {
      INFO(text << " by " << routines->instructions << ", parts: " << parts);
      check(run_kernel(text, *routines, parts, arena));
    }
  }
}

void check_near(const Values& got, const Values& want, double margin) {
  REQUIRE(got.size() == want.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::isfinite(got[i]) ? std::abs(got[i] - want[i]) : 1e30);
  }
  CHECK(worst < margin);
}

// d(sum of result x weights)/d(input), by central differences.
Values differences(const std::function<Values(const Values&)>& f, Values input, const Values& weights) {
  constexpr double kStep = 1e-4;
  Values gradient(input.size());
  const auto loss = [&] {
    const Values result = f(input);
    double sum = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
      sum += result[i] * weights[i];
    }
    return sum;
  };
  for (std::size_t i = 0; i < input.size(); ++i) {
    const double before = input[i];
    input[i] = before + kStep;
    const double above = loss();
    input[i] = before - kStep;
    gradient[i] = (above - loss()) / (2 * kStep);
    input[i] = before;
  }
  return gradient;
}

TEST_CASE("products in the layouts of all three passes", "[cpu]") {
  const auto check = [](const std::string& pass, bool transpose_a, bool transpose_b) {
    constexpr std::size_t kBatch = 2, kM = 7, kN = 19, kK = 33;
    const std::string text = "gemm " + pass + " fp32 batch=2 m=7 n=19 k=33";
    for_each_way(text, [&](const Named& of) {
      Values want(kBatch * kM * kN);
      for (std::size_t b = 0; b < kBatch; ++b) {
        for (std::size_t i = 0; i < kM; ++i) {
          for (std::size_t j = 0; j < kN; ++j) {
            for (std::size_t p = 0; p < kK; ++p) {
              const double x = of.at("a")[b * kM * kK + (transpose_a ? p * kM + i : i * kK + p)];
              const double y = of.at("b")[b * kK * kN + (transpose_b ? j * kK + p : p * kN + j)];
              want[(b * kM + i) * kN + j] += x * y;
            }
          }
        }
      }
      check_near(of.at("c"), want, 1e-4);
    });
  };
  check("forward", false, false);
  check("backward-input", false, true);
  check("backward-weight", true, false);
}

struct Convolution {
  std::size_t n, c, h, w, k, r, s, stride, padding, groups;
  std::size_t out(std::size_t in, std::size_t window) const { return (in + 2 * padding - window) / stride + 1; }

  Values operator()(const Values& x, const Values& weight) const {
    const std::size_t out_h = out(h, r), out_w = out(w, s), depth = c / groups;
    Values y(n * k * out_h * out_w);
    for (std::size_t at = 0; at < y.size(); ++at) {
      const std::size_t col = at % out_w, row = at / out_w % out_h, filter = at / out_w / out_h % k;
      const std::size_t image = at / out_w / out_h / k, group = filter / (k / groups);
      for (std::size_t d = 0; d < depth; ++d) {
        for (std::size_t i = 0; i < r; ++i) {
          for (std::size_t j = 0; j < s; ++j) {
            const std::size_t line = row * stride + i, column = col * stride + j; // with the padding
            if (line >= padding && line < h + padding && column >= padding && column < w + padding) {
              y[at] += x[((image * c + group * depth + d) * h + line - padding) * w + column - padding] *
                       weight[((filter * depth + d) * r + i) * s + j];
            }
          }
        }
      }
    }
    return y;
  }
};

TEST_CASE("convolutions and both their gradients", "[cpu]") {
  struct Case {
    std::string shape;
    Convolution convolution;
  };
  const std::vector<Case> cases = {
      {"n=2 c=3 h=9 w=7 k=4 r=3 s=3 stride=1 padding=1 groups=1", {2, 3, 9, 7, 4, 3, 3, 1, 1, 1}},
      {"n=1 c=2 h=11 w=10 k=3 r=5 s=3 stride=2 padding=2 groups=1", {1, 2, 11, 10, 3, 5, 3, 2, 2, 1}},
      {"n=3 c=4 h=5 w=6 k=6 r=1 s=1 stride=1 padding=0 groups=1", {3, 4, 5, 6, 6, 1, 1, 1, 0, 1}},
      {"n=1 c=4 h=6 w=6 k=4 r=3 s=3 stride=2 padding=0 groups=2", {1, 4, 6, 6, 4, 3, 3, 2, 0, 2}},
      {"n=1 c=2 h=2 w=2 k=2 r=3 s=3 stride=3 padding=2 groups=2", {1, 2, 2, 2, 2, 3, 3, 3, 2, 2}}};
  for (const auto& [shape, convolution] : cases) {
    const Convolution& f = convolution;
    for_each_way("convolution forward fp32 " + shape,
                 [&](const Named& of) { check_near(of.at("y"), f(of.at("x"), of.at("w")), 1e-4); });
    const std::size_t weights = f.k * (f.c / f.groups) * f.r * f.s, inputs = f.n * f.c * f.h * f.w;
    for_each_way("convolution backward-input fp32 " + shape, [&](const Named& of) {
      const auto forward = [&](const Values& x) { return f(x, of.at("w")); };
      check_near(of.at("dx"), differences(forward, Values(inputs), of.at("dy")), 1e-4);
    });
    for_each_way("convolution backward-weight fp32 " + shape, [&](const Named& of) {
      const auto forward = [&](const Values& w) { return f(of.at("x"), w); };
      check_near(of.at("dw"), differences(forward, Values(weights), of.at("dy")), 1e-4);
    });
  }
}

// A convolution whose unrolled image takes several blocks.
TEST_CASE("a convolution of several blocks", "[cpu]") {
  const Convolution f{1, 16, 60, 60, 2, 3, 3, 1, 1, 1};
  const std::string shape = "n=1 c=16 h=60 w=60 k=2 r=3 s=3 stride=1 padding=1 groups=1";
  for_each_way("convolution forward fp32 " + shape,
               [&](const Named& of) { check_near(of.at("y"), f(of.at("x"), of.at("w")), 1e-3); });
}

struct Attention {
  std::size_t batch, sequence, heads, kv_heads, size;
  bool causal;

  Values operator()(const Values& q, const Values& k, const Values& v) const {
    Values o(q.size());
    for (std::size_t head = 0; head < batch * heads; ++head) {
      const std::size_t keys = (head / heads * kv_heads + head % heads / (heads / kv_heads)) * sequence * size;
      for (std::size_t row = 0; row < sequence; ++row) {
        const std::size_t at = (head * sequence + row) * size, seen = causal ? row + 1 : sequence;
        Values weights(seen);
        double sum = 0;
        for (std::size_t key = 0; key < seen; ++key) {
          double score = 0;
          for (std::size_t d = 0; d < size; ++d) {
            score += q[at + d] * k[keys + key * size + d];
          }
          sum += weights[key] = std::exp(score / std::sqrt(static_cast<double>(size)));
        }
        for (std::size_t key = 0; key < seen; ++key) {
          for (std::size_t d = 0; d < size; ++d) {
            o[at + d] += weights[key] / sum * v[keys + key * size + d];
          }
        }
      }
    }
    return o;
  }
};

TEST_CASE("attention and its three gradients", "[cpu]") {
  const auto check = [](const std::string& shape, const Attention& f) {
    for_each_way("attention forward fp32 " + shape,
                 [&](const Named& of) { check_near(of.at("o"), f(of.at("q"), of.at("k"), of.at("v")), 1e-5); });
    for_each_way("attention backward-input fp32 " + shape, [&](const Named& of) {
      const Values &q = of.at("q"), &k = of.at("k"), &v = of.at("v"), &d = of.at("do");
      check_near(of.at("dq"), differences([&](const Values& x) { return f(x, k, v); }, q, d), 1e-4);
      check_near(of.at("dk"), differences([&](const Values& x) { return f(q, x, v); }, k, d), 1e-4);
      check_near(of.at("dv"), differences([&](const Values& x) { return f(q, k, x); }, v, d), 1e-4);
    });
  };
  check("batch=2 sequence=6 heads=2 kv_heads=1 head_size=3 causal=1", {2, 6, 2, 1, 3, true});
  check("batch=1 sequence=5 heads=4 kv_heads=4 head_size=2 causal=0", {1, 5, 4, 4, 2, false});
}

TEST_CASE("attention over several blocks of queries", "[cpu]") {
  const Attention f{1, 150, 2, 1, 4, true};
  for_each_way("attention forward fp32 batch=1 sequence=150 heads=2 kv_heads=1 head_size=4 causal=1",
               [&](const Named& of) { check_near(of.at("o"), f(of.at("q"), of.at("k"), of.at("v")), 1e-5); });
}

Values each(const Values& x, const std::function<double(double)>& f) {
  Values y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), f);
  return y;
}

TEST_CASE("operators element by element, and their gradients", "[cpu]") {
  const auto gelu = [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const auto relu = [](double x) { return std::max(x, 0.0); };
  for_each_way("relu forward fp32 rows=13 columns=5",
               [&](const Named& of) { check_near(of.at("y"), each(of.at("x"), relu), 1e-7); });
  for_each_way("relu backward-input fp32 rows=13 columns=5", [&](const Named& of) {
    const auto f = [&](const Values& x) { return each(x, relu); };
    check_near(of.at("dx"), differences(f, of.at("y"), of.at("dy")), 1e-6); // the output's sign is the input's
  });
  for_each_way("gelu forward fp32 rows=37 columns=61",
               [&](const Named& of) { check_near(of.at("y"), each(of.at("x"), gelu), 2e-6); });
  for_each_way("gelu backward-input fp32 rows=7 columns=5", [&](const Named& of) {
    const auto f = [&](const Values& x) { return each(x, gelu); };
    check_near(of.at("dx"), differences(f, of.at("x"), of.at("dy")), 1e-5);
  });
  for_each_way("add forward fp32 rows=3 columns=11", [](const Named& of) {
    Values want = of.at("x");
    std::transform(want.begin(), want.end(), of.at("y").begin(), want.begin(), std::plus<>());
    check_near(of.at("z"), want, 1e-6);
  });
  for_each_way("copy forward fp32 rows=3 columns=11", [](const Named& of) { CHECK(of.at("y") == of.at("x")); });
  for_each_way("sum forward fp32 rows=31 columns=17", [](const Named& of) {
    double sum = 0;
    for (const double x : of.at("x")) {
      sum += x;
    }
    check_near(of.at("y"), {sum}, 1e-4);
  });
}

TEST_CASE("what transformers run, and its gradients", "[cpu]") {
  const std::string shape = " fp32 rows=5 columns=6";
  constexpr std::size_t kRows = 5, kColumns = 6;
  const auto rms = [](const Values& x, const Values& scale) {
    Values y(x.size());
    for (std::size_t row = 0; row < kRows; ++row) {
      double squares = 0;
      for (std::size_t i = row * kColumns; i < (row + 1) * kColumns; ++i) {
        squares += x[i] * x[i] / kColumns;
      }
      for (std::size_t i = 0; i < kColumns; ++i) {
        y[row * kColumns + i] = x[row * kColumns + i] / std::sqrt(squares + 1e-5) * scale[i];
      }
    }
    return y;
  };
  for_each_way("rms-norm forward" + shape,
               [&](const Named& of) { check_near(of.at("y"), rms(of.at("x"), of.at("scale")), 1e-5); });
  for_each_way("rms-norm backward-input" + shape, [&](const Named& of) {
    const Values &x = of.at("x"), &scale = of.at("scale"), &dy = of.at("dy");
    check_near(of.at("dx"), differences([&](const Values& in) { return rms(in, scale); }, x, dy), 1e-4);
    check_near(of.at("dscale"), differences([&](const Values& in) { return rms(x, in); }, scale, dy), 1e-4);
  });
  const auto gated = [](const Values& gate, const Values& up) {
    Values y(gate.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    }
    return y;
  };
  for_each_way("swiglu forward" + shape,
               [&](const Named& of) { check_near(of.at("y"), gated(of.at("gate"), of.at("up")), 1e-6); });
  for_each_way("swiglu backward-input fp32 rows=37 columns=61", [&](const Named& of) {
    const Values &gate = of.at("gate"), &up = of.at("up"), &dy = of.at("dy");
    Values d_gate, d_up;
    for (std::size_t i = 0; i < gate.size(); ++i) { // each element by itself
      const auto one = [&](double g, double u) { return g / (1 + std::exp(-g)) * u * dy[i]; };
      d_gate.push_back((one(gate[i] + 1e-4, up[i]) - one(gate[i] - 1e-4, up[i])) / 2e-4);
      d_up.push_back(one(gate[i], 1));
    }
    check_near(of.at("dgate"), d_gate, 1e-5);
    check_near(of.at("dup"), d_up, 1e-5);
  });
  const auto losses = [](const Values& x) {
    Values loss;
    for (std::size_t row = 0; row < kRows; ++row) {
      double sum = 0;
      for (std::size_t i = row * kColumns; i < (row + 1) * kColumns; ++i) {
        sum += std::exp(x[i]);
      }
      loss.push_back(std::log(sum) - x[row * kColumns + row * std::size_t{2654435769} % kColumns]);
    }
    return loss;
  };
  for_each_way("cross-entropy forward" + shape,
               [&](const Named& of) { check_near(of.at("loss"), losses(of.at("x")), 1e-5); });
  for_each_way("cross-entropy backward-input" + shape, [&](const Named& of) {
    check_near(of.at("dx"), differences(losses, of.at("x"), Values(kRows, 1.0 / kRows)), 1e-5);
  });
}

TEST_CASE("a rotary embedding turns pairs by the angles of their position, and backward turns them back", "[cpu]") {
  constexpr std::size_t kRows = 70, kHalf = 3; // rows of three positions
  for (const std::string pass : {"forward", "backward-input"}) {
    for_each_way("rotary " + pass + " fp32 rows=70 columns=6", [&](const Named& of) {
      const Values& x = of.at("x");
      Values y(x.size());
      for (std::size_t row = 0; row < kRows; ++row) {
        for (std::size_t i = 0; i < kHalf; ++i) {
          const double cosine = of.at("cosine")[row / 32 * kHalf + i];
          const double sine = (pass == "forward" ? 1 : -1) * of.at("sine")[row / 32 * kHalf + i];
          const std::size_t left = row * 2 * kHalf + i, right = left + kHalf;
          y[left] = x[left] * cosine - x[right] * sine;
          y[right] = x[right] * cosine + x[left] * sine;
        }
      }
      check_near(of.at("y"), y, 1e-5);
    });
  }
}

TEST_CASE("a kernel that the processor lacks is refused", "[cpu]") {
  Arena arena(1 << 20);
  CHECK_THROWS_WITH(run_kernel("clip forward fp32 rows=3 columns=5", best_routines(), 1, arena),
                    "the processor has no such kernel here");
}

TEST_CASE("dropout drops an eighth, and its gradient follows the mask", "[cpu]") {
  constexpr double kScale = 1 / (1 - 0.125);
  const auto dropped = [](const Values& values) { return std::count(values.begin(), values.end(), 0.0); };
  for_each_way("dropout forward fp32 rows=100 columns=80", [&](const Named& of) {
    const Values &x = of.at("x"), &y = of.at("y");
    const double share = static_cast<double>(dropped(y)) / static_cast<double>(y.size());
    CHECK(std::abs(share - 0.125) < 5 * std::sqrt(0.125 * 0.875 / 8000)); // five deviations of a binomial
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE((y[i] == 0 || std::abs(y[i] - x[i] * kScale) < 1e-6));
    }
  });
  for_each_way("dropout backward-input fp32 rows=100 columns=80",
               [&](const Named& of) { CHECK(dropped(of.at("dx")) == Approx(1000).margin(150)); });
}

// Rows of x, each or each column normalized by its own mean and deviation.
Values normalize(const Values& x, std::size_t columns, bool by_rows, const Values& scale, const Values& shift) {
  const std::size_t rows = x.size() / columns, groups = by_rows ? rows : columns, members = x.size() / groups;
  Values y(x.size());
  for (std::size_t group = 0; group < groups; ++group) {
    const auto at = [&](std::size_t i) { return by_rows ? group * columns + i : i * columns + group; };
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < members; ++i) {
      mean += x[at(i)] / static_cast<double>(members);
    }
    for (std::size_t i = 0; i < members; ++i) {
      variance += (x[at(i)] - mean) * (x[at(i)] - mean) / static_cast<double>(members);
    }
    for (std::size_t i = 0; i < members; ++i) {
      const std::size_t column = by_rows ? i : group;
      y[at(i)] = (x[at(i)] - mean) / std::sqrt(variance + 1e-5) * scale[column] + shift[column];
    }
  }
  return y;
}

TEST_CASE("normalizations and the gradients of input, scale and shift", "[cpu]") {
  for (const bool by_rows : {true, false}) {
    const std::string op = by_rows ? "layer-norm" : "batch-norm";
    constexpr std::size_t kColumns = 9;
    for_each_way(op + " forward fp32 rows=11 columns=9", [&](const Named& of) {
      check_near(of.at("y"), normalize(of.at("x"), kColumns, by_rows, of.at("scale"), of.at("shift")), 1e-4);
    });
    for_each_way(op + " backward-input fp32 rows=11 columns=9", [&](const Named& of) {
      const Values &x = of.at("x"), &scale = of.at("scale"), &shift = of.at("shift"), &dy = of.at("dy");
      const auto of_x = [&](const Values& v) { return normalize(v, kColumns, by_rows, scale, shift); };
      const auto of_scale = [&](const Values& v) { return normalize(x, kColumns, by_rows, v, shift); };
      const auto of_shift = [&](const Values& v) { return normalize(x, kColumns, by_rows, scale, v); };
      check_near(of.at("dx"), differences(of_x, x, dy), 1e-3);
      check_near(of.at("dscale"), differences(of_scale, scale, dy), 1e-3);
      check_near(of.at("dshift"), differences(of_shift, shift, dy), 1e-3);
    });
  }
}

TEST_CASE("softmax and its gradient", "[cpu]") {
  constexpr std::size_t kColumns = 7;
  const auto softmax = [](const Values& x) {
    Values y(x.size());
    for (std::size_t row = 0; row < x.size(); row += kColumns) {
      double sum = 0;
      for (std::size_t i = 0; i < kColumns; ++i) {
        sum += std::exp(x[row + i]);
      }
      for (std::size_t i = 0; i < kColumns; ++i) {
        y[row + i] = std::exp(x[row + i]) / sum;
      }
    }
    return y;
  };
  for_each_way("softmax forward fp32 rows=5 columns=7",
               [&](const Named& of) { check_near(of.at("y"), softmax(of.at("x")), 1e-6); });
  for_each_way("softmax backward-input fp32 rows=5 columns=7",
               [&](const Named& of) { check_near(of.at("dx"), differences(softmax, of.at("x"), of.at("dy")), 1e-5); });
}

TEST_CASE("embedding reads and adds the same rows", "[cpu]") {
  std::vector<std::size_t> rows; // found in the table
  for_each_way("embedding forward fp32 rows=6 columns=3", [&](const Named& of) {
    const Values &table = of.at("table"), &y = of.at("y");
    rows.clear();
    for (std::size_t i = 0; i < y.size(); i += 3) {
      const auto at = std::search(table.begin(), table.end(), y.begin() + static_cast<std::ptrdiff_t>(i),
                                  y.begin() + static_cast<std::ptrdiff_t>(i) + 3);
      REQUIRE(at != table.end());
      rows.push_back(static_cast<std::size_t>(at - table.begin()) / 3);
    }
  });
  for_each_way("embedding backward-weight fp32 rows=6 columns=3", [&](const Named& of) {
    Values want(of.at("dtable").size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t column = 0; column < 3; ++column) {
        want[rows[i] * 3 + column] += of.at("dy")[i * 3 + column];
      }
    }
    check_near(of.at("dtable"), want, 1e-6);
  });
}

// Kingma and Ba 2015 without bias correction, from nothing.
TEST_CASE("one step of Adam", "[cpu]") {
  for_each_way("adam forward fp32 rows=9 columns=7", [](const Named& of) {
    Values weight = of.at("g");
    for (double& g : weight) {
      const double first = 0.1 * g, second = 0.001 * g * g;
      g = -1e-4 * first / (std::sqrt(second) + 1e-8);
    }
    check_near(of.at("w"), weight, 1e-8);
  });
}

TEST_CASE("kernels that cannot run say why", "[cpu]") {
  Arena arena(std::int64_t{16} << 20);
  const auto why_not = [&](const std::string& text) -> std::string {
    arena.clear();
    try {
      make_work(gpu::parse_kernel(text), {best_routines(), arena, 1});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(why_not("gemm forward bf16 batch=1 m=1 n=1 k=1") == "the processor computes in fp32 here");
  CHECK(why_not("gemm forward fp32 batch=1 m=4096 n=1 k=1024") == "its operands take more than 16 MiB");
  CHECK(why_not("gemm forward fp32 batch=1 m=2048 n=1 k=1024").empty());
  CHECK(why_not("sum backward-input fp32 rows=1 columns=1") == "it has no such pass");
  CHECK(why_not("convolution forward fp32 n=1 c=1 h=2 w=2 k=1 r=5 s=5 stride=1 padding=0 groups=1") ==
        "its window is larger than the image");
}

TEST_CASE("operands are normally distributed and do not change", "[cpu]") {
  Arena arena(std::int64_t{16} << 20);
  constexpr Index kCount = 2'000'000; // more than are drawn
  const float* values = arena.random(kCount);
  double sum = 0, squares = 0, fourth = 0;
  for (Index i = 0; i < kCount; ++i) {
    const double x = static_cast<double>(values[i]);
    sum += x / kCount;
    squares += x * x / kCount;
    fourth += x * x * x * x / kCount;
  }
  CHECK(std::abs(sum) < 5 / std::sqrt(1e6));
  CHECK(squares == Approx(1).epsilon(0.01));
  CHECK(fourth == Approx(3).epsilon(0.02));
  arena.clear();
  CHECK(arena.random(10) == values);
}

TEST_CASE("a team shares out all items once", "[cpu]") {
  for (const int threads : {1, 2, 3}) {
    Team team(threads);
    std::vector<int> visits(10), finished(1);
    Work work;
    work.items = 10;
    work.run = [&](int, Index begin, Index end) {
      for (Index i = begin; i < end; ++i) {
        ++visits[static_cast<std::size_t>(i)];
      }
    };
    work.finish = [&] { ++finished[0]; };
    const Reading reading = team.run(work, 5);
    CHECK(visits == std::vector<int>(10, 5));
    CHECK(finished[0] == 5);
    CHECK(reading.cpu > 0);
    CHECK(reading.wall > 0);
  }
}

} // namespace
} // namespace stagecraft::cpu
