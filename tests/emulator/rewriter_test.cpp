#include <gtest/gtest.h>

#include "rewriter/inline_asm.h"
#include "rewriter/rewrite.h"
#include "rewriter/token.h"

namespace capstone::rewriter {
namespace {

constexpr int kArch = 900;

Translation translate(std::string_view ptx, const std::vector<std::string>& names = {}) {
  return translate_ptx(ptx, names, kArch);
}

/// Rewrites text as if it were kernel.cu, and squeezes runs of blanks.
Rewritten rewrite_file(const std::string& text) { return rewrite("# 1 \"kernel.cu\"\n" + text); }
std::string squeezed(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') c = ' ';
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  return out;
}
void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(squeezed(text).find(part), std::string::npos)
      << "missing: " << part << "\nin: " << squeezed(text);
}
std::string only_finding(const std::string& text) {
  const Rewritten result = rewrite_file(text);
  return result.findings.size() == 1
             ? result.findings[0].file + ":" + std::to_string(result.findings[0].line) + ": " +
                   result.findings[0].message
             : std::to_string(result.findings.size()) + " findings";
}

TEST(Lexer, CutsTemplatesShiftsAndLaunches) {
  const SourceText source = tokenize("# 1 \"k.cu\"\na<b<c>>(1) << 2; k<<<1,2>>>(x);");
  std::string text;
  for (const Token& token : source.tokens) text += std::string(source.spelling(token)) + "|";
  EXPECT_EQ(text, "a|<|b|<|c|>|>|(|1|)|<<|2|;|k|<<<|1|,|2|>|>|>|(|x|)|;||");
}

TEST(Lexer, LiteralsHideTheirContents) {
  const SourceText source = tokenize("# 1 \"k.cu\"\n\"a<<<\\\"b\" R\"x(\n)\" <<<)x\" '\\'' 1'000e+5f");
  ASSERT_EQ(source.tokens.size(), 5u);
  EXPECT_EQ(source.spelling(3), "1'000e+5f");
}

TEST(Lexer, SystemHeadersStayWhole) {
  const SourceText source =
      tokenize("# 1 \"k.cu\"\nint a;\n# 1 \"/usr/include/x.h\" 1 3\nint <<< b;\n# 2 \"k.cu\" 2\nint c;");
  ASSERT_EQ(source.tokens.size(), 8u);
  EXPECT_EQ(source.tokens[3].kind, TokenKind::kOpaque);
  ASSERT_EQ(source.inclusions.size(), 1u);
  EXPECT_EQ(source.inclusions[0].path, "/usr/include/x.h");
}

// nvcc takes `#pragma unroll` from a macro (CUTE_UNROLL), in the middle of what the preprocessor leaves.
TEST(Lexer, APragmaFromAMacroIsAPragma) {
  const SourceText source = tokenize("# 1 \"k.cu\"\nint a;\n    #pragma unroll\nint c;");
  ASSERT_EQ(source.tokens.size(), 8u);
  EXPECT_EQ(source.tokens[3].kind, TokenKind::kPragma);
  EXPECT_EQ(source.spelling(3), "#pragma unroll");
}

// Headers of CCCL end lines with __device__.
TEST(Rewriter, WordsOfThePreludeVanishAtTheEndOfALineToo) {
  const std::string text = rewrite_file(
                               "# 1 \"/usr/include/x.h\" 1 3\ncapstone_emu_device\nint f();\nint "
                               "capstone_emu_device_count;\n# 2 \"kernel.cu\" 2\nint c;\n")
                               .text;
  EXPECT_EQ(text.find("capstone_emu_device\n"), std::string::npos) << text;
  EXPECT_NE(text.find("capstone_emu_device_count"), std::string::npos) << text;
}

TEST(Lexer, MacroOfASystemHeaderInAUserLineIsStillTheUsers) {
  const SourceText source = tokenize("# 1 \"k.cu\"\nint* p =\n# 1 \"k.cu\" 3 4\n  __null\n# 1 \"k.cu\"\n  ;");
  EXPECT_EQ(source.tokens.size(), 7u);
  EXPECT_EQ(source.tokens[4].line, 1);
}

TEST(Lexer, DigraphsAreBracketsOutsideOfLiterals) {
  const SourceText source = tokenize("# 1 \"k.cu\"\nf<::g>(\"<%\") <% a<:1:> %>");
  std::string text;
  for (const Token& token : source.tokens) text += std::string(source.spelling(token)) + "|";
  EXPECT_EQ(text, "f|<|::|g|>|(|\"<%\"|)|{|a|[|1|]|}||");
}

TEST(Lexer, UnterminatedLiteralsEndSomewhere) {
  for (const char* text : {"\"abc", "'", "R\"(", "R\"", "# 1 \"", "u8\"x\\", "\\"}) tokenize(text);
  SUCCEED();
}

TEST(Launch, BecomesACallThatKnowsNameAndPlace) {
  const Rewritten result = rewrite_file("\nvoid f() { ns::k<T, 3><<<g, b, 16, s>>>(x, 1.f); }");
  EXPECT_TRUE(result.findings.empty());
  expect_contains(result.text, "capstone_emu::config(\"ns::k<T, 3>\", \"kernel.cu\", 2, g, b, 16, s )");
  expect_contains(result.text,
                  "[=](auto&... capstone_v) __attribute__((no_sanitize(\"thread\"), no_sanitize_coverage)) { "
                  "ns::k<T, 3> (capstone_v...); } , x , 1.f ))");
}

TEST(Launch, CalleeMayBeAPointerAMemberOrACall) {
  expect_contains(rewrite_file("void f() { (*kp)<<<1, 2>>>(x); }").text, "{ (*kp) (capstone_v...); }");
  expect_contains(rewrite_file("void f() { table[i]<<<1, 2>>>(x); }").text, "{ table[i] (capstone_v...); }");
  expect_contains(rewrite_file("void f() { o.kernels->k<<<1, 2>>>(x); }").text,
                  "{ o.kernels->k (capstone_v...); }");
  expect_contains(rewrite_file("void f() { return ::k<<<1, 2>>>(x); }").text, "{ ::k (capstone_v...); }");
}

TEST(Launch, LiteralZeroStaysLiteral) {
  expect_contains(
      rewrite_file("void f() { k<<<1, 2>>>(x, 0); }").text,
      "[=](auto& capstone_v0) __attribute__((no_sanitize(\"thread\"), no_sanitize_coverage)) { "
      "k (capstone_v0, 0); } , x ))");
}

TEST(Launch, ShiftsAndStreamsAreLeftAlone) {
  EXPECT_EQ(squeezed(rewrite_file("int f(int a) { return a << 3 >> 1; }").text).find("capstone_emu::launch"),
            std::string::npos);
}

TEST(Launch, WithoutItsEndIsAnError) {
  EXPECT_EQ(only_finding("void f() {\nk<<<1, 2(x); }"), "kernel.cu:2: kernel launch: '<<<' without '>>>'");
}

TEST(Launch, InsideAKernelIsAnError) {
  EXPECT_EQ(only_finding("capstone_emu_global void f() {\n k<<<1, 2>>>(); }"),
            "kernel.cu:2: a kernel launches a kernel: that needs nvcc -rdc=true");
}

TEST(Launch, AParameterThatIsAReferenceIsRefusedWhenTheKernelRuns) {
  const auto refused = [](const std::string& parameters) {
    const std::string text = "template <class T> capstone_emu_global void k(" + parameters + ") {}";
    return rewrite_file(text).text.find("is a reference") != std::string::npos;
  };
  EXPECT_TRUE(refused("T& x"));
  EXPECT_TRUE(refused("int n, const T& x"));
  EXPECT_TRUE(refused("T&& x"));
  EXPECT_TRUE(refused("int (&x)[4]"));
  EXPECT_FALSE(refused("T* x, F<int&> f, int (*g)(int&)"));
}

TEST(Launch, AKernelThatIsCalledWithoutItIsAnError) {
  const std::string kernels =
      "capstone_emu_global void k(int* p) {} template <class T> capstone_emu_global void t(T* p) {}\n";
  EXPECT_EQ(only_finding(kernels + "int main() { k(nullptr); }"),
            "kernel.cu:2: kernel 'k' is called without <<<>>>");
  EXPECT_EQ(only_finding(kernels + "int main() {\n  if (1) t<int>(nullptr);\n}"),
            "kernel.cu:3: kernel 't' is called without <<<>>>");
  const auto accepts = [&](const std::string& text) {
    EXPECT_TRUE(rewrite_file(kernels + text).findings.empty()) << text;
  };
  accepts(
      "int main() { k<<<1, 1>>>(nullptr); t<int><<<1, 1>>>(nullptr); auto f = k; f<<<1, 1>>>(nullptr); }");
  accepts("void k(long n) { k<<<1, 1>>>(nullptr); } int main() { k(3L); }");
  accepts("struct S { void k(int); }; int main() { S s; s.k(1); }");
  accepts("int main() { auto k = [](int) {}; k(1); }");
  accepts("template capstone_emu_global void t<float>(float*); void host(int) {} int main() { host(1); }");
  accepts("template <> capstone_emu_global void t(int* p) {} int main() { t<<<1, 1>>>((int*)0); }");
}

TEST(Launch, OfAFunctionWithoutGlobalIsRefused) {
  const std::string functions =
      "void host(int* p) {} capstone_emu_device int device(int* p) { return *p; } "
      "capstone_emu_global void k(int* p) {} template <class T> void typed(T* p) {}\n";
  const auto refuses = [&](const std::string& call, const std::string& name) {
    EXPECT_EQ(
        only_finding(functions + "int main() {\n  " + call + "\n}"),
        "kernel.cu:3: '" + name + "' is launched, but it is no kernel: its declaration lacks __global__");
  };
  refuses("host<<<1, 1>>>(nullptr);", "host");
  refuses("device<<<1, 1>>>(nullptr);", "device");
  refuses("::host<<<1, 1>>>(nullptr);", "host");
  refuses("typed<int><<<1, 1>>>(nullptr);", "typed");
  const auto accepts = [&](const std::string& text) {
    EXPECT_TRUE(rewrite_file(functions + text).findings.empty()) << text;
  };
  accepts("int main() { k<<<1, 1>>>(nullptr); auto host = k; host<<<1, 1>>>(nullptr); }");
  accepts("void run(void (*host)(int*)) { host<<<1, 1>>>(nullptr); }");
  accepts("template <class F> void run(F host) { host<<<1, 1>>>(nullptr); }");
  accepts("capstone_emu_global void host(float* p) {} int main() { host<<<1, 1>>>((float*)0); }");
}

TEST(Launch, BoundsAreTheFirstStatementOfTheKernel) {
  const Rewritten result = rewrite_file(
      "template <int N> capstone_emu_global void capstone_emu_launch_bounds(f<N, 2>(1), 2) k(int* p) { *p = "
      "1; }");
  EXPECT_EQ(result.text.find("capstone_emu_launch_bounds"), std::string::npos);
  expect_contains(result.text, "{ capstone_emu::require_threads(f<N");
  EXPECT_EQ(
      rewrite_file("capstone_emu_global void capstone_emu_launch_bounds(256) k(int* p);").text.find("256"),
      std::string::npos);
}

TEST(Instrumentation, CannotBeSwitchedOffByAttributes) {
  const Rewritten result = rewrite_file(
      "__attribute__((no_sanitize(\"thread\", \"address\"), __no_sanitize_coverage__)) void f();\n"
      "[[gnu::no_sanitize_thread]] void g();");
  expect_contains(result.text, "__attribute__(( unused , unused ) ) void f();");
  expect_contains(result.text, "[[gnu:: unused ] ] void g();");
}

TEST(Instrumentation, HasNamesThatTheSourceMayNotUse) {
  EXPECT_EQ(only_finding("extern \"C\" void __tsan_read4(void*) {}"),
            "kernel.cu:1: the name '__tsan_read4' is reserved for the judge's instrumented builds");
  EXPECT_EQ(only_finding("int f() { return capstone_emu::observed_by_hooks; }"),
            "kernel.cu:1: the name 'observed_by_hooks' is reserved for the judge's instrumented builds");
}

TEST(Instrumentation, IsKnownToTheHeadersAlone) {
  RewriteOptions options;
  options.observed = true;
  EXPECT_NE(rewrite("# 1 \"kernel.cu\"\n", options).text.find("observed_by_hooks = true"), std::string::npos);
  EXPECT_NE(rewrite_file("").text.find("observed_by_hooks = false"), std::string::npos);
}

TEST(Disguise, OfAFileOfTheUsersIsAnError) {
  RewriteOptions options;
  options.disguised = [](const std::string& file) { return file == "kernel.cu" ? 7 : 0; };
  const Rewritten result = rewrite("# 1 \"kernel.cu\"\nint a;\n", options);
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].line, 7);
  EXPECT_NE(result.findings[0].message.find("system header"), std::string::npos);
}

