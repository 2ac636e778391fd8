// An operand that is left out, counts differently, is rounded, or is another one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/correctness/dtype_convert.h"
#include "harness/correctness/trials/trial.h"

namespace capstone::trials {

// One operand is left out, or counts differently.
void try_values(Trial& trial) {
  if (std::all_of(trial.wrong().begin(), trial.wrong().end(),
                  [&](std::int64_t i) { return trial.got(i) == 0; }))
    return;
  for (const Operand& t : trial.operands()) {
    const double last = static_cast<double>(t.columns()), root = std::sqrt(last);
    trial.attempt(
        t, t.each([](double) { return 0; }), fmt::format("as if {} were 0", t.name),
        fmt::format("{} has no effect on the output: it is not added, or its sum is lost before the "
                    "store",
                    t.name));
    trial.attempt(t, t.each([](double) { return 1; }), fmt::format("as if {} were 1", t.name),
                  fmt::format("the multiplication by {} is missing", t.name));
    trial.attempt(
        t, t.each([](double v) { return 2 * v; }), fmt::format("as if {} counted twice", t.name),
        fmt::format("{} is added twice: look for a second addition, or for two threads that both add it",
                    t.name));
    trial.attempt(t, t.each([](double v) { return -v; }), fmt::format("as if {} had the other sign", t.name),
                  fmt::format("a + and a - are exchanged where {} enters", t.name));
    trial.attempt(t, t.each([](double v) { return v * v; }), fmt::format("as if {} were squared", t.name),
                  fmt::format("{} is multiplied in twice", t.name));
    trial.attempt(t, t.each([](double v) { return v != 0 ? 1 / v : v; }),
                  fmt::format("as if the output were divided by {}", t.name),
                  fmt::format("a division and a multiplication by {} are exchanged", t.name));
    trial.attempt(t, t.each([](double v) { return std::fabs(v); }),
                  fmt::format("as if {} had no sign", t.name), "an absolute value too many");
    trial.attempt(
        t, t.each([](double v) { return std::max(v, 0.0); }), fmt::format("as if {} were at least 0", t.name),
        fmt::format("a ReLU or fmaxf(…, 0) is applied to {} itself; for a maximum, start at -INFINITY",
                    t.name));
    trial.attempt(t, t.each([](double v) { return v / 2; }), fmt::format("as if {} counted half", t.name),
                  fmt::format("a factor 0.5 too many where {} enters", t.name));
    const auto times = [&](double factor, const std::string& pattern, const std::string& hint) {
      trial.attempt(t, t.each([factor](double v) { return v * factor; }), pattern, hint);
    };
    times(root, fmt::format("as if the factor 1/sqrt({}) were missing", t.columns()),
          fmt::format("divide by the square root of {}, the row length of {}", t.columns(), t.name));
    times(1 / root, fmt::format("as if the factor 1/sqrt({}) were applied twice", t.columns()),
          fmt::format("one division by the square root of {} is too much", t.columns()));
    times(std::numbers::ln2, fmt::format("as if the exponential of {} had base 2", t.name),
          "exp2f(x) is not expf(x): multiply its argument by log2(e) = 1.442695 first");
    times(std::numbers::log2e, fmt::format("as if {} were multiplied by log2(e)", t.name),
          "the factor log2(e) belongs to exp2f(), not to expf()");
    if (t.columns() > 1)
      times(std::sqrt((last - 1) / last),
            fmt::format("as if the variance were divided by {}, not by {}", t.columns() - 1, t.columns()),
            "the reference divides the sum of squares by n, not by n - 1");
    for (const auto& [symbol, size] : trial.prepared().plan.sizes)
      if (size > 2)
        times(static_cast<double>(size), fmt::format("as if {} counted {} times ({})", t.name, size, symbol),
              fmt::format("{} is added in a loop over {}: add it once, outside of the loop", t.name, symbol));
  }
}

// A scalar that is left out.
void try_scalars(Trial& trial) {
  const auto& signature = trial.problem().signature;
  for (std::size_t i = 0; i < signature.size(); ++i) {
    const Parameter& scalar = signature[i];
    if (trial.done() || !scalar.is_scalar() || !is_float(scalar.dtype)) continue;
    if (trial.explains_scalar(i, 0))
      trial.name(fmt::format("as if {} were 0", scalar.name),
                 fmt::format("{} is not added, or a multiplication by it is with 0", scalar.name));
    else if (trial.explains_scalar(i, 1))
      trial.name(fmt::format("as if {} were 1", scalar.name),
                 fmt::format("the multiplication by {} is missing", scalar.name));
  }
}

// A product of tensor cores, or a load, that rounds what it reads.
void try_rounding(Trial& trial) {
  constexpr std::pair<DType, const char*> kTypes[] = {{DType::kF16, "fp16"},
                                                      {DType::kBF16, "bf16"},
                                                      {DType::kE4M3, "fp8 (e4m3)"},
                                                      {DType::kE5M2, "fp8 (e5m2)"}};
  for (const auto& [type, name] : kTypes) {
    Changes changes;
    for (const Operand& t : trial.operands())
      changes[t.slot] = t.each([type = type](double v) { return rounded_to(type, v); });
    if (trial.done() || !trial.explains(changes)) continue;
    trial.name(
        fmt::format("precision: as if the inputs were rounded to {}", name),
        fmt::format("the inputs of a tensor-core product, or a copy of them, have the type {}: keep the "
                    "problem's precision",
                    name));
  }
}

// Two operands of one shape are exchanged.
void try_pairs(Trial& trial) {
  for (std::size_t i = 0; i < trial.operands().size(); ++i)
    for (std::size_t j = i + 1; j < trial.operands().size(); ++j) {
      const Operand &a = trial.operands()[i], &b = trial.operands()[j];
      if (trial.done() || a.type != b.type || a.values.size() != b.values.size()) continue;
      if (trial.explains({{a.slot, b.values}, {b.slot, a.values}}))
        trial.name(fmt::format("as if {} and {} were swapped", a.name, b.name),
                   "two arguments or two loads are exchanged");
      else if (trial.explains({{b.slot, a.values}}))
        trial.name(fmt::format("as if {} were read in place of {}", a.name, b.name),
                   fmt::format("a load of {} uses the pointer of {}", b.name, a.name));
      else if (trial.explains({{a.slot, b.values}}))
        trial.name(fmt::format("as if {} were read in place of {}", b.name, a.name),
                   fmt::format("a load of {} uses the pointer of {}", a.name, b.name));
    }
}

// (x + u) * v and x * v + u.
void try_order(Trial& trial) {
  for (const Operand& u : trial.operands())
    for (const Operand& v : trial.operands()) {
      if (trial.done() || u.slot == v.slot || u.values.size() != v.values.size()) continue;
      Values divided(u.values), multiplied(u.values);
      for (std::size_t i = 0; i < u.values.size(); ++i) {
        if (v.values[i] != 0) divided[i] /= v.values[i];
        multiplied[i] *= v.values[i];
      }
      const std::string hint = fmt::format("follow the reference's order of {} and {}", u.name, v.name);
      if (trial.explains({{u.slot, divided}}))
        trial.name(
            fmt::format("as if {} were added after the multiplication by {}, not before", u.name, v.name),
            hint);
      else if (trial.explains({{u.slot, multiplied}}))
        trial.name(
            fmt::format("as if {} were added before the multiplication by {}, not after", u.name, v.name),
            hint);
    }
}

}  // namespace capstone::trials
