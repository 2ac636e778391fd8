#pragma once
#pragma GCC system_header
// Of the stand-in for PyTorch's extension headers: PYBIND11_MODULE, whose functions another process calls
// (harness/emulator/torch/capstone_torch.py says how calls and results are written).
#include <unistd.h>

#include <array>
#include <map>
#include <variant>

#include "cuda.h"

namespace capstone_torch {

/// An argument or a result as it travels.
struct Value;
using Values = std::vector<Value>;
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Tensor, ScalarType, Values> is;
  const char* kind() const {
    constexpr const char* kNames[] = {"None", "bool", "int", "float", "str", "Tensor", "torch.dtype", "list"};
    return kNames[is.index()];
  }
};
struct WrongArgument : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class T>
struct Convert;  // a type that travels: `from` may throw WrongArgument

template <class T, class = void>
struct IsConvertible : std::false_type {};

template <class T>
T taken(const Value& value, const char* wanted) {
  if (const T* is = std::get_if<T>(&value.is)) return *is;
  throw WrongArgument(str("a ", value.kind(), " where a ", wanted, " is expected"));
}
template <>
struct Convert<Tensor> {
  static Tensor from(const Value& value) { return taken<Tensor>(value, "Tensor"); }
  static Value to(const Tensor& tensor) {
    if (!tensor.defined()) return {};
    return {tensor};
  }
};
template <>
struct Convert<bool> {
  static bool from(const Value& value) { return taken<bool>(value, "bool"); }
  static Value to(bool value) { return {value}; }
};
template <>
struct Convert<std::string> {
  static std::string from(const Value& value) { return taken<std::string>(value, "str"); }
  static Value to(const std::string& value) { return {value}; }
};
template <>
struct Convert<ScalarType> {
  static ScalarType from(const Value& value) { return taken<ScalarType>(value, "torch.dtype"); }
  static Value to(ScalarType value) { return {value}; }
};
template <class T>
struct ConvertNumber {
  static T from(const Value& value) {
    if (const bool* is = std::get_if<bool>(&value.is)) return *is;
    if constexpr (std::is_integral_v<T>) {
      const std::int64_t whole = taken<std::int64_t>(value, "int");
      if (static_cast<std::int64_t>(static_cast<T>(whole)) != whole || (whole < 0 && std::is_unsigned_v<T>))
        throw WrongArgument(str(whole, " does not fit into the parameter's type"));
      return static_cast<T>(whole);
    }
    if (const std::int64_t* is = std::get_if<std::int64_t>(&value.is)) return *is;
    return taken<double>(value, "float");
  }
  static Value to(T value) {
    if constexpr (std::is_integral_v<T>) return {static_cast<std::int64_t>(value)};
    return {static_cast<double>(value)};
  }
};
#define CAPSTONE_TORCH_NUMBERS(_)                                                                  \
  _(short)                                                                                         \
  _(unsigned short) _(int) _(unsigned) _(long) _(unsigned long) _(long long) _(unsigned long long) \
      _(signed char) _(unsigned char) _(float) _(double)
#define CAPSTONE_TORCH_NUMBER(type) \
  template <>                       \
  struct Convert<type> : ConvertNumber<type> {};