TEST(Shared, EveryDeclaratorBecomesAReference) {
  const Rewritten result = rewrite_file("void f() { capstone_emu_shared float a[4][5], b, c[2]; }");
  expect_contains(result.text, "float a[4][5], b, c[2];");
  for (const char* name : {"a", "b", "c"})
    expect_contains(result.text, std::string("auto& ") + name +
                                     " = capstone_emu::shared<capstone_emu_shared_0>()." + name + ";");
}

TEST(Shared, TypesMayHaveTemplateArgumentsAndAlignment) {
  const Rewritten result =
      rewrite_file("void f() { __attribute__((aligned(16))) capstone_emu_shared std::array<float, 4> a; }");
  expect_contains(result.text, "auto& a = ");
  EXPECT_EQ(squeezed(result.text).find("auto& 4"), std::string::npos);
}

TEST(Shared, ExternBecomesAPointerToTheDynamicPart) {
  expect_contains(rewrite_file("void f() { extern capstone_emu_shared float s[]; }").text,
                  "float* s = (reinterpret_cast<float*>(capstone_emu::dynamic_shared()));");
  expect_contains(rewrite_file("void f() { extern capstone_emu_shared float s[][32]; }").text,
                  "float (*s)[32] = ");
}

TEST(Shared, ExternAtNamespaceScopeIsReplacedWhereItIsUsed) {
  const Rewritten result = rewrite_file("extern capstone_emu_shared float s[];\nvoid f() { s[1] = a.s; }");
  expect_contains(result.text, "(reinterpret_cast<float*>(capstone_emu::dynamic_shared())) [1] = a.s;");
}

