#pragma once
#pragma GCC system_header
// Of the stand-in for PyTorch's extension headers: what makes tensors, and plain operators on the host.
#include "tensor.h"

namespace capstone_torch {
using at::Tensor;

inline Sizes common_sizes(const Tensor& a, const Tensor& b) {
  Sizes sizes(std::max(a.dim(), b.dim()));
  for (std::int64_t i = 1; i <= static_cast<std::int64_t>(sizes.size()); ++i) {
    const std::int64_t x = i <= a.dim() ? a.size(-i) : 1, y = i <= b.dim() ? b.size(-i) : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x,
                ") must match the size of tensor b (", y, ") at non-singleton dimension ", sizes.size() - i);
    sizes[sizes.size() - i] = x == 1 ? y : x;
  }
  return sizes;
}
/// The type of a result: that of the more general kind; of 16-bit types that differ, float.
inline ScalarType common_type(ScalarType a, ScalarType b) {
  if (a == b) return a;
  auto rank = [](ScalarType t) { return t == kBool ? 0 : isFloatingType(t) ? 2 : 1; };
  if (rank(a) != rank(b)) return rank(a) > rank(b) ? a : b;
  if (rank(a) == 2 && elementSize(a) == elementSize(b)) return kFloat;
  if (elementSize(a) == elementSize(b)) return kShort;  // uint8 and int8
  return elementSize(a) > elementSize(b) ? a : b;
}
template <class Function>
Tensor combined(const Tensor& a, const Tensor& b, Function function, bool real = false) {
  // A number in a tensor without dimensions does not change the type of its kind.
  ScalarType type = common_type(a.scalar_type(), b.scalar_type());
  if (isFloatingType(a.scalar_type()) == isFloatingType(b.scalar_type()) && (a.dim() == 0) != (b.dim() == 0))
    type = (a.dim() == 0 ? b : a).scalar_type();
  if (real && !isFloatingType(type)) type = kFloat;
  const Sizes sizes = common_sizes(a, b);
  const Tensor result = Tensor::made(sizes, (a.is_cuda() ? a : b).options().dtype(type));
  std::vector<long double> x = a.expand(sizes).values();
  const std::vector<long double> y = b.expand(sizes).values();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = function(x[i], y[i]);
  result.put(x);
  return result;
}
template <class Function>
Tensor mapped(const Tensor& a, Function function, bool real = false) {
  const ScalarType type = real && !a.is_floating_point() ? kFloat : a.scalar_type();
  const Tensor result = Tensor::made(a.sizes(), a.options().dtype(type));
  std::vector<long double> x = a.values();
  for (long double& value : x) value = function(value);
  result.put(x);
  return result;
}
inline Tensor number_like(const Tensor& like, Scalar value) {
  const bool real = value.isFloatingPoint() && !like.is_floating_point();
  const Tensor one =
      Tensor::made({}, like.options().dtype(real                          ? kFloat
                                            : value.isFloatingPoint()     ? kDouble
                                            : like.scalar_type() == kBool ? kLong
                                                                          : like.scalar_type()));
  one.fill_(value);
  return one;
}
/// Over `dims` (all of them if there are none).
template <class Function>
Tensor reduced(const Tensor& a, IntArrayRef dims, bool keepdim, ScalarType type, long double first,
               Function function) {
  std::vector<bool> gone(a.dim(), dims.empty());
  for (const std::int64_t d : dims) gone[d < 0 ? d + a.dim() : d] = true;
  Sizes kept, shape, strides(a.dim());
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    kept.push_back(gone[i] ? 1 : a.size(i));
    if (keepdim || !gone[i]) shape.push_back(kept.back());
  }
  const Sizes packed = packed_strides(kept);
  for (std::int64_t i = 0; i < a.dim(); ++i) strides[i] = gone[i] ? 0 : packed[i];
  std::vector<long double> total(count_of(kept), first);
  const std::vector<long double> x = a.values();
  for_each_offset(a.sizes(), strides,
                  [&](std::int64_t i, std::int64_t to) { total[to] = function(total[to], x[i]); });
  const Tensor result = Tensor::made(shape, a.options().dtype(type));
  result.put(total);
  return result;
}
inline ScalarType type_of_sum(const Tensor& a) { return a.is_floating_point() ? a.scalar_type() : kLong; }
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
// NaN wins.
inline long double larger(long double a, long double b) { return a != a || a > b ? a : b; }
inline long double smaller(long double a, long double b) { return a != a || a < b ? a : b; }
}  // namespace capstone_torch