CAPSTONE_TORCH_NUMBERS(CAPSTONE_TORCH_NUMBER)
#undef CAPSTONE_TORCH_NUMBER
template <>
struct Convert<Scalar> {
  static Scalar from(const Value& value) {
    if (const std::int64_t* is = std::get_if<std::int64_t>(&value.is)) return *is;
    return Convert<double>::from(value);
  }
  static Value to(const Scalar& value) {
    return value.isIntegral() ? Value{value.toLong()} : Value{value.toDouble()};
  }
};
template <>
struct Convert<Device> {
  static Device from(const Value& value) { return Device(taken<std::string>(value, "torch.device")); }
  static Value to(const Device& value) { return {value.str()}; }
};
template <class T>
struct Convert<std::optional<T>> {
  static std::optional<T> from(const Value& value) {
    if (std::holds_alternative<std::monostate>(value.is)) return {};
    return Convert<T>::from(value);
  }
  static Value to(const std::optional<T>& value) { return value ? Convert<T>::to(*value) : Value{}; }
};
template <class T>
struct Convert<std::vector<T>> {
  static std::vector<T> from(const Value& value) {
    std::vector<T> all;
    for (const Value& each : taken<Values>(value, "list")) all.push_back(Convert<T>::from(each));
    return all;
  }
  static Value to(const std::vector<T>& all) {
    Values values;
    for (const T& each : all) values.push_back(Convert<T>::to(each));
    return {values};
  }
};
/// Lives as long as the call, with what it refers to.
template <class T>
struct Held {
  std::vector<T> all;
  operator ArrayRef<T>() const { return all; }
};
template <class T>
struct Convert<ArrayRef<T>> {
  static Held<T> from(const Value& value) { return {Convert<std::vector<T>>::from(value)}; }
  static Value to(const ArrayRef<T>& all) { return Convert<std::vector<T>>::to(all.vec()); }
};
template <class... T>
struct Convert<std::tuple<T...>> {
  static Value to(const std::tuple<T...>& all) {
    return std::apply([](const T&... each) { return Value{Values{Convert<T>::to(each)...}}; }, all);
  }
};
template <class A, class B>
struct Convert<std::pair<A, B>> {
  static Value to(const std::pair<A, B>& all) {
    return {Values{Convert<A>::to(all.first), Convert<B>::to(all.second)}};
  }
};
template <class T, std::size_t n>
struct Convert<std::array<T, n>> {
  static Value to(const std::array<T, n>& all) {
    return Convert<std::vector<T>>::to({all.begin(), all.end()});
  }
};

using Call = std::function<Value(const Values&)>;
struct Function {
  Call call;
  std::size_t arity;
  std::vector<std::string> names;              // of parameters, where py::arg() gives them
  std::vector<std::optional<Value>> defaults;  // as many as names
  bool returns_tuple;
};
inline std::map<std::string, Function>& functions() {
  static std::map<std::string, Function> all;
  return all;
}

template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};

template <class F, class R, class... A, std::size_t... i>
Function make_function(F f, std::index_sequence<i...>) {
  auto call = [f](const Values& given) -> Value {
    std::tuple<decltype(Convert<std::decay_t<A>>::from(std::declval<Value>()))...> held{
        Convert<std::decay_t<A>>::from(given[i])...};
    if constexpr (std::is_void_v<R>) {
      f(static_cast<A>(std::get<i>(held))...);
      return {};
    } else {
      return Convert<std::decay_t<R>>::to(f(static_cast<A>(std::get<i>(held))...));
    }
  };
  return {call, sizeof...(A), {}, {}, IsTuple<std::decay_t<R>>::value};
}
template <class R, class... A>
Function function_of(R (*f)(A...)) {
  return make_function<R (*)(A...), R, A...>(f, std::index_sequence_for<A...>());
}
template <class F, class R, class C, class... A>
Function function_of_method(const F& f, R (C::*)(A...) const) {
  return make_function<F, R, A...>(f, std::index_sequence_for<A...>());
}
template <class F, class = decltype(&F::operator())>
Function function_of(const F& f) {
  return function_of_method(f, &F::operator());
}

int serve(int from, int to);  // the loop of a program that answers calls; below
}  // namespace capstone_torch

namespace pybind11 {
using namespace capstone_torch;
/// The name of a parameter, and its value where the caller gives none.
struct arg {
  explicit arg(const char* name) : name(name) {}
  template <class T>
  arg operator=(T value) const {
    arg with = *this;
    if constexpr (std::is_same_v<T, std::nullopt_t>)
      with.value = Value{};
    else if constexpr (std::is_convertible_v<T, std::string>)
      with.value = Value{std::string(value)};
    else
      with.value = Convert<T>::to(value);
    return with;
  }
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
  std::string name;
  std::optional<Value> value;
};
struct kw_only {};
struct none_t {};
inline std::nullopt_t none() { return std::nullopt; }
template <class...>
struct call_guard {};
struct gil_scoped_release {
  gil_scoped_release() {}
};
struct gil_scoped_acquire {
  gil_scoped_acquire() {}
};
class module_ {
 public:
  template <class F, class... Extra>
  module_& def(const char* name, F f, const Extra&... extra) {
    Function made = capstone_torch::function_of(f);
    (take(made, extra), ...);
    capstone_torch::functions()[name] = std::move(made);
    return *this;
  }
  template <class T>
  void attr(const T&) = delete;
  std::string& doc() { return doc_; }