TEST(Shared, InitialiserIsAnError) {
  EXPECT_EQ(only_finding("void f() {\ncapstone_emu_shared int v = 3; }"),
            "kernel.cu:2: a __shared__ variable cannot have an initialiser");
}

TEST(Shared, NamesThatHideTheArrayOfNamespaceScopeStayAsTheyAre) {
  const std::string text =
      rewrite_file(
          "extern capstone_emu_shared float s[];\n"
          "capstone_emu_device float f(const float* s, int n) { return s[n]; }\n"
          "capstone_emu_global void k(float* y) { { float s = y[1]; y[2] = s; } y[0] = f(s, 1) * s[2]; }\n")
          .text;
  expect_contains(text, "return s[n];");
  expect_contains(text, "y[2] = s;");
  expect_contains(text, "f( (reinterpret_cast<float*>(capstone_emu::dynamic_shared())) , 1)");
  expect_contains(text, "* (reinterpret_cast<float*>(capstone_emu::dynamic_shared())) [2];");
}

TEST(Shared, AtNamespaceScopeIsAStructureToo) {
  const Rewritten result = rewrite_file(
      "namespace n {\ncapstone_emu_shared int v, w[3]; capstone_emu_global void k() { w[1] = v; } }");
  EXPECT_TRUE(result.findings.empty());
  expect_contains(result.text, "struct capstone_emu_shared_0 { int v, w[3];");
  expect_contains(result.text, "(capstone_emu::shared<capstone_emu_shared_0>().w) [1]");
}