namespace at {

inline Tensor empty(IntArrayRef sizes, const TensorOptions& options = {}) {
  return Tensor::made(sizes, options);
}
inline Tensor empty(IntArrayRef sizes, const TensorOptions& options, std::optional<MemoryFormat>) {
  return Tensor::made(sizes, options);
}
inline Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, const TensorOptions& options = {}) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  return Tensor::made({last + 1}, options).as_strided(sizes, strides);
}
inline Tensor zeros(IntArrayRef sizes, const TensorOptions& options = {}) {
  return empty(sizes, options).zero_();
}
inline Tensor full(IntArrayRef sizes, Scalar value, const TensorOptions& options = {}) {
  const ScalarType type = options.has_dtype() ? options.dtype() : value.isIntegral() ? kLong : kFloat;
  return empty(sizes, options.dtype(type)).fill_(value);
}
inline Tensor ones(IntArrayRef sizes, const TensorOptions& options = {}) {
  return empty(sizes, options).fill_(1);
}
inline TensorOptions options_like(const Tensor& like, const TensorOptions& wanted) {
  return TensorOptions(wanted.has_dtype() ? wanted.dtype() : like.scalar_type())
      .device(wanted.has_device() ? wanted.device() : like.device());
}
inline Tensor empty_like(const Tensor& like, const TensorOptions& options = {}) {
  // Dense tensors keep their order of dimensions in memory.
  const Tensor made = empty(like.sizes(), options_like(like, options));
  for (const MemoryFormat format : {MemoryFormat::ChannelsLast, MemoryFormat::ChannelsLast3d})
    if (!like.is_contiguous() && like.is_contiguous(format))
      return made.as_strided(like.sizes(), like.strides());
  if (like.dim() == 2 && !like.is_contiguous() && like.t().is_contiguous())
    return made.as_strided(like.sizes(), like.strides());
  return made;
}
inline Tensor empty_like(const Tensor& like, const TensorOptions& options, std::optional<MemoryFormat>) {
  return empty_like(like, options);
}
inline Tensor zeros_like(const Tensor& like, const TensorOptions& options = {}) {
  const Tensor made = empty_like(like, options);
  return made.is_contiguous() ? made.zero_() : made.fill_(0);
}
inline Tensor ones_like(const Tensor& like, const TensorOptions& options = {}) {
  return empty_like(like, options).fill_(1);
}
inline Tensor full_like(const Tensor& like, Scalar value, const TensorOptions& options = {}) {
  return empty_like(like, options).fill_(value);
}
inline Tensor arange(Scalar begin, Scalar end, Scalar step, const TensorOptions& options = {}) {
  const bool whole = begin.isIntegral() && end.isIntegral() && step.isIntegral();
  std::vector<long double> all;
  for (long double x = begin.to<long double>(); x < end.to<long double>();
       x = begin.to<long double>() + step.to<long double>() * all.size())
    all.push_back(x);
  const Tensor made =
      empty({static_cast<std::int64_t>(all.size())}, options.dtype(options.has_dtype() ? options.dtype()
                                                                   : whole             ? kLong
                                                                                       : kFloat));
  made.put(all);
  return made;
}
inline Tensor arange(Scalar begin, Scalar end, const TensorOptions& options = {}) {
  return arange(begin, end, 1, options);
}
inline Tensor arange(Scalar end, const TensorOptions& options = {}) { return arange(0, end, 1, options); }
inline Tensor scalar_tensor(Scalar value, const TensorOptions& options = {}) {
  return full({}, value, options);
}
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  const ScalarType own = std::is_floating_point_v<T> ? kFloat : std::is_same_v<T, bool> ? kBool : kLong;
  const Tensor made = empty({static_cast<std::int64_t>(values.size())},
                            options.dtype(options.has_dtype() ? options.dtype() : own));
  made.put({values.begin(), values.end()});
  return made;
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(values), options);
}
template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
Tensor tensor(T value, const TensorOptions& options = {}) {
  return tensor(ArrayRef<T>(value), options).reshape({});
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides,
                        const TensorOptions& options = {}) {
  const std::size_t bytes = capstone_torch::count_of(sizes) * elementSize(options.dtype());
  return {std::make_shared<capstone_torch::Storage>(data, bytes, options.device()), 0, sizes.vec(),
          strides.vec(), options.dtype()};
}
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& options = {}) {
  return from_blob(data, sizes, capstone_torch::packed_strides(sizes), options);
}