 private:
  void take(Function& made, const arg& given) {
    made.names.push_back(given.name);
    made.defaults.push_back(given.value);
  }
  template <class T>
  void take(Function&, const T&) {}
  std::string doc_;
};
using module = module_;
inline namespace literals {
inline arg operator""_a(const char* name, std::size_t) { return arg(name); }
}  // namespace literals
template <class T, class... Rest>
struct class_ {
  static_assert(sizeof(T) == 0, "the stand-in for PyTorch has no pybind11::class_: export functions");
};
}  // namespace pybind11

#ifndef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME capstone_extension
#endif
#define PYBIND11_MODULE(name, variable) CAPSTONE_TORCH_MODULE(name, variable, __COUNTER__)
#define CAPSTONE_TORCH_MODULE(name, variable, n) CAPSTONE_TORCH_MODULE_(variable, n)
#define CAPSTONE_TORCH_MODULE_(variable, n)                   \
  static void capstone_torch_module##n(::pybind11::module_&); \
  static const bool capstone_torch_made##n = [] {             \
    ::pybind11::module_ made;                                 \
    capstone_torch_module##n(made);                           \
    return true;                                              \
  }();                                                        \
  static void capstone_torch_module##n([[maybe_unused]] ::pybind11::module_& variable)
// Operators of torch.ops. Those of other keys than CUDA are left out, as are schemas.
#define TORCH_LIBRARY(name, variable) CAPSTONE_TORCH_LIBRARY(#name, "", variable, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(name, variable) TORCH_LIBRARY(name, variable)
#define TORCH_LIBRARY_IMPL(name, key, variable) CAPSTONE_TORCH_LIBRARY(#name, #key, variable, __COUNTER__)
#define CAPSTONE_TORCH_LIBRARY(name, key, variable, n) CAPSTONE_TORCH_LIBRARY_(name, key, variable, n)
#define CAPSTONE_TORCH_LIBRARY_(name, key, variable, n)     \
  static void capstone_torch_library##n(::torch::Library&); \
  static const bool capstone_torch_made##n = [] {           \
    ::torch::Library made(name, key);                       \
    capstone_torch_library##n(made);                        \
    return true;                                            \
  }();                                                      \
  static void capstone_torch_library##n([[maybe_unused]] ::torch::Library& variable)

namespace py = pybind11;
namespace torch {
namespace py = pybind11;
template <class F>
F wrap_pybind_function(F f) {
  return f;
}
/// What TORCH_LIBRARY and TORCH_LIBRARY_IMPL define; `key`: "", "CUDA", "CPU", …
class Library {
 public:
  Library(std::string name, const std::string& key)
      : name_(std::move(name)),
        runs_(key.empty() || key == "CUDA" || key == "CompositeExplicitAutograd" ||
              key == "CompositeImplicitAutograd") {}
  template <class... Tags>
  Library& def(const char*, const Tags&...) {
    return *this;  // the schema alone
  }
  template <class F, class = decltype(capstone_torch::function_of(std::declval<F>()))>
  Library& def(const char* schema, F f) {
    return impl(schema, f);
  }
  template <class F>
  Library& impl(const std::string& schema, F f) {
    if (runs_)
      capstone_torch::functions()[name_ + "." + schema.substr(0, schema.find('('))] =
          capstone_torch::function_of(f);
    return *this;
  }

 private:
  std::string name_;
  bool runs_;
};
#define TORCH_FN(f) &f
}  // namespace torch

namespace capstone_torch {
/// Reads and writes values; the same as `Wire` of capstone_torch.py.
class Pipe {
 public:
  Pipe(int from, int to) : from_(from), to_(to) {}
  bool read(void* into, std::size_t bytes) {
    for (char* at = static_cast<char*>(into); bytes > 0;) {
      const ssize_t got = ::read(from_, at, bytes);
      if (got <= 0) return false;
      at += got, bytes -= got;
    }
    return true;
  }
  void write(const void* data, std::size_t bytes) {
    for (const char* at = static_cast<const char*>(data); bytes > 0;) {
      const ssize_t put = ::write(to_, at, bytes);
      if (put <= 0) ::_exit(1);  // the caller is gone
      at += put, bytes -= put;
    }
  }
  template <class T>
  T get() {
    T value{};
    if (!read(&value, sizeof value)) ::_exit(1);
    return value;
  }
  template <class T>
  void put(T value) {
    write(&value, sizeof value);
  }
  std::string text() {
    std::string all(get<std::int64_t>(), 0);
    if (!read(all.data(), all.size())) ::_exit(1);
    return all;
  }
  void text(const std::string& all) {
    put<std::int64_t>(all.size());
    write(all.data(), all.size());
  }