TEST(Scopes, LambdasAndMemberFunctionsAreFunctions) {
  EXPECT_TRUE(rewrite_file("struct S { void f() { auto g = [&] { capstone_emu_shared int v; }; } };")
                  .findings.empty());
}

TEST(Texture, IsNotJudgeable) {
  EXPECT_EQ(only_finding("void f() { float v = tex2D<float>(t, 0, 0); }"),
            "kernel.cu:1: texture and surface function 'tex2D' cannot be judged");
}

TEST(Include, OfAGpuLibraryIsNotJudgeableAtItsLine) {
  EXPECT_EQ(only_finding("int a;\n# 1 \"/cuda/include/cublas_v2.h\" 1 3\nint b;\n# 3 \"kernel.cu\" 2\n"),
            "kernel.cu:2: library header 'cublas_v2.h' cannot be used on the CPU backend");
}

TEST(Asm, NamesTheInstructionThatCannotRunWhereItIsUsed) {
  const auto refused = [](const std::string& body) {
    const Rewritten result = rewrite_file("capstone_emu_device void f() {\n" + body + " }");
    EXPECT_TRUE(result.findings.empty());
    EXPECT_NE(result.text.find("\nasm"), std::string::npos) << result.text;
    const std::size_t begin = result.text.find(kUnsupported);
    return begin == std::string::npos ? result.text
                                      : result.text.substr(begin, result.text.find('"', begin) - begin);
  };
  EXPECT_EQ(
      refused("asm volatile(\"tcgen05.wait::ld.sync.aligned;\" :: \"r\"(a));"),
      "not judgeable: Blackwell tensor memory (sm_100a) instruction 'tcgen05.wait::ld.sync.aligned' has "
      "no CPU implementation");
  EXPECT_EQ(refused("unsigned u;\nasm(\"mov.u32 %0, %%envreg3;\" : \"=r\"(u));"),
            "not judgeable: inline PTX instruction 'mov.u32 %envreg3' has no CPU implementation");
}

