#pragma once
#pragma GCC system_header
// Of the stand-in for PyTorch's extension headers: at::Tensor in the emulator's device memory. It holds,
// shapes and copies numbers; of PyTorch's operators it has the plain ones, computed on the host.
#include "scalars.h"

namespace c10 {

class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(ScalarType type) : dtype_(type) {}
  TensorOptions(Device device) : device_(device) {}
  TensorOptions(DeviceType device) : device_(device) {}
  TensorOptions dtype(ScalarType type) const {
    return changed([&](auto& o) { o.dtype_ = type; });
  }
  TensorOptions device(Device device) const {
    return changed([&](auto& o) { o.device_ = device; });
  }
  TensorOptions device(DeviceType type, DeviceIndex) const { return device(Device(type)); }
  TensorOptions requires_grad(bool on) const {
    return changed([&](auto& o) { o.requires_grad_ = on; });
  }
  TensorOptions layout(Layout) const { return *this; }
  TensorOptions memory_format(MemoryFormat) const { return *this; }
  TensorOptions pinned_memory(bool) const { return *this; }
  ScalarType dtype() const { return dtype_.value_or(kFloat); }
  Device device() const { return device_.value_or(Device(kCPU)); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool requires_grad() const { return requires_grad_; }

 private:
  template <class Change>
  TensorOptions changed(Change change) const {
    TensorOptions copy = *this;
    change(copy);
    return copy;
  }
  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  bool requires_grad_ = false;
};

/// What the older Tensor::type() returns.
struct TypeProperties {
  ScalarType type;
  bool cuda;
  ScalarType scalarType() const { return type; }
  bool is_cuda() const { return cuda; }
  operator ScalarType() const { return type; }
};

}  // namespace c10

namespace capstone_torch {
using namespace c10;
using Sizes = std::vector<std::int64_t>;

inline void check_cuda(cudaError_t code) {
  TORCH_CHECK(code == cudaSuccess, "CUDA error: ", cudaGetErrorString(code));
}

/// Memory that tensors share; device memory is the emulator's.
struct Storage {
  Storage(std::size_t bytes, Device device) : bytes(bytes), device(device) {
    if (device.is_cuda())
      check_cuda(cudaMalloc(&data, std::max<std::size_t>(bytes, 1)));
    else
      data = std::malloc(std::max<std::size_t>(bytes, 1));
  }
  Storage(void* data, std::size_t bytes, Device device)
      : data(data), bytes(bytes), device(device), own(false) {}
  Storage(const Storage&) = delete;
  ~Storage() {
    if (!own) return;
    if (device.is_cuda())
      cudaFree(data);
    else
      std::free(data);
  }
  void* data = nullptr;
  std::size_t bytes;
  Device device;
  bool own = true;
};

inline std::int64_t count_of(IntArrayRef sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}
inline Sizes packed_strides(IntArrayRef sizes) {
  Sizes strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0; step *= std::max<std::int64_t>(sizes[i], 1)) strides[i] = step;
  return strides;
}

/// Calls use(index of elements in order, offset of the element) for each element.
template <class Use>
void for_each_offset(const Sizes& sizes, const Sizes& strides, Use use) {
  const std::int64_t count = count_of(sizes);
  Sizes at(sizes.size());
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    use(i, offset);
    for (std::size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= at[d] * strides[d];
      at[d] = 0;
    }
  }
}
}  // namespace capstone_torch

namespace c10 {
template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
}  // namespace c10

namespace at {
using c10::DefaultPtrTraits;
using c10::RestrictPtrTraits;

/// A tensor of N dimensions as a kernel indexes it.
template <class T, std::size_t N, template <class> class Traits, class Index>
class TensorAccessorOf {
 public:
  using PtrType = typename Traits<T>::PtrType;
  TensorAccessorOf(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  decltype(auto) operator[](Index i) const {
    if constexpr (N == 1)
      return (data_[i * strides_[0]]);
    else
      return TensorAccessorOf<T, N - 1, Traits, Index>(data_ + i * strides_[0], sizes_ + 1, strides_ + 1);
  }
  PtrType data() const { return data_; }
  Index size(int i) const { return sizes_[i]; }
  Index stride(int i) const { return strides_[i]; }

 private:
  PtrType data_;
  const Index *sizes_, *strides_;
};
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
using TensorAccessor = TensorAccessorOf<T, N, Traits, Index>;

/// The same with sizes and strides of its own: a parameter of kernels.
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const std::int64_t* sizes, const std::int64_t* strides)
      : data_(data) {
    for (std::size_t i = 0; i < N; ++i) sizes_[i] = sizes[i], strides_[i] = strides[i];
  }
  decltype(auto) operator[](Index i) const {
    return TensorAccessorOf<T, N, Traits, Index>(data_, sizes_, strides_)[i];
  }
  PtrType data() const { return data_; }
  Index size(int i) const { return sizes_[i]; }
  Index stride(int i) const { return strides_[i]; }

