#include "harness/project/ledger/record_lines.h"

#include <fmt/format.h>

#include <map>

#include "harness/base/text.h"
#include "harness/model/fields.h"
#include "harness/model/upgrade.h"
#include "harness/project/ledger/judge_key.h"

namespace capstone {
namespace {

std::string newer_schema(int schema) {
  return "written by a newer capstone (schema_version " + std::to_string(schema) + ", this one reads up to " +
         std::to_string(kLedgerSchema) + "); update capstone to read it";
}

// The texts of a body that no structure describes.
void check_texts(const Json& body, std::initializer_list<const char*> keys) {
  std::string ignored;
  for (const char* key : keys) read(body, key, ignored);
}

Content content_of(const Record& record) {
  const Json& body = record.body;
  if (!body.is_object() && !body.is_null()) throw WrongType("body", "an object", body);
  Content content;
  if (record.kind == "prediction") content.prediction = body.get<Prediction>();
  if (record.kind == "measurement") content.measurement = body.get<Measurement>();
  if (record.kind == "attempt") content.attempt = body.get<Attempt>();
  if (record.kind == "withdrawal") content.withdrawal = body.get<Withdrawal>();
  if (record.kind == "explanation") content.explanation = body.get<Explanation>();
  if (record.kind == "hint") content.hint = body.get<TakenHint>();
  if (record.kind == "profile") check_texts(body, {"candidate", "version", "source_sha256"});
  if (record.kind == "together") check_texts(body, {"from", "source_sha256"});
  if (record.kind == "search") check_texts(body, {"run", "search", "provider", "best", "ended"});
  if (record.kind == "checkin") check_texts(body, {"stuck"});
  if (record.kind == "init")
    check_texts(body, {"problem_id", "problem_digest", "started_from", "kernel_sha256"});
  if (content.measurement && trim(content.measurement->version).empty())
    throw std::invalid_argument("version must be v1, v2 …, attempt-1 … or t1 …, not empty");
  return content;
}

// Verifies the signatures of a ledger. One that does not verify says that the record was changed after it was
// signed; a signature twice says that one judgement was recorded twice.
class Signatures {
 public:
  std::optional<std::string> fault(const Line& line, const std::string& text, const Record& record) {
    if (!record.signature) return std::nullopt;
    if (!is_signed_by(record.signature->key, record.signature->value, text))
      return fmt::format("its signature (key {}) does not fit: the record was changed after it was signed",
                         record.signature->key.substr(0, kShortKey));
    auto [first, fresh] = lines_.emplace(record.signature->value, line.number);
    if (!fresh) return fmt::format("the same signed judgement as on line {}", first->second);
    return std::nullopt;
  }

 private:
  std::map<std::string, std::size_t> lines_;
};

// Fills in what the line holds.
void take(RecordLine& into, ChainFollower& chain, Signatures& signatures) {
  const Line& line = into.line;
  auto json = parse_strictly(line.text);
  const auto header = json ? header_of(line.text) : std::nullopt;
  if (header) {
    std::optional<std::string> broken;
    into.seq = header->seq;
    into.link = chain.follow(line, *header, broken);
    if (header->schema > kLedgerSchema) {
      into.damage.push_back(newer_schema(header->schema));
      return;
    }
    if (broken) into.damage.push_back(*broken);
  }
  if (!json) {
    into.damage.push_back(is_whole_json(line.text) ? "not a record: " + json.error().what
                          : line.ended             ? "not a record; the line is damaged"
                                                   : "torn: the last line is incomplete");
    return;
  }
  std::string kind = header ? printable(header->kind) : "header";
  try {
    if (!json->is_object()) throw WrongType("a line", "an object", *json);
    const std::string text = json->contains("signature") ? signed_text(*json) : std::string();
    upgrade(*json);
    int schema = 0;
    read(*json, "schema_version", schema);
    auto record = json->get<Record>();
    if (!header) throw std::invalid_argument("seq is not the number of a record");
    into.content = content_of(record);
    if (auto fault = signatures.fault(line, text, record)) {
      into.damage.push_back(*fault);
      record.signature.reset();
    }
    into.record = std::move(record);
  } catch (const std::exception& error) {
    into.content = {};
    into.damage.push_back(fmt::format("its {} cannot be read: {}", kind, error.what()));
  }
}

}  // namespace

std::vector<RecordLine> record_lines(std::string_view bytes) {
  std::vector<RecordLine> lines;
  ChainFollower chain;
  Signatures signatures;
  for (const Line& line : lines_of(bytes)) {
    lines.push_back({line, {}, 0, {}, {}, {}});
    take(lines.back(), chain, signatures);
  }
  return lines;
}

std::string at_line(const Line& line, const std::string& text) {
  return "line " + std::to_string(line.number) + ": " + text;
}

}  // namespace capstone