TEST(Asm, OfTheHostIsLeftToTheCompiler) {
  const Rewritten result =
      rewrite_file("long f() { long t; asm volatile(\"rdtsc\" : \"=a\"(t) :: \"rdx\"); return t; }");
  EXPECT_TRUE(result.findings.empty());
  expect_contains(result.text, "asm volatile(\"rdtsc\" : \"=a\"(t) :: \"rdx\");");
}

TEST(Asm, OperandsAreBoundInOrder) {
  const Rewritten result = rewrite_file(
      "void f() { asm volatile(\"add.u32 %0, %1, %2;\\n\" : \"=r\"(o[1]) : \"r\"(a), \"n\"(16)); }");
  ASSERT_TRUE(result.findings.empty());
  expect_contains(result.text, "capstone_emu::ptx::Output capstone_p0(( o[1] ));");
  expect_contains(result.text, "capstone_emu::ptx::Input capstone_p2(( 16 ));");
}

TEST(Ptx, PredicatesRegistersAndScopes) {
  const Translation t = translate(
      "{ .reg .pred p; setp.ne.b32 p, %0, 0; @p cp.async.cg.shared.global.L2::128B [%1], [%2], 16; }");
  EXPECT_EQ(t.unsupported, "");
  expect_contains(t.code, "capstone_emu::ptx::Register capstone_r_p;");
  expect_contains(t.code, "if ((capstone_r_p.bits() & 1))");
}

