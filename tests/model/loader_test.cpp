#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/model/bound.h"
#include "harness/model/problem.h"
#include "tests/model/scratch.h"

namespace capstone {
namespace {

using testing::kDefinition;
using testing::Scratch;

Result<Problem> load(const std::string& text) {
  Scratch scratch;
  scratch.write("problem.yaml", text);
  auto problem = load_problem(scratch.path());
  if (!problem) {  // the name of the scratch folder differs in every run
    Error error = problem.error();
    error.where = replace_all(error.where, scratch.path().string(), "DIR");
    return fail(error);
  }
  return problem;
}

/// "DIR/problem.yaml:line:column" of the first occurrence of `mark` in `text`.
std::string place_of(const std::string& text, const std::string& mark) {
  const std::size_t at = text.find(mark);
  EXPECT_NE(at, std::string::npos) << mark;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const std::size_t start = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  return fmt::format("DIR/problem.yaml:{}:{}", line, at - (start == std::string::npos ? 0 : start + 1) + 1);
}

TEST(Loader, VariationsOutsideTheDomainHaveAReason) {
  EXPECT_EQ(load(kDefinition + "outside_domain: {x10: exp overflows in half}\n")->outside_domain.at("x10"),
            "exp overflows in half");
  EXPECT_NE(load(kDefinition + "outside_domain: {x100: no}\n").error().hint.find("`x10`"), std::string::npos);
}

TEST(Loader, ReadsEveryField) {
  auto loaded = load(kDefinition);
  ASSERT_TRUE(loaded) << render(loaded.error());
  const Problem& p = *loaded;
  EXPECT_EQ(p.id, "scale_rows");
  EXPECT_EQ(p.title, "Scale the rows");
  EXPECT_EQ(p.tier, 2);
  EXPECT_EQ(p.sessions, (std::vector<std::string>{"L3", "W4"}));
  EXPECT_EQ(p.bottleneck, "memory");
  EXPECT_EQ(p.signature.size(), 12u);
  EXPECT_EQ(p.symbols, (std::vector<std::string>{"rows", "cols", "groups"}));
  EXPECT_EQ(p.check.size(), 2u);
  EXPECT_EQ(to_string(p.measure), "rows=1024, cols=4096, groups=4");
  EXPECT_EQ(p.published.at(0).first, "paper");
  EXPECT_EQ(p.vary.at("cols").multiple_of, 4);
  EXPECT_EQ(p.vary.at("groups").one_of, (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(p.where.size(), 2u);
  EXPECT_DOUBLE_EQ(p.tolerance.rtol, 1e-4);
  EXPECT_EQ(p.baselines.at(1).name, "eager");
  EXPECT_EQ(p.arch, "sm_80");
  EXPECT_TRUE(p.graded);
  EXPECT_EQ(p.link, std::vector<std::string>{"cublas"});
  EXPECT_EQ(p.because.count("mean"), 1u);
  EXPECT_EQ(p.digest.size(), 64u);
}

TEST(Loader, ReadsEveryInit) {
  const Problem p = *load(kDefinition);
  EXPECT_EQ(std::get<InitNormal>(p.find("x")->init).std, 1);
  EXPECT_EQ(std::get<InitUniform>(p.find("half")->init).low, -1);
  EXPECT_EQ(std::get<InitPermutation>(p.find("index")->init).of.text, "rows");
  EXPECT_EQ(std::get<InitOffsets>(p.find("start")->init).segments.text, "groups");
  EXPECT_EQ(std::get<InitInteger>(p.find("mask")->init).max, 1);
  EXPECT_EQ(std::get<InitChoice>(p.find("kind")->init).values, (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(std::get<InitGenerator>(p.find("pages")->init).name, "page_table");
  EXPECT_EQ(p.find("w")->python, "norm.weight");
  EXPECT_EQ(p.find("nothing"), nullptr);
}

TEST(Loader, ReadsTheInitsOfServing) {
  std::string text = kDefinition;
  const std::pair<const char*, const char*> changes[] = {
      {"{permutation: {of: rows}}", "{lengths: {low: 0, high: 2 * cols}}"},
      {"{offsets: {total: rows, segments: groups}}", "{counts: {total: rows}}"},
      {"[rows], init: {generator: page_table}", "[rows, 2], init: {top_k: {of: cols, least: 0}}"},
      {"{uniform: {low: -1, high: 1}}", "{pages: {table: pages, lengths: index}}"}};
  for (const auto& [from, to] : changes) text = replace_all(text, from, to);
  const auto p = load(text);
  ASSERT_TRUE(p) << render(p.error());
  EXPECT_EQ(std::get<InitLengths>(p->find("index")->init).high.text, "2 * cols");
  EXPECT_EQ(std::get<InitCounts>(p->find("start")->init).total.text, "rows");
  EXPECT_EQ(std::get<InitTopK>(p->find("pages")->init).of.text, "cols");
  EXPECT_EQ(std::get<InitPages>(p->find("half")->init).table, "pages");
}

// Imported problems: the reference is the oracle, shapes may be fixed, a tensor may be a single number.
TEST(Loader, WhereTheOracleIsTheReferenceShapesMayBeFixedAndNothingVaries) {
  const std::string definition = R"(schema: 1
id: kb1_1_loss
title: A loss
tier: 1
sessions: []
expect: nothing yet
signature:
  - {name: x, role: input, dtype: f32, shape: [33, 7]}
  - {name: mask, role: input, dtype: u8, shape: [33], init: {integer: {min: 0, max: 1}}, python: bool}
  - {name: w, role: parameter, dtype: f32, shape: [7], python: layers.0.weight}
  - {name: factor, role: scalar, dtype: f32, value: "2.5", python: forward}
  - {name: y, role: output, dtype: f32, shape: []}
sizes:
  check: [{}]
  vary: {}
  measure: {}
  emulate: {}
oracle: reference.py
tolerance: {rtol: 1.0e-4, atol: 1.0e-4}
cost: {flops: 231, bytes: 924 + 4}
precision: fp32
baselines: [eager, compile]
)";
  const auto p = load(definition);
  ASSERT_TRUE(p) << render(p.error());
  EXPECT_TRUE(p->oracle_is_reference);
  EXPECT_TRUE(p->symbols.empty());
  EXPECT_TRUE(p->vary.empty());
  EXPECT_TRUE(p->find("y")->shape.empty());
  EXPECT_EQ(elements_at(*p->find("y"), p->measure).value(), 1);
  EXPECT_EQ(p->find("w")->python, "layers.0.weight");
  EXPECT_EQ(p->find("mask")->python, "bool");
  EXPECT_EQ(p->find("factor")->python, "forward");
  EXPECT_NE(describe_contract(*p).find("reference.py in float64"), std::string::npos);
  EXPECT_NE(launch_header(*p).find("float* y /* [] output */"), std::string::npos) << launch_header(*p);
  const auto without = load(replace_all(definition, "oracle: reference.py\n", ""));
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().what, "the signature has no size symbol");
  EXPECT_EQ(load(replace_all(definition, "reference.py", "reference.cpp")).error().what,
            "oracle cannot be `reference.cpp`");
}

TEST(Loader, ShapesAndCostsFollowTheSizes) {
  const Problem p = *load(kDefinition);
  EXPECT_EQ(*shape_at(*p.find("x"), p.emulate), (std::vector<std::int64_t>{16, 128}));
  EXPECT_EQ(*shape_at(*p.find("start"), p.emulate), std::vector<std::int64_t>{3});
  EXPECT_EQ(cost_at(p, p.emulate)->flops, 3 * 16 * 64);
  EXPECT_EQ(cost_at(p, p.emulate)->bytes, 4 * (3 * 16 * 64 + 64));
  EXPECT_DOUBLE_EQ(p.find("width")->value->evaluate(p.emulate).value(), 16);
  EXPECT_TRUE(*admissible(p, p.emulate));
  EXPECT_FALSE(*admissible(p, {{"rows", 4}, {"cols", 5}, {"groups", 1}}));
  EXPECT_THROW(size_of(p.measure, "depth"), std::out_of_range);
}

TEST(Loader, DrawnSizesObeyVaryWhereAndCap) {
  const Problem p = *load(kDefinition);
  std::uint64_t state = 1;
  auto random = [&state] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 11; };
  const Cost cap{3e5, 1e9};
  for (int i = 0; i < 200; ++i) {
    auto sizes = draw_sizes(p, random, cap);
    ASSERT_TRUE(sizes) << sizes.error().what;
    EXPECT_TRUE(*admissible(p, *sizes));
    EXPECT_LE(cost_at(p, *sizes)->flops, cap.flops);
    EXPECT_EQ(size_of(*sizes, "cols") % 4, 0);
    EXPECT_LE(size_of(*sizes, "rows"), 300);
    EXPECT_NE(size_of(*sizes, "groups"), 3);
  }
  EXPECT_FALSE(draw_sizes(p, random, Cost{1, 1}));
}

std::string with_packed(const std::string& parameter) {
  return replace_all(kDefinition, "  - {name: state,", "  - " + parameter + "\n  - {name: state,");
}

TEST(Loader, PackedTensorsCountElementsAndTakeHalfTheBytes) {
  const Problem p =
      *load(with_packed("{name: codes, role: parameter, dtype: int4x2, shape: [groups, rows], init: "
                        "{integer: {min: -8, max: "
                        "7}}}"));
  const Sizes sizes = {{"rows", 6}, {"cols", 4}, {"groups", 5}};
  EXPECT_EQ(*elements_at(*p.find("codes"), sizes), 30);
  EXPECT_EQ(*tensor_bytes_at(p, sizes), *tensor_bytes_at(*load(kDefinition), sizes) + 15);
  const BoundProblem bound = *bound_at(p, sizes);
  const auto codes = std::find_if(bound.tensors.begin(), bound.tensors.end(), [&](const BoundTensor& tensor) {
    return p.signature[static_cast<std::size_t>(tensor.parameter)].name == "codes";
  });
  EXPECT_EQ(codes->bytes, 15u);
  EXPECT_EQ(codes->elements, 30);
}

TEST(Loader, RowsOfPackedTensorsEndWithAByte) {
  const std::string text = with_packed("{name: codes, role: output, dtype: e2m1x2, shape: [groups, rows]}");
  const Problem p = *load(text);
  const Sizes odd = {{"rows", 5}, {"cols", 4}, {"groups", 1}};
  EXPECT_FALSE(*admissible(p, odd));  // so no hidden size is drawn there
  const auto bound = bound_at(p, odd);
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().what.find("the rows of codes end within a byte"), std::string::npos)
      << bound.error().what;
  const auto loaded =
      load(replace_all(text, "{rows: 4, cols: 4, groups: 2}", "{rows: 5, cols: 4, groups: 2}"));
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find("the rows of `codes` end within a byte"), std::string::npos);
  EXPECT_NE(loaded.error().hint.find("even"), std::string::npos);
}

TEST(Loader, PackedTypesAndScalesRefuseWhatTheyCannotHold) {
  for (const auto& [parameter, what] : std::vector<std::pair<std::string, std::string>>{
           {"{name: a, role: input, dtype: int4x2, shape: [2 * rows]}", "an int4x2 tensor needs an `init`"},
           {"{name: a, role: input, dtype: int4x2, shape: [2 * rows], init: {integer: {min: -9, max: 7}}}",
            "from -8 to 7"},
           {"{name: a, role: input, dtype: int4x2, shape: [2 * rows], init: {normal: {mean: 0, std: 1}}}",
            "int4x2 values cannot be drawn as `normal`"},
           {"{name: a, role: input, dtype: int4x2, shape: [2 * rows], init: {permutation: {of: rows}}}",
            "int4x2 values cannot be drawn as `permutation`"},
           {"{name: a, role: input, dtype: e2m1x2, shape: [2 * rows], init: {pages: {table: a, lengths: b}}}",
            "e2m1x2 values cannot be drawn as `pages`"},
           {"{name: a, role: input, dtype: e2m1x2, shape: []}", "an e2m1x2 tensor needs a dimension"},
           {"{name: a, role: scalar, dtype: e2m1x2, value: 1}", "a scalar cannot be e2m1x2"},
           {"{name: a, role: input, dtype: e8m0, shape: [rows]}", "an e8m0 tensor needs an `init`"},
           {"{name: a, role: input, dtype: e8m0, shape: [rows], init: {normal: {mean: 0, std: 1}}}",
            "e8m0 values cannot be drawn as `normal`"},
           {"{name: a, role: input, dtype: e8m0, shape: [rows], init: {uniform: {low: 0, high: 1}}}",
            "low must be above 0"},
           {"{name: a, role: input, dtype: e8m0, shape: [rows], init: {choice: [1, 0]}}",
            "must be above 0"}}) {
    const auto loaded = load(with_packed(parameter));
    ASSERT_FALSE(loaded) << parameter;
    EXPECT_NE(loaded.error().what.find(what), std::string::npos) << loaded.error().what;
  }
  for (const char* parameter :
       {"{name: a, role: input, dtype: e2m1x2, shape: [2 * rows]}",
        "{name: a, role: input, dtype: e8m0, shape: [rows], init: {choice: [0.5, 1, 2]}}",
        "{name: a, role: input, dtype: e8m0, shape: [rows], init: {uniform: {low: 0.1, high: 8}}}"})
    EXPECT_TRUE(load(with_packed(parameter))) << parameter;
}

/// One change to the good definition and the expected error.
struct Mistake {
  const char* name;
  const char* from;
  const char* to;
  const char* what;
  const char* at;    ///< where the error points: the first occurrence of this text after the change
  const char* hint;  ///< contained in the hint; empty: not checked
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.name; }

class LoaderError : public ::testing::TestWithParam<Mistake> {};

TEST_P(LoaderError, PointsAtTheMistake) {
  const Mistake& mistake = GetParam();
  ASSERT_NE(kDefinition.find(mistake.from), std::string::npos) << mistake.from;
  std::string text = kDefinition;
  text.replace(text.find(mistake.from), std::string(mistake.from).size(), mistake.to);
  const auto loaded = load(text);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().what.find(mistake.what), std::string::npos) << loaded.error().what;
  EXPECT_EQ(loaded.error().where, place_of(text, mistake.at)) << loaded.error().what;
  EXPECT_NE(loaded.error().hint.find(mistake.hint), std::string::npos) << loaded.error().hint;
  EXPECT_EQ(loaded.error().code, ExitCode::kUsage);
}