inline Tensor Tensor::sum(IntArrayRef dims, bool keepdim) const {
  return capstone_torch::reduced(*this, dims, keepdim, capstone_torch::type_of_sum(*this), 0,
                                 [](long double a, long double b) { return a + b; });
}
inline Tensor Tensor::sum() const { return sum(IntArrayRef()); }
inline Tensor Tensor::mean(IntArrayRef dims, bool keepdim) const {
  std::int64_t count = dims.empty() ? numel() : 1;
  for (const std::int64_t d : dims) count *= size(d);
  // The sum of a 16-bit type may be larger than its largest number.
  const Tensor total = capstone_torch::reduced(*this, dims, keepdim, kDouble, 0,
                                               [](long double a, long double b) { return a + b; });
  return capstone_torch::mapped(total, [&](long double x) { return x / count; }).to(scalar_type());
}
inline Tensor Tensor::mean() const { return mean(IntArrayRef()); }
inline Tensor Tensor::amax(IntArrayRef dims, bool keepdim) const {
  return capstone_torch::reduced(*this, dims, keepdim, scalar_type(), -capstone_torch::kInfinity,
                                 capstone_torch::larger);
}
inline Tensor Tensor::amin(IntArrayRef dims, bool keepdim) const {
  return capstone_torch::reduced(*this, dims, keepdim, scalar_type(), capstone_torch::kInfinity,
                                 capstone_torch::smaller);
}
inline Tensor Tensor::max() const { return amax(IntArrayRef()); }
inline Tensor Tensor::min() const { return amin(IntArrayRef()); }
#define CAPSTONE_TORCH_MAPPED(name, real, value)           \
  inline Tensor Tensor::name() const {                     \
    return capstone_torch::mapped(                         \
        *this, [](long double x) { return value; }, real); \
  }