 private:
  PtrType data_;
  Index sizes_[N], strides_[N];
};
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, std::int32_t>;
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, std::int64_t>;
template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
          class Index = std::int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, Traits, Index>;

class Tensor;
using TensorList = c10::ArrayRef<Tensor>;
using TensorOptions = c10::TensorOptions;

// What PyTorch has and the stand-in has not. The compiler refuses a call, at its line.
#define CAPSTONE_TORCH_LACKS_AS(name, called)                                                       \
  template <class... Arguments>                                                                     \
  __attribute__((error("not judgeable: the stand-in for PyTorch has no " #name                      \
                       "(): call it in Python, around the extension, or write the kernel"))) Tensor \
  called(Arguments&&...) const
#define CAPSTONE_TORCH_LACKS(name) CAPSTONE_TORCH_LACKS_AS(name, name)
#define CAPSTONE_TORCH_ALL_LACKS(_) \
  _(conv1d);                        \
  _(conv2d);                        \
  _(conv3d);                        \
  _(conv_transpose1d);              \
  _(conv_transpose2d);              \
  _(conv_transpose3d);              \
  _(convolution);                   \
  _(max_pool1d);                    \
  _(max_pool2d);                    \
  _(max_pool3d);                    \
  _(avg_pool2d);                    \
  _(avg_pool3d);                    \
  _(adaptive_avg_pool2d);           \
  _(batch_norm);                    \
  _(layer_norm);                    \
  _(group_norm);                    \
  _(instance_norm);                 \
  _(native_layer_norm);             \
  _(softmax);                       \
  _(log_softmax);                   \
  _(einsum);                        \
  _(cumsum);                        \
  _(cumprod);                       \
  _(sort);                          \
  _(topk);                          \
  _(argsort);                       \
  _(unique);                        \
  _(index);                         \
  _(index_put_);                    \
  _(index_select);                  \
  _(gather);                        \
  _(scatter);                       \
  _(scatter_);                      \
  _(scatter_add_);                  \
  _(masked_fill);                   \
  _(masked_fill_);                  \
  _(where);                         \
  _(rand);                          \
  _(randn);                         \
  _(rand_like);                     \
  _(randn_like);                    \
  _(randint);                       \
  _(randperm);                      \
  _(bernoulli);                     \
  _(dropout);                       \
  _(logsumexp);                     \
  _(norm);                          \
  _(var);                           \
  _(std);                           \
  _(pad);                           \
  _(constant_pad_nd);               \
  _(argmax);                        \
  _(argmin);                        \
  _(argwhere);                      \
  _(nonzero);                       \
  _(tril);                          \
  _(triu);                          \
  _(triu_indices);                  \
  _(eye);                           \
  _(diag);                          \
  _(embedding);                     \
  _(scaled_dot_product_attention);  \
  _(addbmm);                        \
  _(baddbmm);                       \
  _(roll);                          \
  _(flip);                          \
  _(repeat_interleave);             \
  _(quantize_per_tensor);           \
  _(fft);                           \
  _(svd);                           \
  _(qr);                            \
  _(cholesky);                      \
  _(inverse);                       \
  _(all);                           \
  _(any);                           \
  _(isnan)

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<capstone_torch::Storage> storage, std::int64_t offset, capstone_torch::Sizes sizes,
         capstone_torch::Sizes strides, c10::ScalarType type, bool requires_grad = false)
      : it_(std::make_shared<It>(
            It{std::move(storage), offset, std::move(sizes), std::move(strides), type, requires_grad})) {}
  static Tensor made(c10::IntArrayRef sizes, const TensorOptions& options) {
    for (const std::int64_t size : sizes)
      TORCH_CHECK(size >= 0, "Trying to create tensor with negative dimension ", size, ": ", sizes);
    const std::size_t bytes = capstone_torch::count_of(sizes) * elementSize(options.dtype());
    return {std::make_shared<capstone_torch::Storage>(bytes, options.device()),
            0,
            sizes.vec(),
            capstone_torch::packed_strides(sizes),
            options.dtype(),
            options.requires_grad()};
  }

  bool defined() const { return it_ != nullptr; }
  std::int64_t dim() const { return it().sizes.size(); }
  std::int64_t ndimension() const { return dim(); }
  std::int64_t numel() const { return capstone_torch::count_of(it().sizes); }
  c10::IntArrayRef sizes() const { return it().sizes; }
  c10::IntArrayRef strides() const { return it().strides; }
  std::int64_t size(std::int64_t i) const { return it().sizes[place(i)]; }
  std::int64_t stride(std::int64_t i) const { return it().strides[place(i)]; }
  std::int64_t storage_offset() const { return it().offset; }
  c10::ScalarType scalar_type() const { return it().type; }
  c10::ScalarType dtype() const { return it().type; }
  c10::Device device() const { return it().storage->device; }
  c10::TypeProperties type() const { return {scalar_type(), is_cuda()}; }
  std::int64_t get_device() const { return device().is_cuda() ? 0 : -1; }
  c10::Layout layout() const { return c10::kStrided; }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  bool is_floating_point() const { return isFloatingType(it().type); }
  bool is_sparse() const { return false; }
  bool requires_grad() const { return it().requires_grad; }
  const Tensor& set_requires_grad(bool on) const { return it().requires_grad = on, *this; }
  const Tensor& requires_grad_(bool on = true) const { return set_requires_grad(on); }
  std::size_t element_size() const { return elementSize(it().type); }
  std::size_t itemsize() const { return element_size(); }
  std::size_t nbytes() const { return numel() * element_size(); }
  TensorOptions options() const { return TensorOptions(it().type).device(device()); }
  bool is_same(const Tensor& other) const { return it_ == other.it_; }
  bool is_contiguous(c10::MemoryFormat format = c10::MemoryFormat::Contiguous) const {
    std::int64_t step = 1;
    std::vector<std::int64_t> order(dim());
    std::iota(order.rbegin(), order.rend(), 0);
    if (format == c10::MemoryFormat::ChannelsLast || format == c10::MemoryFormat::ChannelsLast3d) {
      if (dim() != (format == c10::MemoryFormat::ChannelsLast ? 4 : 5)) return false;
      std::rotate(order.begin(), order.end() - 2, order.end() - 1);  // from the last: W, H, C becomes C, W, H
    }
    for (const std::int64_t i : order) {
      if (it().sizes[i] != 1 && it().strides[i] != step) return numel() == 0;
      step *= it().sizes[i];
    }
    return true;
  }
  std::shared_ptr<capstone_torch::Storage> storage_of() const { return it().storage; }

  void* data_ptr() const {
    return static_cast<char*>(it().storage->data) + it().offset * static_cast<std::int64_t>(element_size());
  }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  template <class T>
  T* data_ptr() const {
    using Plain = std::remove_const_t<T>;
    const c10::ScalarType asked = c10::CppTypeToScalarType<Plain>::value;
    TORCH_CHECK(asked == it().type, "expected scalar type ", asked, " but found ", it().type);
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }

  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = std::int64_t>
  GenericPackedTensorAccessor<T, N, Traits, Index> generic_packed_accessor() const {
    TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return {data_ptr<T>(), it().sizes.data(), it().strides.data()};
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  auto packed_accessor32() const {
    return generic_packed_accessor<T, N, Traits, std::int32_t>();
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits>
  auto packed_accessor64() const {
    return generic_packed_accessor<T, N, Traits, std::int64_t>();
  }
  template <class T, std::size_t N, template <class> class Traits = DefaultPtrTraits,
            class Index = std::int64_t>
  auto packed_accessor() const {
    return generic_packed_accessor<T, N, Traits, Index>();
  }
  template <class T, std::size_t N>
  TensorAccessor<T, N> accessor() const {
    TORCH_CHECK(dim() == N, "TensorAccessor expected ", N, " dims but tensor has ", dim());
    return {data_ptr<T>(), it().sizes.data(), it().strides.data()};
  }

  // Views.
  Tensor as_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                    std::optional<std::int64_t> offset = {}) const {
    return {it().storage,      offset.value_or(it().offset), sizes.vec(), strides.vec(), it().type,
            it().requires_grad};
  }
  Tensor view(c10::IntArrayRef sizes) const {
    const capstone_torch::Sizes whole = without_minus_one(sizes);
    if (is_contiguous()) return as_strided(whole, capstone_torch::packed_strides(whole));
    const auto strides = strides_of_view(whole);
    TORCH_CHECK(strides,
                "view size is not compatible with input tensor's size and stride (at least one dimension ",
                "spans across two contiguous subspaces). Use .reshape(...) instead.");
    return as_strided(whole, *strides);
  }
  Tensor reshape(c10::IntArrayRef sizes) const {
    const capstone_torch::Sizes whole = without_minus_one(sizes);
    if (const auto strides = strides_of_view(whole)) return as_strided(whole, *strides);
    return contiguous().view(whole);
  }
  Tensor view_as(const Tensor& other) const { return view(other.sizes()); }
  Tensor reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
  Tensor flatten(std::int64_t first = 0, std::int64_t last = -1) const {
    if (dim() == 0) return reshape({1});
    first = place(first), last = place(last);
    capstone_torch::Sizes sizes;
    for (std::int64_t i = 0; i < dim(); ++i)
      if (i > first && i <= last)
        sizes.back() *= size(i);
      else
        sizes.push_back(size(i));
    return reshape(sizes);
  }
  Tensor permute(c10::IntArrayRef order) const {
    TORCH_CHECK(static_cast<std::int64_t>(order.size()) == dim(), "permute: ", order.size(),
                " dimensions given for a tensor of ", dim());
    capstone_torch::Sizes sizes, strides;
    for (const std::int64_t i : order) sizes.push_back(size(i)), strides.push_back(stride(i));
    return as_strided(sizes, strides);
  }
  Tensor transpose(std::int64_t a, std::int64_t b) const {
    std::vector<std::int64_t> order(dim());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[place(a)], order[place(b)]);
    return permute(order);
  }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor unsqueeze(std::int64_t at) const {
    at = at < 0 ? at + dim() + 1 : at;
    capstone_torch::Sizes sizes = it().sizes, strides = it().strides;
    strides.insert(strides.begin() + at, at < dim() ? sizes[at] * strides[at] : 1);
    sizes.insert(sizes.begin() + at, 1);
    return as_strided(sizes, strides);
  }
  Tensor squeeze() const {
    Tensor result = *this;
    for (std::int64_t i = dim(); i-- > 0;) result = result.squeeze(i);
    return result;
  }
  Tensor squeeze(std::int64_t at) const {
    if (size(at) != 1) return *this;
    capstone_torch::Sizes sizes = it().sizes, strides = it().strides;
    sizes.erase(sizes.begin() + place(at));
    strides.erase(strides.begin() + place(at));
    return as_strided(sizes, strides);
  }
  Tensor expand(c10::IntArrayRef wanted) const {
    capstone_torch::Sizes sizes = wanted.vec(), strides(wanted.size(), 0);
    const std::int64_t more = static_cast<std::int64_t>(wanted.size()) - dim();
    TORCH_CHECK(more >= 0, "expand: ", wanted, " has fewer dimensions than the tensor's ", this->sizes());
    for (std::int64_t i = 0; i < dim(); ++i) {
      if (sizes[more + i] == -1) sizes[more + i] = size(i);
      if (size(i) == sizes[more + i]) strides[more + i] = stride(i);
      TORCH_CHECK(size(i) == 1 || size(i) == sizes[more + i], "The expanded size of the tensor (",
                  sizes[more + i], ") must match the existing size (", size(i),
                  ") at non-singleton dimension ", more + i);
    }
    return as_strided(sizes, strides);
  }
  Tensor expand_as(const Tensor& other) const { return expand(other.sizes()); }
  Tensor select(std::int64_t d, std::int64_t i) const {
    d = place(d);
    TORCH_CHECK_INDEX(i >= -size(d) && i < size(d), "select(): index ", i,
                      " out of range for tensor of size ", sizes(), " at dimension ", d);
    return narrow(d, i < 0 ? i + size(d) : i, 1).squeeze(d);
  }
  Tensor operator[](std::int64_t i) const { return select(0, i); }
  Tensor narrow(std::int64_t d, std::int64_t begin, std::int64_t length) const {
    TORCH_CHECK(begin >= 0 && length >= 0 && begin + length <= size(d), "start (", begin, ") + length (",
                length, ") exceeds dimension size (", size(d), ").");
    capstone_torch::Sizes sizes = it().sizes;
    sizes[place(d)] = length;
    return as_strided(sizes, strides(), it().offset + begin * stride(d));
  }
  Tensor slice(std::int64_t d = 0, std::optional<std::int64_t> from = {}, std::optional<std::int64_t> to = {},
               std::int64_t step = 1) const {
    auto inside = [&](std::int64_t i) {
      return std::clamp<std::int64_t>(i < 0 ? i + size(d) : i, 0, size(d));
    };
    const std::int64_t begin = inside(from.value_or(0)), end = std::max(begin, inside(to.value_or(size(d))));
    Tensor part = narrow(d, begin, end - begin);
    part.it_->sizes[place(d)] = (end - begin + step - 1) / step;
    part.it_->strides[place(d)] *= step;
    return part;
  }
  std::vector<Tensor> split(std::int64_t length, std::int64_t d = 0) const {
    std::vector<Tensor> parts;
    for (std::int64_t at = 0; at < size(d); at += length)
      parts.push_back(narrow(d, at, std::min(length, size(d) - at)));
    return parts;
  }
  std::vector<Tensor> chunk(std::int64_t parts, std::int64_t d = 0) const {
    return split((size(d) + parts - 1) / parts, d);
  }
  std::vector<Tensor> unbind(std::int64_t d = 0) const {
    std::vector<Tensor> parts;
    for (std::int64_t i = 0; i < size(d); ++i) parts.push_back(select(d, i));
    return parts;
  }
  Tensor detach() const { return as_strided(sizes(), strides()).set_requires_grad(false); }
  const Tensor& variable_data() const { return *this; }

  // Copies.
  Tensor contiguous(c10::MemoryFormat format = c10::MemoryFormat::Contiguous) const {
    if (is_contiguous(format)) return *this;
    Tensor copy = made(sizes(), options());
    if (format == c10::MemoryFormat::ChannelsLast || format == c10::MemoryFormat::ChannelsLast3d) {
      capstone_torch::Sizes order(dim());  // N, H, W, C
      std::iota(order.begin(), order.end(), 0);
      std::rotate(order.begin() + 1, order.begin() + 2, order.end());
      capstone_torch::Sizes sizes, strides(dim());
      for (const std::int64_t i : order) sizes.push_back(size(i));
      const capstone_torch::Sizes packed = capstone_torch::packed_strides(sizes);
      for (std::size_t i = 0; i < order.size(); ++i) strides[order[i]] = packed[i];
      copy = copy.as_strided(this->sizes(), strides);
    }
    return copy.copy_(*this);
  }
  Tensor clone() const { return made(sizes(), options()).copy_(*this); }
  Tensor clone(c10::MemoryFormat) const { return clone(); }
  Tensor to(c10::ScalarType type, bool = false, bool copy = false) const {
    return to(TensorOptions(type).device(device()), false, copy);
  }
  Tensor to(c10::Device device, bool = false, bool copy = false) const {
    return to(TensorOptions(scalar_type()).device(device), false, copy);
  }
  Tensor to(c10::DeviceType device) const { return to(c10::Device(device)); }
  Tensor to(c10::Device device, c10::ScalarType type, bool = false, bool copy = false) const {
    return to(TensorOptions(type).device(device), false, copy);
  }
  Tensor to(const TensorOptions& wanted, bool = false, bool copy = false) const {
    const c10::ScalarType type = wanted.has_dtype() ? wanted.dtype() : scalar_type();
    const c10::Device device = wanted.has_device() ? wanted.device() : this->device();
    if (!copy && type == scalar_type() && device == this->device()) return *this;
    return made(sizes(), TensorOptions(type).device(device)).copy_(*this);
  }
  Tensor to(const Tensor& like) const { return to(like.options()); }
  Tensor type_as(const Tensor& like) const { return to(like.options()); }
  Tensor toType(c10::ScalarType type) const { return to(type); }
  Tensor cpu() const { return to(c10::kCPU); }
  Tensor cuda() const { return to(c10::kCUDA); }
  Tensor half() const { return to(c10::kHalf); }
  Tensor bfloat16() const { return to(c10::kBFloat16); }
  const Tensor& copy_(const Tensor& from, bool = false) const {
    put(from.expand(sizes()).values());
    return *this;
  }
  const Tensor& fill_(c10::Scalar value) const {
    put(std::vector<long double>(numel(), value.to<long double>()));
    return *this;
  }
  const Tensor& zero_() const {
    if (!is_contiguous()) return fill_(0);
    if (is_cuda())
      capstone_torch::check_cuda(cudaMemset(data_ptr(), 0, nbytes()));
    else
      std::memset(data_ptr(), 0, nbytes());
    return *this;
  }
  template <class T = void>
  auto item() const {
    TORCH_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
    const long double value = values()[0];
    if constexpr (!std::is_void_v<T>)
      return static_cast<T>(value);
    else
      return is_floating_point() ? c10::Scalar(value) : c10::Scalar(static_cast<std::int64_t>(value));
  }
  Tensor new_empty(c10::IntArrayRef sizes) const { return made(sizes, options()); }
  Tensor new_empty(c10::IntArrayRef sizes, const TensorOptions& o) const { return made(sizes, filled_in(o)); }
  Tensor new_zeros(c10::IntArrayRef sizes) const { return made(sizes, options()).zero_(); }
  Tensor new_zeros(c10::IntArrayRef sizes, const TensorOptions& o) const {
    return made(sizes, filled_in(o)).zero_();
  }

  // Plain operators, on the host; each result is rounded once to the tensor's type.
  Tensor sum() const;
  Tensor sum(c10::IntArrayRef dims, bool keepdim = false) const;
  Tensor mean() const;
  Tensor mean(c10::IntArrayRef dims, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;
  Tensor amax(c10::IntArrayRef dims, bool keepdim = false) const;
  Tensor amin(c10::IntArrayRef dims, bool keepdim = false) const;
  Tensor abs() const;
  Tensor exp() const;
  Tensor log() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor tanh() const;
  Tensor sigmoid() const;
  Tensor relu() const;
  Tensor neg() const;
  Tensor pow(c10::Scalar exponent) const;
  Tensor clamp(std::optional<c10::Scalar> low, std::optional<c10::Scalar> high = {}) const;
  Tensor add(const Tensor& other, c10::Scalar alpha = 1) const;
  Tensor sub(const Tensor& other, c10::Scalar alpha = 1) const;
  Tensor mul(const Tensor& other) const;
  Tensor div(const Tensor& other) const;
  Tensor add(c10::Scalar other) const;
  Tensor sub(c10::Scalar other) const;
  Tensor mul(c10::Scalar other) const;
  Tensor div(c10::Scalar other) const;
  template <class T>
  const Tensor& add_(const T& other) const {
    return copy_(add(other));
  }
  template <class T>
  const Tensor& sub_(const T& other) const {
    return copy_(sub(other));
  }
  template <class T>
  const Tensor& mul_(const T& other) const {
    return copy_(mul(other));
  }
  template <class T>
  const Tensor& div_(const T& other) const {
    return copy_(div(other));
  }
  template <class T>
  const Tensor& operator+=(const T& other) const {
    return add_(other);
  }
  template <class T>
  const Tensor& operator-=(const T& other) const {
    return sub_(other);
  }
  template <class T>
  const Tensor& operator*=(const T& other) const {
    return mul_(other);
  }
  template <class T>
  const Tensor& operator/=(const T& other) const {
    return div_(other);
  }
  Tensor operator-() const { return neg(); }
  Tensor matmul(const Tensor& other) const;
  Tensor mm(const Tensor& other) const { return matmul(other); }
  Tensor bmm(const Tensor& other) const { return matmul(other); }
  bool equal(const Tensor& other) const {
    return sizes() == other.sizes() && scalar_type() == other.scalar_type() && values() == other.values();
  }
  CAPSTONE_TORCH_ALL_LACKS(CAPSTONE_TORCH_LACKS);

  /// The elements in order, each exact.
  std::vector<long double> values() const {
    std::vector<long double> all(numel());
    std::vector<char> bytes = raw();
    with_type(scalar_type(), [&](auto kind) {
      using T = decltype(kind);
      const T* data = reinterpret_cast<const T*>(bytes.data());
      capstone_torch::for_each_offset(it().sizes, it().strides, [&](std::int64_t i, std::int64_t offset) {
        if constexpr (std::is_arithmetic_v<T>)
          all[i] = data[offset];
        else
          all[i] = static_cast<float>(data[offset]);
      });
    });
    return all;
  }
  /// Stores the elements in order, rounded to the tensor's type.
  void put(const std::vector<long double>& all) const {
    std::vector<char> bytes = raw();
    with_type(scalar_type(), [&](auto kind) {
      using T = decltype(kind);
      T* data = reinterpret_cast<T*>(bytes.data());
      capstone_torch::for_each_offset(it().sizes, it().strides, [&](std::int64_t i, std::int64_t offset) {
        if constexpr (std::is_arithmetic_v<T>)
          data[offset] = static_cast<T>(all[i]);
        else
          data[offset] = static_cast<T>(static_cast<float>(all[i]));
      });
    });
    if (is_cuda())
      capstone_torch::check_cuda(cudaMemcpy(data_ptr(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    else
      std::memcpy(data_ptr(), bytes.data(), bytes.size());
  }

 private:
  struct It {
    std::shared_ptr<capstone_torch::Storage> storage;
    std::int64_t offset;  // of the first element, in elements
    capstone_torch::Sizes sizes, strides;
    c10::ScalarType type;
    bool requires_grad;
  };
  It& it() const {
    TORCH_CHECK(it_, "an undefined Tensor is used");
    return *it_;
  }
  std::size_t place(std::int64_t i) const {
    TORCH_CHECK_INDEX(i >= -dim() && i < dim(), "Dimension out of range (expected to be in range of [",
                      -dim(), ", ", dim() - 1, "], but got ", i, ")");
    return i < 0 ? i + dim() : i;
  }
  /// What lies between the first element and the last.
  std::vector<char> raw() const {
    if (numel() == 0) return {};
    std::int64_t last = 0;
    for (std::int64_t i = 0; i < dim(); ++i) last += (size(i) - 1) * stride(i);
    std::vector<char> bytes((last + 1) * element_size());
    if (is_cuda())
      capstone_torch::check_cuda(cudaMemcpy(bytes.data(), data_ptr(), bytes.size(), cudaMemcpyDeviceToHost));
    else
      std::memcpy(bytes.data(), data_ptr(), bytes.size());
    return bytes;
  }
  capstone_torch::Sizes without_minus_one(c10::IntArrayRef sizes) const {
    capstone_torch::Sizes whole = sizes.vec();
    const auto open = std::find(whole.begin(), whole.end(), -1);
    if (open != whole.end()) {
      *open = 1;
      const std::int64_t rest = capstone_torch::count_of(whole);
      *open = rest ? numel() / rest : 0;
    }
    TORCH_CHECK(capstone_torch::count_of(whole) == numel(), "shape '", sizes,
                "' is invalid for input of size ", numel());
    return whole;
  }
  /// Each of the new dimensions must lie in a run of old ones that follow each other in memory.
  std::optional<capstone_torch::Sizes> strides_of_view(const capstone_torch::Sizes& wanted) const {
    if (numel() == 0) return capstone_torch::packed_strides(wanted);
    capstone_torch::Sizes strides(wanted.size(), 1);
    std::int64_t j = static_cast<std::int64_t>(wanted.size()) - 1;
    std::int64_t run = 1, step = dim() ? it().strides.back() : 1;
    for (std::int64_t i = dim() - 1; i >= 0; --i) {
      run *= size(i);
      if (i > 0 && (size(i - 1) == 1 || stride(i - 1) == run * step)) continue;
      std::int64_t filled = 1;
      for (; j >= 0 && (filled < run || wanted[j] == 1); --j) {
        strides[j] = filled * step;
        filled *= wanted[j];
      }
      if (filled != run) return {};
      if (i > 0) step = stride(i - 1), run = 1;
    }
    return strides;
  }
  TensorOptions filled_in(const TensorOptions& o) const {
    return TensorOptions(o.has_dtype() ? o.dtype() : scalar_type())
        .device(o.has_device() ? o.device() : device());
  }
  std::shared_ptr<It> it_;
};

inline std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  if (!tensor.defined()) return out << "[ Tensor (undefined) ]";
  out << "[ " << (tensor.is_cuda() ? "CUDA" : "CPU") << tensor.scalar_type() << "Type" << tensor.sizes()
      << " ]";
  constexpr std::size_t kMost = 100;
  std::size_t printed = 0;
  for (const long double value : tensor.values()) {
    if (printed++ == kMost) return out << " …";
    out << " " << value;
  }
  return out;
}

}  // namespace at
