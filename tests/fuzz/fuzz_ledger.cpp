// Any bytes for a ledger: reading never fails, says what is damaged, and gives the same answer twice.
#include "harness/base/files.h"
#include "harness/project/ledger/ledger.h"
#include "tests/fuzz/driver.h"
#include "tests/model/scratch.h"
#include "tests/project/samples.h"

namespace {

using namespace capstone;

std::string sample_ledger() {
  const testing::Scratch scratch;
  const auto ledger = scratch.path() / "ledger.jsonl";
  for (const auto& [kind, body] :
       std::vector<std::pair<std::string, Json>>{{"init", Json{{"problem", "softmax"}}},
                                                 {"measurement", Json(test::measurement("v1"))},
                                                 {"checkin", Json::object()},
                                                 {"hint", Json(TakenHint{1, 3, "f"})}})
    if (auto written = append_record(ledger, kind, body, "0123456789abcdef"); !written)
      throw std::runtime_error(written.error().what);
  return *read_file(ledger);
}

}  // namespace

capstone::fuzz::Target capstone::fuzz::make_target() {
  static const testing::Scratch scratch;
  Target target;
  target.name = "ledger";
  target.corpus = {sample_ledger(), "\n", "{}\n"};
  target.tokens = {"{",
                   "}",
                   "[",
                   "]",
                   ",",
                   ":",
                   "\"",
                   "\n",
                   "null",
                   "true",
                   "-1",
                   "1e999",
                   "18446744073709551615",
                   "\\u0000",
                   "\xff",
                   "\"seq\":",
                   "\"kind\":",
                   "\"measurement\"",
                   "\"previous\":",
                   "\"schema\":99,",
                   "\"time\":",
                   "\"body\":[",
                   "\"arms\":[{}],",
                   "\"explanation\"",
                   "\"attempt\"",
                   "\"prediction\"",
                   "\"import\"",
                   "\"hint\"",
                   "\"level\":",
                   "[[[[[[[["};
  target.run = [](const std::string& text) {
    const auto ledger = scratch.write("ledger.jsonl", text);
    auto view = read_ledger(ledger);
    expect(view.has_value(), "what can be read is read");
    for (const char* candidate : {"human", "llm"}) {
      for (const Measurement* m : view->versions(candidate))
        (void)Json(*m).dump(-1, ' ', false, Json::error_handler_t::replace);
      (void)view->best(candidate);
    }
    auto again = read_ledger(ledger);
    expect(again && again->damage == view->damage && again->records.size() == view->records.size(),
           "the same view twice");
    expect(verify_ledger(ledger, scratch.path() / "sources").has_value(), "a list of findings");
  };
  return target;
}