TEST(Ptx, MatrixShapesAndTypesAreChecked) {
  const std::string operands = " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};";
  EXPECT_EQ(translate("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" + operands).unsupported, "");
  EXPECT_EQ(translate("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" + operands).unsupported, "");
  EXPECT_EQ(
      translate("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};").unsupported,
      "");
  EXPECT_EQ(translate("mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32" + operands).unsupported, "");
  EXPECT_EQ(translate("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64" + operands).unsupported,
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64");
  EXPECT_EQ(translate("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + operands).unsupported,
            "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
}

TEST(Ptx, WgmmaSaturatesWholeNumbersOnly) {
  const std::string name = "wgmma.mma_async.sync.aligned.m64n8k32.";
  const std::string operands = " {%0,%1,%2,%3}, %4, %5, %6";
  expect_contains(translate(name + "satfinite.s32.s8.u8" + operands + ";").code,
                  "Uint8, 8, false, true>::run");
  expect_contains(translate(name + "s32.s8.u8" + operands + ";").code, "Uint8, 8, false, false>::run");
  EXPECT_NE(translate(name + "satfinite.f32.e4m3.e4m3" + operands + ", 1, 1;").unsupported, "");
}

TEST(Ptx, LabelsBecomeLocalLabels) {
  const Translation t = translate(
      "{ .reg .pred P1; WAIT_%=: mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1; @P1 bra DONE; "
      "bra WAIT_%=; DONE: }",
      {});
  EXPECT_EQ(t.unsupported, "");
  EXPECT_EQ(t.labels.size(), 2u);
  expect_contains(t.code, "{ goto capstone_l_DONE; }");
  expect_contains(t.code, "goto capstone_l_WAIT__;");
}

TEST(Ptx, TensorCopiesTakeAsManyCoordinatesAsDimensions) {
  const std::string copy =
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {";
  EXPECT_EQ(translate(copy + "%3, %4}], [%2];").unsupported, "");
  EXPECT_NE(translate(copy + "%3}], [%2];").unsupported, "");
}

TEST(Ptx, NamedBarriersAndClusters) {
  for (const char* text :
       {"bar.sync 3, 128;", "bar.arrive %0, 64;", "barrier.sync.aligned 1, 32;",
        "barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;",
        "mapa.shared::cluster.u32 %0, %1, %2;", "setmaxnreg.inc.sync.aligned.u32 232;", "fence.proxy.async;",
        "wgmma.fence.sync.aligned;", "redux.sync.add.s32 %0, %1, 0xffffffff;"})
    EXPECT_EQ(translate(text).unsupported, "") << text;
}

TEST(Ptx, CommentsAndSymbolicNames) {
  const Translation t = translate("// nothing\nmov.b32 %[to], /* from */ %[from];", {"to", "from"});
  EXPECT_EQ(t.unsupported, "");
  expect_contains(t.code, "capstone_p0");
}

TEST(Ptx, GarbageIsUnsupportedAndNotACrash) {
  for (const char* text : {"@", "{", "mov.b32 %0", "mov.b32 %0,", "mov.b32 [", "ld.global.v4.f32 {", "%%",
                           "mma.sync;", "cp.async;", ".reg", "setp.eq.s32 p, q"})
    translate(text);
  EXPECT_NE(translate("frobnicate.b32 %0, %1;").unsupported, "");
}

TEST(Cluster, DimensionsAreAskedForFirst) {
  const Rewritten result =
      rewrite_file("capstone_emu_global void capstone_emu_cluster_dims(2, 1, 1) k(int* p) { *p = 1; }");
  expect_contains(result.text, "{ capstone_emu::require_cluster(2, 1, 1); *p = 1; }");
  EXPECT_EQ(result.text.find("capstone_emu_cluster_dims"), std::string::npos);
}

TEST(Loops, ThatReadVolatileMemoryLetOthersRun) {
  expect_contains(rewrite_file("void f(volatile int* p) { while (*p == 0); }").text,
                  "while ( capstone_emu::loop_hint(), ( *p == 0 ) );");
  expect_contains(rewrite_file("void f(volatile int* p) { for (;;) if (*p) break; }").text,
                  "for (; capstone_emu::loop_hint(), true ;)");
  EXPECT_EQ(rewrite_file("void f(int* p) { while (*p == 0); asm volatile(\"\"); }").text.find("loop_hint"),
            std::string::npos);
}

TEST(LaunchCall, KeepsTheKernelsType) {
  expect_contains(rewrite_file("void f() { cudaLaunchCooperativeKernel((void*)k<3>, g, b, a); }").text,
                  "cudaLaunchCooperativeKernel( k<3>, g, b, a)");
  expect_contains(
      rewrite_file("void f() { cudaLaunchKernel(reinterpret_cast<const void*>(&k), g, b, a); }").text,
      "cudaLaunchKernel( (&k), g, b, a)");
}

TEST(Lookahead, FindsOnlyEndsBehindTheLastToken) {
  const SourceText source = tokenize("# 1 \"kernel.cu\"\nint x;");
  const std::size_t last = source.tokens.size() - 1;
  ASSERT_EQ(source.at(last).kind, TokenKind::kEnd);
  for (std::size_t i = last; i < last + 9; ++i) {
    EXPECT_EQ(source.at(i).kind, TokenKind::kEnd) << i;
    EXPECT_TRUE(source.is(i, "")) << i;
    EXPECT_FALSE(source.is(i, "(")) << i;
  }
}

// Each construct looks ahead; a text may end after any of its words.
TEST(Lookahead, OfATextThatEndsEarly) {
  const std::string text =
      "constexpr int warpSize = 32;\nstruct S { static const float x = 1; };\n"
      "template <class T> void g() { A<T>::f<1>(x); tex2D<float>(t); k<<<1, 2>>>(a); }\n"
      "capstone_emu_global void capstone_emu_launch_bounds(256) capstone_emu_cluster_dims(2) k(volatile int* "
      "p)"
      " { capstone_emu_shared int a[3]; while (*p); asm volatile(\"mov.u32 %0, 1;\" : \"=r\"(x)); }\n"
      "int main() { cudaLaunchKernel((void*)k<3>, g, b, a); }\n";
  for (std::size_t size = 0; size <= text.size(); ++size)
    EXPECT_NO_THROW(rewrite_file(text.substr(0, size))) << text.substr(0, size);
}

TEST(Main, OfAWholeProgramStays) {
  EXPECT_EQ(rewrite("# 1 \"kernel.cu\"\nint main() { return 0; }", {.keep_main = true, .guarded = {}})
                .text.find("capstone_candidate_main"),
            std::string::npos);
}

TEST(Main, OfATestDriverIsRenamed) {
  expect_contains(rewrite_file("int main() { return 0; }").text, "capstone_candidate_main");
}

}  // namespace
}  // namespace capstone::rewriter
