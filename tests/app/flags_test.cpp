// The command line as commands declare it: where values go, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <sstream>

#include "sim/app/common/flags.hpp"
#include "tests/catch.hpp"

namespace stagecraft {
namespace {

using Words = std::vector<std::string>;

struct Ending {
  std::optional<ExitStatus> status;
  std::string printed; ///< on stdout and stderr
};

// Takes what is printed on stdout and stderr, until it goes.
struct Capture {
  Capture() : out(std::cout.rdbuf(printed.rdbuf())), err(std::cerr.rdbuf(printed.rdbuf())) {}
  ~Capture() {
    std::cout.rdbuf(out);
    std::cerr.rdbuf(err);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::ostringstream printed;
  std::streambuf *out, *err;
};

// Reads the words, which follow the program's name.
Ending read(CommandLine& line, Words words) {
  words.insert(words.begin(), "program");
  const Capture capture;
  const std::optional<ExitStatus> status = line.read(words);
  return {status, capture.printed.str()};
}

// A command `go` with the one flag --x, or --x and the like.
template <class T> Ending read_flag(T& target, const Value& value, Words words) {
  CommandLine line("program", "A program.", "program 1");
  line.flags().command("go", "goes").add("--x", &target, "what it is", value);
  words.insert(words.begin(), "go");
  return read(line, words);
}

TEST_CASE("the value of a flag goes to its target, which keeps its own without the flag", "[app]") {
  int number = 3;
  CHECK_FALSE(read_flag(number, {}, {}).status);
  CHECK(number == 3);
  CHECK_FALSE(read_flag(number, {}, {"--x", "5"}).status);
  CHECK(number == 5);
  double real = 0;
  CHECK_FALSE(read_flag(real, {}, {"--x=2.5"}).status);
  CHECK(real == 2.5);
  std::string text;
  CHECK_FALSE(read_flag(text, {}, {"--x", "a,b"}).status);
  CHECK(text == "a,b");
  bool set = false;
  CHECK_FALSE(read_flag(set, {}, {"--x"}).status);
  CHECK(set);
}

TEST_CASE("what is refused is quoted in words that a terminal can bear", "[app]") {
  int number = 0;
  const Ending ending = read_flag(number, {}, {"--x", "\x1b[2J\xe2\x80\xae"});
  CHECK(ending.status == kBadInput);
  CHECK(ending.printed.find("\\x1b[2J\\u202e") != std::string::npos);
  CHECK(ending.printed.find('\x1b') == std::string::npos);
}

TEST_CASE("an argument that is not UTF-8 is refused, in words", "[app]") {
  std::string text;
  CHECK_THROWS_WITH(read_flag(text, {}, {"--x", "a\xff\x1b"}),
                    "command line: argument 3 is not UTF-8: 'a\\xff\\x1b'; allowed: UTF-8");
}

TEST_CASE("a dash stands for stdout where a flag says so", "[app]") {
  std::string file = "before";
  CHECK_FALSE(read_flag(file, {.dash = true}, {"--x", "-"}).status);
  CHECK(file.empty());
  CHECK_FALSE(read_flag(file, {.dash = true}, {"--x", "./-"}).status);
  CHECK(file == "./-");
  CHECK_FALSE(read_flag(file, {}, {"--x", "-"}).status);
  CHECK(file == "-");
}

TEST_CASE("a flag of several values may be repeated, and takes commas where it says so", "[app]") {
  std::vector<std::string> texts;
  CHECK_FALSE(read_flag(texts, {}, {"--x", "a,b", "--x", "c"}).status);
  CHECK(texts == std::vector<std::string>{"a,b", "c"});
  std::vector<int> numbers;
  CHECK_FALSE(read_flag(numbers, {.check = whole_number(1, 9), .commas = true}, {"--x", "1,2", "--x", "3"}).status);
  CHECK(numbers == std::vector<int>{1, 2, 3});
  std::vector<double> reals = {7};
  CHECK_FALSE(read_flag(reals, {.commas = true}, {"--x", "0.5,2"}).status);
  CHECK(reals == std::vector<double>{0.5, 2});
}

TEST_CASE("a flag may stand alone where it has a value for that", "[app]") {
  std::string text;
  const Value value{.alone = "100"};
  CHECK_FALSE(read_flag(text, value, {"--x"}).status);
  CHECK(text == "100");
  CHECK_FALSE(read_flag(text, value, {"--x", "7"}).status);
  CHECK(text == "7");
  CHECK(read_flag(text, {}, {"--x"}).status == kBadInput);
}

TEST_CASE("a value that is not allowed ends the program, with the flag and what is allowed", "[app]") {
  int number = 0;
  const auto refused = [&](const char* word) {
    const Ending ending = read_flag(number, {.check = whole_number(1, 10)}, {"--x", word});
    CHECK(ending.status == kBadInput);
    CHECK_THAT(ending.printed, Catch::StartsWith("error: --x: "));
    CHECK(number == 0);
  };
  refused("0");
  refused("11");
  refused("010"); // no number of base 8
  refused("2.5");
  refused("x");
  CHECK(read_flag(number, {.required = true}, {}).status == kBadInput);
  CHECK(read_flag(number, {}, {"--y", "1"}).status == kBadInput);
}

TEST_CASE("checks say what they allow", "[app]") {
  const Check words = one_of({"table", "json"});
  CHECK(words.help == "{table,json}");
  CHECK(words.why_not("json").empty());
  CHECK(words.why_not("xml") == "unknown value 'xml'; known: table, json");
  CHECK(words.why_not("JSON") == "unknown value 'JSON'; did you mean 'json'? known: table, json");
  const Check whole = whole_number(1, 8);
  CHECK(whole.help == "INT in [1 - 8]");
  CHECK(whole.why_not("8").empty());
  const Check either_one = either(one_of({"auto"}), whole);
  CHECK(either_one.help == "({auto}) OR (INT in [1 - 8])");
  CHECK(either_one.why_not("auto").empty());
  CHECK(either_one.why_not("3").empty());
  CHECK_FALSE(either_one.why_not("9").empty());
  const Check share = number(0, 0.5);
  CHECK(share.help == "FLOAT in [0 - 0.5]");
  CHECK(share.why_not("0.5").empty());
  CHECK_FALSE(share.why_not("0.6").empty());
  CHECK_FALSE(share.why_not("half").empty());
}

TEST_CASE("the help shows each flag with its value, check, default and text", "[app]") {
  int number = 3;
  const Ending help = read_flag(number, {.name = "N", .check = whole_number(1, 8), .shows_default = true}, {"--help"});
  CHECK(help.status == kDone);
  CHECK_THAT(help.printed, Catch::Contains("--x N:INT in [1 - 8]=3"));
  CHECK_THAT(help.printed, Catch::Contains("what it is"));
}

TEST_CASE("a command knows which of its flags were given, and allows one command below it", "[app]") {
  CommandLine line("program", "A program.", "program 1");
  bool quiet = false;
  int number = 1;
  Flags go = line.flags().command("go", "goes");
  go.add("-q,--quiet", &quiet, "says nothing");
  go.add("--number", &number, "a number");
  go.command("here", "goes here");
  go.command("there", "goes there");
  go.allow_one_command();
  CHECK_FALSE(read(line, {"go", "-q", "here"}).status);
  CHECK(go.given_flags() == std::vector<std::string>{"--quiet"});
  CHECK_FALSE(read(line, {"go"}).status);
  CHECK(go.given_flags().empty());
  CHECK(read(line, {"go", "here", "there"}).status == kBadInput);
}

TEST_CASE("a program needs one command, and knows which was given", "[app]") {
  CommandLine line("program", "A program.", "program 1");
  std::string file;
  Flags go = line.flags().command("go", "goes", "Moves");
  go.add("FILE", &file, "a file", {.required = true});
  const Flags deep = go.command("deep", "goes deep");
  const Flags stop = line.flags().command("stop", "stops", "Moves");
  CHECK(read(line, {}).status == kBadInput);
  CHECK(read(line, {"fly"}).status == kBadInput);
  CHECK(read(line, {"go"}).status == kBadInput);
  CHECK_FALSE(read(line, {"go", "a.txt"}).status);
  CHECK(file == "a.txt");
  CHECK(go.given());
  CHECK_FALSE(deep.given());
  CHECK_FALSE(stop.given());
  CHECK_FALSE(read(line, {"go", "a.txt", "deep"}).status);
  CHECK(deep.given());
  const Ending version = read(line, {"--version"});
  CHECK(version.status == kDone);
  CHECK(version.printed == "program 1\n");
  CHECK_THAT(read(line, {"--help"}).printed, Catch::Contains("Moves:\n  go "));
}

} // namespace
} // namespace stagecraft