 private:
  int from_, to_;
};

/// One call: the storages of its tensors, and those that its result has.
class Conversation {
 public:
  explicit Conversation(Pipe& pipe) : pipe_(pipe) {
    for (std::int64_t n = pipe.get<std::int64_t>(); n > 0; --n) {
      given_.push_back(pipe.text());
      const std::string& bytes = given_.back();
      storages_.push_back(std::make_shared<Storage>(bytes.size(), kCUDA));
      check_cuda(cudaMemcpy(storages_.back()->data, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    }
  }
  Value read_value() {
    switch (const char tag = pipe_.get<char>()) {
      case 'N':
        return {};
      case 'B':
        return {pipe_.get<char>() != 0};
      case 'I':
        return {pipe_.get<std::int64_t>()};
      case 'D':
        return {pipe_.get<double>()};
      case 'S':
        return {pipe_.text()};
      case 'Y':
        return {static_cast<ScalarType>(pipe_.get<std::int8_t>())};
      case 'T': {
        const auto storage = pipe_.get<std::int64_t>();
        const auto type = static_cast<ScalarType>(pipe_.get<std::int8_t>());
        const bool requires_grad = pipe_.get<char>() != 0;
        const auto offset = pipe_.get<std::int64_t>();
        Sizes sizes(pipe_.get<std::int64_t>()), strides(sizes.size());
        for (auto* all : {&sizes, &strides})
          for (std::int64_t& each : *all) each = pipe_.get<std::int64_t>();
        return {Tensor(storages_.at(storage), offset, sizes, strides, type, requires_grad)};
      }
      case 'L': {
        Values all;
        for (std::int64_t n = pipe_.get<std::int64_t>(); n > 0; --n) all.push_back(read_value());
        return {all};
      }
      default:
        throw WrongArgument(str("a value of the kind ", tag, " does not travel"));
    }
  }
  /// @param as_tuple  a list at the top is a tuple
  void answer(const Value& result, bool as_tuple) {
    const std::size_t count = storages_.size();
    number(result);
    std::vector<std::pair<std::int64_t, std::string>> changed;
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      std::string bytes = bytes_of(*storages_[i]);
      if (i >= count || bytes != given_[i]) changed.emplace_back(i, std::move(bytes));
    }
    pipe_.put('+');
    pipe_.put<std::int64_t>(changed.size());
    for (const auto& [i, bytes] : changed) {
      pipe_.put(i);
      pipe_.text(bytes);
    }
    write_value(result, as_tuple);
  }

 private:
  static std::string bytes_of(const Storage& storage) {
    std::string bytes(storage.bytes, 0);
    check_cuda(cudaMemcpy(bytes.data(), storage.data, bytes.size(),
                          storage.device.is_cuda() ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost));
    return bytes;
  }
  std::int64_t index_of(const Tensor& tensor) const {
    const auto storage = tensor.storage_of();
    return std::find(storages_.begin(), storages_.end(), storage) - storages_.begin();
  }
  void number(const Value& value) {
    if (const Values* all = std::get_if<Values>(&value.is))
      for (const Value& each : *all) number(each);
    else if (const Tensor* tensor = std::get_if<Tensor>(&value.is))
      if (index_of(*tensor) == static_cast<std::int64_t>(storages_.size()))
        storages_.push_back(tensor->storage_of());
  }
  void write_value(const Value& value, bool as_tuple = false) {
    constexpr char kTags[] = {'N', 'B', 'I', 'D', 'S', 'T', 'Y', 'L'};
    pipe_.put(as_tuple ? 'U' : kTags[value.is.index()]);
    if (const auto* b = std::get_if<bool>(&value.is)) pipe_.put<char>(*b);
    if (const auto* i = std::get_if<std::int64_t>(&value.is)) pipe_.put(*i);
    if (const auto* d = std::get_if<double>(&value.is)) pipe_.put(*d);
    if (const auto* s = std::get_if<std::string>(&value.is)) pipe_.text(*s);
    if (const auto* y = std::get_if<ScalarType>(&value.is)) pipe_.put(static_cast<std::int8_t>(*y));
    if (const auto* t = std::get_if<Tensor>(&value.is)) {
      pipe_.put(index_of(*t));
      pipe_.put(static_cast<std::int8_t>(t->scalar_type()));
      pipe_.put<char>(t->requires_grad());
      pipe_.put<std::int64_t>(t->storage_offset());
      pipe_.put<std::int64_t>(t->dim());
      for (const IntArrayRef all : {t->sizes(), t->strides()})
        for (const std::int64_t each : all) pipe_.put(each);
    }
    if (const auto* all = std::get_if<Values>(&value.is)) {
      pipe_.put<std::int64_t>(all->size());
      for (const Value& each : *all) write_value(each);
    }
  }

  Pipe& pipe_;
  std::vector<std::string> given_;
  std::vector<std::shared_ptr<Storage>> storages_;
};

/// The arguments in the order of the parameters, with those given by name and those left out.
inline Values arranged(const std::string& name, const Function& function, Values given,
                       const std::vector<std::pair<std::string, Value>>& by_name) {
  std::vector<std::optional<Value>> all(given.begin(), given.end());
  if (all.size() > function.arity)
    throw WrongArgument(str(all.size(), " arguments, it takes ", function.arity));
  all.resize(function.arity);
  for (const auto& [key, value] : by_name) {
    const auto at = std::find(function.names.begin(), function.names.end(), key);
    if (at == function.names.end())
      throw WrongArgument(str("no parameter has the name ", key, " (py::arg(\"", key, "\") would give it)"));
    all[at - function.names.begin()] = value;
  }
  Values arguments;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i] && i < function.defaults.size()) all[i] = function.defaults[i];
    if (!all[i]) throw WrongArgument(str("argument ", i + 1, " is missing, it takes ", function.arity));
    arguments.push_back(*all[i]);
  }
  return arguments;
}