CAPSTONE_TORCH_MAPPED(abs, false, std::fabs(x))
CAPSTONE_TORCH_MAPPED(exp, true, std::exp(x))
CAPSTONE_TORCH_MAPPED(log, true, std::log(x))
CAPSTONE_TORCH_MAPPED(sqrt, true, std::sqrt(x))
CAPSTONE_TORCH_MAPPED(rsqrt, true, 1 / std::sqrt(x))
CAPSTONE_TORCH_MAPPED(tanh, true, std::tanh(x))
CAPSTONE_TORCH_MAPPED(sigmoid, true, 1 / (1 + std::exp(-x)))
CAPSTONE_TORCH_MAPPED(relu, false, x < 0 ? 0 : x)
CAPSTONE_TORCH_MAPPED(neg, false, -x)
inline Tensor Tensor::pow(Scalar exponent) const {
  const long double e = exponent.to<long double>();
  return capstone_torch::mapped(
      *this, [&](long double x) { return std::pow(x, e); }, exponent.isFloatingPoint());
}
inline Tensor Tensor::clamp(std::optional<Scalar> low, std::optional<Scalar> high) const {
  return capstone_torch::mapped(*this, [&](long double x) {
    if (low && x < low->to<long double>()) x = low->to<long double>();
    if (high && x > high->to<long double>()) x = high->to<long double>();
    return x;
  });
}
inline Tensor Tensor::add(const Tensor& other, Scalar alpha) const {
  const long double factor = alpha.to<long double>();
  return capstone_torch::combined(*this, other, [&](long double a, long double b) { return a + factor * b; });
}
inline Tensor Tensor::sub(const Tensor& other, Scalar alpha) const {
  const long double factor = alpha.to<long double>();
  return capstone_torch::combined(*this, other, [&](long double a, long double b) { return a - factor * b; });
}
inline Tensor Tensor::mul(const Tensor& other) const {
  return capstone_torch::combined(*this, other, [](long double a, long double b) { return a * b; });
}
inline Tensor Tensor::div(const Tensor& other) const {
  return capstone_torch::combined(
      *this, other, [](long double a, long double b) { return a / b; }, true);
}
inline Tensor Tensor::add(Scalar other) const { return add(capstone_torch::number_like(*this, other)); }
inline Tensor Tensor::sub(Scalar other) const { return sub(capstone_torch::number_like(*this, other)); }
inline Tensor Tensor::mul(Scalar other) const { return mul(capstone_torch::number_like(*this, other)); }
inline Tensor Tensor::div(Scalar other) const { return div(capstone_torch::number_like(*this, other)); }
#define CAPSTONE_TORCH_OPERATOR(op, name)                                                                    \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); }                          \
  inline Tensor operator op(const Tensor& a, Scalar b) { return a.name(b); }                                 \
  inline Tensor operator op(Scalar a, const Tensor& b) { return capstone_torch::number_like(b, a).name(b); } \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); }                                 \
  inline Tensor name(const Tensor& a, Scalar b) { return a.name(b); }
CAPSTONE_TORCH_OPERATOR(+, add)
CAPSTONE_TORCH_OPERATOR(-, sub)
CAPSTONE_TORCH_OPERATOR(*, mul)
CAPSTONE_TORCH_OPERATOR(/, div)

