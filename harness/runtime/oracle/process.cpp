// capstone-oracle LIBRARY: a process that loads a problem's compiled oracle.cpp and computes expected values
// for the judge (worker/protocol.md). It runs in the sandbox: the oracle may be a stranger's.
#include <dlfcn.h>
#include <sys/mman.h>

#include <exception>
#include <string>
#include <vector>

#include "harness/base/packet.h"
#include "harness/base/parallel.h"
#include "problems/oracle.h"

namespace {

using capstone::Json;
using Function = decltype(&capstone_oracle);

constexpr std::int64_t kMostChunk = 1 << 16;  // elements per call: enough to share work between neighbours

Json failure(const char* kind, const std::string& message) {
  return {{"ok", false}, {"kind", kind}, {"message", message}};
}

/// Elements per call: several calls per thread for balance, and whole rows if rows are short, because an
/// oracle may compute a row's statistics once for all its elements.
std::int64_t chunk_for(std::int64_t count, std::int64_t row, int threads) {
  const std::int64_t even =
      std::clamp<std::int64_t>(count / (std::int64_t{threads} * 8) + 1, 256, kMostChunk);
  if (row < 1 || row > kMostChunk) return even;
  return (even + row - 1) / row * row;
}

class OracleProcess {
 public:
  explicit OracleProcess(const char* library) : library_(library) {}

  Json answer(const capstone::Packet& packet) {
    const Json& request = packet.message;
    const std::string op = request.at("op");
    if (op == "hello") return load();
    if (op == "arena") return map(packet.fd.get(), request.at("bytes"));
    if (op == "evaluate") return evaluate(request);
    return failure("exception", "unknown request: " + op);
  }

 private:
  Json load() {
    void* handle = ::dlopen(library_, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = ::dlerror();
      return failure("load", why ? why : "unknown reason");
    }
    function_ = reinterpret_cast<Function>(::dlsym(handle, "capstone_oracle"));
    if (!function_) return failure("no_function", "oracle.cpp defines no capstone_oracle()");
    return {{"ok", true}, {"protocol", 1}, {"backend", "oracle"}};
  }

  Json map(int fd, std::size_t bytes) {
    if (memory_) ::munmap(memory_, bytes_);
    void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memory_ = mapped == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapped);
    bytes_ = bytes;
    return memory_ ? Json{{"ok", true}} : failure("out_of_memory", "the shared memory cannot be mapped");
  }

  template <class T>
  T* at(const Json& offset) const {
    return reinterpret_cast<T*>(memory_ + offset.get<std::size_t>());
  }

  Json evaluate(const Json& request) const {
    const std::size_t parameters = request.at("parameters").size();
    std::vector<std::string> names(parameters), dtypes(parameters);
    std::vector<std::vector<std::int64_t>> shapes(parameters);
    std::vector<CapstoneTensor> tensors;
    for (std::size_t i = 0; i < parameters; ++i) {
      const Json& p = request.at("parameters").at(i);
      names[i] = p.at("name");
      dtypes[i] = p.at("dtype");
      if (p.contains("shape")) shapes[i] = p.at("shape").get<std::vector<std::int64_t>>();
      tensors.push_back({names[i].c_str(), dtypes[i].c_str(),
                         p.contains("at") ? at<const void>(p.at("at")) : nullptr,
                         shapes[i].empty() ? nullptr : shapes[i].data(), static_cast<int>(shapes[i].size()),
                         p.value("scalar", 0.0)});
    }
    const auto sizes = request.at("sizes").get<std::vector<std::int64_t>>();
    const CapstoneCase view{tensors.data(), static_cast<int>(tensors.size()), sizes.data(),
                            static_cast<int>(sizes.size())};
    const int output = request.at("output");
    const std::int64_t count = request.at("count");
    double* value = at<double>(request.at("value"));
    double* scale = at<double>(request.at("scale"));
    const bool listed = request.contains("indices");
    const std::int64_t* indices = listed ? at<const std::int64_t>(request.at("indices")) : nullptr;
    const std::int64_t first = listed ? 0 : request.at("first").get<std::int64_t>();
    const auto& shape = shapes.at(static_cast<std::size_t>(output));
    const int threads = capstone::threads_or_all(0);
    capstone::parallel_for(count, chunk_for(count, shape.empty() ? 1 : shape.back(), threads), threads,
                           [&](std::int64_t begin, std::int64_t end) {
                             std::vector<std::int64_t> run;
                             if (!listed)
                               for (std::int64_t i = begin; i < end; ++i) run.push_back(first + i);
                             function_(&view, output, listed ? indices + begin : run.data(), end - begin,
                                       value + begin, scale + begin);
                           });
    return {{"ok", true}};
  }

  const char* library_;
  Function function_ = nullptr;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  capstone::WorkerChannel channel;
  OracleProcess process(argv[1]);
  while (auto packet = channel.receive()) {
    Json answer;
    try {
      answer = process.answer(*packet);
    } catch (const std::exception& exception) {
      answer = failure("exception", exception.what());
    } catch (...) {
      answer = failure("exception", "it threw something that is not a std::exception");
    }
    if (!channel.send(answer)) break;
  }
}