inline int serve(int from, int to) {
  Pipe pipe(from, to);
  auto fail = [&](const char* kind, const std::string& what) {
    pipe.put('-');
    pipe.text(kind);
    pipe.text(what);
  };
  for (const auto& [name, function] : functions()) pipe.text(name);
  pipe.text("");
  char begin;
  while (pipe.read(&begin, 1)) {
    const std::string name = pipe.text();
    try {
      Conversation conversation(pipe);
      Values given = std::get<Values>(conversation.read_value().is);
      std::vector<std::pair<std::string, Value>> by_name(pipe.get<std::int64_t>());
      for (auto& [key, value] : by_name) {
        key = pipe.text();
        value = conversation.read_value();
      }
      const Function& function = functions().at(name);
      Value result;
      try {
        result = function.call(arranged(name, function, std::move(given), by_name));
      } catch (const WrongArgument& wrong) {
        throw WrongArgument(name + "(): incompatible function arguments: " + wrong.what());
      }
      // A GPU reports a failed kernel at a later call; here it is this one's.
      check_cuda(cudaDeviceSynchronize());
      check_cuda(cudaGetLastError());
      std::fflush(stdout);
      conversation.answer(result, function.returns_tuple);
    } catch (const WrongArgument& wrong) {
      fail("TypeError", wrong.what());
    } catch (const IndexError& error) {
      fail("IndexError", error.what());
    } catch (const ValueError& error) {
      fail("ValueError", error.what());
    } catch (const NotImplementedError& error) {
      fail("NotImplementedError", error.what());
    } catch (const std::exception& error) {
      // After a failed kernel nothing can be called any more. The report of it comes at the program's end.
      const bool failed = cudaDeviceSynchronize() != cudaSuccess;
      fail(failed ? "KernelFailure" : "RuntimeError", error.what());
      if (failed) return 1;
    }
    std::fflush(stdout);
  }
  return 0;
}
}  // namespace capstone_torch