/// Of matrices, of equal batches of them, and of a matrix or row with a column. Sums are exact to double.
inline Tensor Tensor::matmul(const Tensor& other) const {
  if (dim() == 1) return unsqueeze(0).matmul(other).squeeze(other.dim() == 1 ? 0 : -2);
  if (other.dim() == 1) return matmul(other.unsqueeze(1)).squeeze(-1);
  if (dim() > 2 && other.dim() == 2) {
    capstone_torch::Sizes sizes = this->sizes().vec();
    sizes.back() = other.size(1);
    return reshape({-1, size(-1)}).matmul(other).view(sizes);
  }
  const std::int64_t rows = size(-2), inner = size(-1), columns = other.size(-1);
  capstone_torch::Sizes batch(sizes().begin(), sizes().end() - 2);
  TORCH_CHECK(dim() == other.dim() && IntArrayRef(batch).equals({other.sizes().begin(), batch.size()}) &&
                  other.size(-2) == inner,
              "matmul: the shapes ", sizes(), " and ", other.sizes(),
              " do not fit, or are broadcast, which the ", "stand-in for PyTorch has not");
  TORCH_CHECK(scalar_type() == other.scalar_type(),
              "expected m1 and m2 to have the same dtype, but got: ", scalar_type(),
              " != ", other.scalar_type());
  const std::int64_t batches = capstone_torch::count_of(batch);
  const std::vector<long double> a = values(), b = other.values();
  std::vector<long double> c(batches * rows * columns);
  for (std::int64_t n = 0; n < batches; ++n)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t k = 0; k < inner; ++k)
        for (std::int64_t j = 0; j < columns; ++j)
          c[(n * rows + i) * columns + j] += a[(n * rows + i) * inner + k] * b[(n * inner + k) * columns + j];
  batch.insert(batch.end(), {rows, columns});
  const Tensor result = Tensor::made(batch, options());
  result.put(c);
  return result;
}
inline Tensor matmul(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor mm(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor bmm(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b) { return c + a.matmul(b); }
inline Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}) {
  const Tensor product = x.matmul(weight.t());
  return bias.defined() ? product + bias : product;
}
inline Tensor sum(const Tensor& a) { return a.sum(); }
inline Tensor sum(const Tensor& a, IntArrayRef dims, bool keepdim = false) { return a.sum(dims, keepdim); }
inline Tensor mean(const Tensor& a) { return a.mean(); }
inline Tensor mean(const Tensor& a, IntArrayRef dims, bool keepdim = false) { return a.mean(dims, keepdim); }
inline Tensor max(const Tensor& a) { return a.max(); }
inline Tensor min(const Tensor& a) { return a.min(); }
inline Tensor clamp(const Tensor& a, std::optional<Scalar> low, std::optional<Scalar> high = {}) {
  return a.clamp(low, high);
}
inline Tensor pow(const Tensor& a, Scalar exponent) { return a.pow(exponent); }
inline Tensor transpose(const Tensor& a, std::int64_t i, std::int64_t j) { return a.transpose(i, j); }
inline Tensor flatten(const Tensor& a, std::int64_t first = 0, std::int64_t last = -1) {
  return a.flatten(first, last);
}
inline Tensor reshape(const Tensor& a, IntArrayRef sizes) { return a.reshape(sizes); }
inline Tensor squeeze(const Tensor& a, std::int64_t d) { return a.squeeze(d); }
inline Tensor unsqueeze(const Tensor& a, std::int64_t d) { return a.unsqueeze(d); }
inline Tensor clone(const Tensor& a) { return a.clone(); }
inline bool equal(const Tensor& a, const Tensor& b) { return a.equal(b); }
inline bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8) {
  const std::vector<long double> x = a.values(), y = b.expand(a.sizes()).values();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!(x[i] == y[i] || std::fabs(x[i] - y[i]) <= atol + rtol * std::fabs(y[i]))) return false;
  return true;
}
#define CAPSTONE_TORCH_FREE(name) \
  inline Tensor name(const Tensor& a) { return a.name(); }
CAPSTONE_TORCH_FREE(abs)
CAPSTONE_TORCH_FREE(exp)
CAPSTONE_TORCH_FREE(log)
CAPSTONE_TORCH_FREE(sqrt)
CAPSTONE_TORCH_FREE(rsqrt)
CAPSTONE_TORCH_FREE(tanh)
CAPSTONE_TORCH_FREE(sigmoid)
CAPSTONE_TORCH_FREE(relu)
CAPSTONE_TORCH_FREE(neg)
inline Tensor cat(const std::vector<Tensor>& parts, std::int64_t d = 0) {
  TORCH_CHECK(!parts.empty(), "cat: expected a non-empty list of Tensors");
  capstone_torch::Sizes sizes = parts[0].sizes().vec();
  d = d < 0 ? d + parts[0].dim() : d;
  for (std::size_t i = 1; i < parts.size(); ++i) sizes[d] += parts[i].size(d);
  const Tensor whole = empty(sizes, parts[0].options());
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    whole.narrow(d, at, part.size(d)).copy_(part);
    at += part.size(d);
  }
  return whole;
}
inline Tensor stack(std::vector<Tensor> parts, std::int64_t d = 0) {
  for (Tensor& part : parts) part = part.unsqueeze(d);
  return cat(parts, d);
}
// Objects, so that a call of a function of the source with the same name does not find them.
#define CAPSTONE_TORCH_LACKS_FUNCTION(name) \
  inline constexpr struct { CAPSTONE_TORCH_LACKS_AS(name, operator()); } name
CAPSTONE_TORCH_ALL_LACKS(CAPSTONE_TORCH_LACKS_FUNCTION);

}  // namespace at