// clang-format off
const Mistake kMistakes[] = {
    {"UnknownKey", "tolerance:", "tolerence:", "unknown key `tolerence`", "tolerence",
     "did you mean `tolerance`?"},
    {"UnknownKeyInParameter", "role: input,     dtype: f32,  shape: [rows, 2*cols]",
     "rolle: input, dtype: f32, shape: [rows, 2*cols]", "unknown key `rolle`", "rolle",
     "did you mean `role`?"},
    {"RepeatedKey", "tier: 2", "tier: 2\ntier: 3", "key `tier` appears twice", "tier: 3", "line 4"},
    {"RepeatedKeyInFlow", "{rows: 4, cols: 4, groups: 2}", "{rows: 4, cols: 4, rows: 5, groups: 2}",
     "key `rows` appears twice", "rows: 5", "line 24"},
    {"MissingKey", "precision: fp32\n", "", "a problem has no `precision`", "schema", "add `precision:`"},
    {"MissingName", "name: half,  ", "", "a parameter has no `name`", "{role: input,     dtype: f16", ""},
    {"BadSchema", "schema: 1", "schema: 2", "schema must be a whole number from 1 to 1, not `2`", "2", ""},
    {"BadTier", "tier: 2", "tier: 4", "tier must be a whole number from 1 to 3, not `4`", "4\nsessions", ""},
    {"QuotedNumber", "tier: 2", "tier: \"2\"", "tier must be a whole number", "\"2\"", ""},
    {"BadId", "id: scale_rows", "id: Scale-Rows", "id `Scale-Rows`", "Scale-Rows", "lower-case"},
    {"BadSession", "[L3, W4]", "[L3, W9]", "sessions cannot be `W9`", "W9", ""},
    {"BadBottleneck", "bottleneck: memory", "bottleneck: memroy", "bottleneck cannot be `memroy`", "memroy",
     "did you mean `memory`?"},
    {"BadDType", "dtype: bf16", "dtype: bf61", "dtype cannot be `bf61`", "bf61", "did you mean `bf16`?"},
    {"BadRole", "role: inout", "role: inuot", "role cannot be `inuot`", "inuot", "did you mean"},
    {"BadInit", "{uniform: {low", "{unifrom: {low", "init cannot be `unifrom`", "unifrom",
     "did you mean `uniform`?"},
    {"TwoInits", "{uniform: {low: -1, high: 1}}", "{uniform: {low: -1, high: 1}, normal: {mean: 0, std: 1}}",
     "init must name one way", "{uniform", ""},
    {"InvertedUniform", "low: -1, high: 1", "low: 1, high: -1", "uniform needs low < high", "-1}", ""},
    {"NegativeStd", "std: 1", "std: -1", "std must not be negative", "-1}", ""},
    {"FloatInitOnIndices", "{permutation: {of: rows}}", "{normal: {mean: 0, std: 1}}",
     "i32 values cannot be drawn as `normal`", "normal: {mean: 0, std: 1}}}\n  - {name: start", ""},
    {"PagesWithoutATable", "{uniform: {low: -1, high: 1}}", "{pages: {table: pages, lengths: index}}",
     "`pages` is not an input of whole numbers with two dimensions", "pages, lengths", "[sequences]"},
    {"IntegerWithoutInit", ", init: {integer: {min: 0, max: 1}}", "", "an u8 tensor needs an `init`",
     "{name: mask", "integer"},
    {"IntegerOutOfRange", "{min: 0, max: 1}", "{min: 0, max: 256}", "from 0 to 255, not `256`", "256", ""},
    {"OutputWithInit", "role: output,    dtype: f32,  shape: [rows, cols]",
     "role: output,    dtype: f32,  shape: [rows, cols], init: {normal: {mean: 0, std: 1}}",
     "an output has no `init`", "init: {normal: {mean: 0, std: 1}}}\n  - {name: eps", ""},
    {"NoOutput",
     "  - {name: state, role: inout,     dtype: f32,  shape: [rows]}\n  - {name: y,     role: output, ",
     "  - {name: y,     role: input, ", "signature has no output", "- {name: x", "role: output"},
    {"RepeatedParameter", "name: half,", "name: x,   ", "parameter `x` appears twice",
     "x,     role: input,     dtype: f16", ""},
    {"ReservedName", "name: half,", "name: stream,", "`stream` cannot name a parameter", "stream",
     "not taken"},
    {"ScalarWithoutValue", ",  value: 1.0e-5", "", "a scalar needs a `value`", "{name: eps", ""},
    {"ScalarOfBadType", "role: scalar,    dtype: f32", "role: scalar,    dtype: bf16",
     "a scalar cannot be bf16", "bf16,  value", "f32"},
    {"TensorWithValue", "role: inout,     dtype: f32,", "role: inout, value: 1, dtype: f32,",
     "a tensor has an `init`", "value: 1, dtype", ""},
    {"PythonOnInput", "role: parameter, dtype: bf16", "role: input, dtype: bf16",
     "only a parameter with `role: parameter`", "norm.weight", ""},
    {"UnknownSymbolInShape", "shape: [rows, 2*cols]", "shape: [rows, 2*colls]", "undefined symbol `colls`",
     "colls", "did you mean `cols`?"},
    {"SyntaxInShape", "shape: [rows, 2*cols]", "shape: [rows, \"2*cols*\"]",
     "cannot read expression `2*cols*`", "\"], init: {normal", ""},
    {"UnknownSymbolInCost", "3 * rows * cols, bytes", "3 * rows * kols, bytes", "undefined symbol `kols`",
     "kols", "did you mean `cols`?"},
    {"UnknownSymbolInWhere", "cols % 4 == 0", "cols % 4 == 0 && row > 1", "undefined symbol `row`", "row > 1",
     "did you mean `rows`?"},
    {"UnknownSymbolInScalar", "value: cols / 4", "value: colz / 4", "undefined symbol `colz`", "colz",
     "did you mean `cols`?"},
    {"SizeListLacksSymbol", "{rows: 8, cols: 64, groups: 3}", "{rows: 8, groups: 3}",
     "`check` entry 2 lacks size `cols`", "{rows: 8, groups", "rows, cols, groups"},
    {"SizeListHasExtra", "measure: {rows: 1024,", "measure: {depth: 3, rows: 1024,", "`measure` has `depth`",
     "depth", "rows"},
    {"SizeListMistyped", "emulate: {rows: 16,", "emulate: {rowz: 16,", "`emulate` has `rowz`", "rowz",
     "did you mean `rows`?"},
    {"VaryLacksSymbol", "    rows: {range: [1, 300]}\n", "", "`vary` lacks size `rows`", "cols: {range",
     "add `rows: …`"},
    {"SizeNotPositive", "{rows: 4, cols: 4,", "{rows: 0, cols: 4,", "size `rows` must be a whole number",
     "0, cols: 4", ""},
    {"SizeNotWhole", "{rows: 4, cols: 4,", "{rows: 4.5, cols: 4,", "not `4.5`", "4.5", ""},
    {"NoCheckSizes", "  check:\n    - {rows: 4, cols: 4, groups: 2}\n    - {rows: 8, cols: 64, groups: 3}\n",
     "  check: []\n", "check needs at least one", "[]", ""},
    {"InvertedRange", "[1, 300]", "[300, 1]", "range is inverted: 300 > 1", "[300, 1]", "write [1, 300]"},
    {"RangeAndOneOf", "{one_of: [1, 2, 4]}", "{one_of: [1, 2, 4], range: [1, 2]}",
     "either `range` or `one_of`", "{one_of", ""},
    {"NoMultipleInRange", "{range: [4, 4096], multiple_of: 4}", "{range: [5, 7], multiple_of: 4}",
     "holds no multiple of 4", "[5, 7]", ""},
    {"BrokenRelation", "measure: {rows: 1024, cols: 4096,", "measure: {rows: 1024, cols: 4094,",
     "violate the relation `cols % 4 == 0`", "{rows: 1024, cols: 4094", "where"},
    {"TooManyElements", "measure: {rows: 1024, cols: 4096,",
     "measure: {rows: 1099511627776, cols: 1099511627776,", "has too many elements at",
     "{rows: 1099511627776", "smaller"},
    {"FractionalShape", "shape: [rows, 2*cols]", "shape: [rows, cols/8]", "must be a positive whole number",
     "cols/8", ""},
    {"PublishedLacksSymbol", "cols: 65536, groups: 1}", "cols: 65536}", "lacks size `groups`",
     "{rows: 4096, cols: 65536}", ""},
    {"NegativeTolerance", "rtol: 1.0e-4", "rtol: -1", "rtol must lie between 0 and 1", "-1, atol", ""},
    {"NotANumber", "rtol: 1.0e-4", "rtol: .nan", "rtol must be a number, not `.nan`", ".nan", ""},
    {"NegativeCost", "3 * rows * cols, bytes", "0 - 3 * rows * cols, bytes", "flops is -48", "0 - 3", ""},
    {"NoBytes", "4 * (3 * rows * cols + cols)", "0 * cols", "bytes is 0", "0 * cols", ""},
    {"UnknownPrecision", "precision: fp32", "precision: fp23", "precision cannot be `fp23`", "fp23",
     "did you mean `fp32`?"},
    {"LibraryArmWithoutAName", "baselines: [native, eager]", "baselines: [native, 'lib:']",
     "baselines cannot be `lib:`", "'lib:'", ""},
    {"NoBaselines", "baselines: [native, eager]", "baselines: []", "baselines is empty", "[]", "[native]"},
    {"BaselineTwice", "[native, eager]", "[native, native]", "names `native` twice", "native]", ""},
    {"UnknownLink", "[cublas]", "[cublass]", "link cannot be `cublass`", "cublass", "did you mean `cublas`?"},
    {"UnknownArch", "sm_80", "sm_99", "arch cannot be `sm_99`", "sm_99", "sm_"},
    {"BadSwitch", "prepare: false", "prepare: no", "prepare must be true or false, not `no`", "no\n", ""},
    {"UnknownTrick", "because: {mean:", "because: {meen:", "unknown key `meen`", "meen",
     "did you mean `mean`?"},
    {"ListWhereMapping", "tolerance: {rtol: 1.0e-4, atol: 1.0e-5}", "tolerance: [1, 2]",
     "tolerance must be a mapping, not a list", "[1, 2]", ""},
    {"Alias", "edge: one trip", "edge: &e one trip\nfoo: *e", "aliases", "*e", "write the value out"},
    {"Tag", "edge: one trip", "edge: !!str one trip", "tags", "!!str", ""},
    {"SecondDocument", "because:", "---\nbecause:", "a second document", "because:", "---"},
    {"BadYaml", "tier: 2", "tier: [2", "not valid YAML", ": [L3", ""},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(Each, LoaderError, ::testing::ValuesIn(kMistakes),
                         [](const auto& info) { return std::string(info.param.name); });

// No dimension and no scalar: there is no expression that the error could point at.
TEST(Loader, ASignatureWithoutAnyDimensionIsAnError) {
  const auto loaded = load(R"(schema: 1
id: nothing
title: Nothing
tier: 1
sessions: [L1]
expect: nothing
signature:
  - {name: x, role: input, dtype: f32, shape: [], init: {normal: {mean: 0, std: 1}}}
  - {name: y, role: output, dtype: f32, shape: []}
sizes: {check: [{}], vary: {}, measure: {}, emulate: {}}
tolerance: {rtol: 0, atol: 0}
cost: {flops: 1, bytes: 1}
precision: fp32
baselines: [native]
)");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().what, "the signature has no size symbol");
  EXPECT_EQ(loaded.error().where, "DIR/problem.yaml:10:8");
}

// Where a value written in the text ends: at the line's end, or at a comma or bracket that is not its own.
std::size_t end_of_value(const std::string& text, std::size_t at) {
  int depth = 0;
  for (; at < text.size() && text[at] != '\n'; ++at) {
    if (text[at] == '[' || text[at] == '{') ++depth;
    if (text[at] == ']' || text[at] == '}')
      if (depth-- == 0) break;
    if (text[at] == ',' && depth == 0) break;
  }
  return at;
}

TEST(Loader, EveryValueMayBeAnythingAndNothingIsEverDereferencedUnseen) {
  int tried = 0, refused = 0;
  for (std::size_t at = kDefinition.find(": "); at != std::string::npos;
       at = kDefinition.find(": ", at + 1)) {
    const std::size_t begin = at + 2, end = end_of_value(kDefinition, begin);
    for (const char* value : {"[]", "{}", "~", "\"\"", "[[]]", "[{}]", "-1", "1e400", "x", "{x: []}"}) {
      const auto loaded = load(kDefinition.substr(0, begin) + value + kDefinition.substr(end));
      ++tried;
      refused += !loaded;
      EXPECT_TRUE(loaded || !loaded.error().what.empty());
    }
  }
  EXPECT_GT(tried, 500);
  EXPECT_GT(refused, tried / 2);
}

TEST(Loader, MissingFileIsNamed) {
  Scratch scratch;
  const auto loaded = load_problem(scratch.path());
  ASSERT_FALSE(loaded);
  EXPECT_NE((loaded.error().where + loaded.error().what).find("problem.yaml"), std::string::npos);
}

TEST(Loader, EmptyAndNonTextFilesAreErrors) {
  EXPECT_FALSE(load(""));
  EXPECT_FALSE(load("just text"));
  EXPECT_FALSE(load("[1, 2]"));
  EXPECT_FALSE(load(std::string("schema: 1\0", 10)));
  EXPECT_FALSE(load("schema: \xff\xfe"));
}

TEST(Loader, BombsAreRefusedQuickly) {
  EXPECT_FALSE(load(std::string(300u << 10, 'a')));      // larger than the limit
  EXPECT_FALSE(load("x: " + std::string(100000, '[')));  // depth, flow
  EXPECT_FALSE(load("x: " + std::string(100000, '{')));
  std::string steps, dashes;
  for (int i = 0; i < 400; ++i) steps += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  for (int i = 0; i < 50000; ++i) dashes += "- ";
  EXPECT_FALSE(load(steps));  // depth, block
  EXPECT_FALSE(load(dashes));
  std::string laughs = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) laughs += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  const auto bomb = load(laughs);
  ASSERT_FALSE(bomb);
  EXPECT_NE(bomb.error().what.find("aliases"), std::string::npos);
  std::string many = "x: [";
  for (int i = 0; i < 60000; ++i) many += "1,";
  EXPECT_FALSE(load(many + "1]"));  // number of values
}

}  // namespace
}  // namespace capstone
