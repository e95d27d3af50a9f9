// Modules: one that is there is loaded wherever a test replays on SimGrid or reads ONNX.
// SPDX-License-Identifier: Apache-2.0
#include "sim/base/error.hpp"
#include "sim/base/process/module.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

TEST_CASE("a module that lies nowhere is refused with the places where it may lie", "[base]") {
  CHECK_THROWS_AS(find_in_module("stagecraft_none.so", "f"), InputError);
  CHECK_THROWS_WITH(find_in_module("stagecraft_none.so", "f"),
                    Catch::StartsWith("stagecraft_none.so: no such part of the program in /") &&
                        Catch::Contains("/tests/base/modules or /") &&
                        Catch::EndsWith("build it with ./dev build, or copy the folder modules/ beside it"));
}

TEST_CASE("what is no module, or one without the function, is refused with what the system says", "[base]") {
  CHECK_THROWS_WITH(find_in_module("../test_base", "f"),
                    Catch::StartsWith("../test_base: this part of the program cannot be loaded: ") &&
                        Catch::EndsWith("; allowed: the one that was built with the program"));
  CHECK_THROWS_WITH(find_in_module("stagecraft_simgrid.so", "stagecraft_no_such_function"),
                    Catch::Contains("undefined symbol: stagecraft_no_such_function"));
  CHECK(module_function<void()>("stagecraft_simgrid.so", "stagecraft_replay_simgrid") != nullptr);
}

} // namespace
} // namespace stagecraft
