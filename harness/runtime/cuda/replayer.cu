// capstone-replayer: the trusted process that runs a submission's captured launch on the GPU host's tensors
// and times it.
//
// It loads the submission's device code and never its host code. Expected values are in another process. The
// judge has checked the form of the captured graph. This program checks it against the module: functions,
// their parameters, the size of variables.
#include <cuda_profiler_api.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "harness/correctness/random.h"
#include "harness/runtime/cuda/cuda_common.h"

namespace {

using namespace capstone::gpu;
using Json = capstone::Json;
using Clock = std::chrono::steady_clock;

__global__ void poison_bytes(unsigned long long seed, unsigned char* out, long long bytes) {
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < bytes;
       i += (long long)gridDim.x * blockDim.x)
    out[i] = capstone::random::poison_byte_at(seed, i);
}

// Memory that must stay as it was poisoned while a kernel runs.
struct Watched {
  const unsigned char* bytes;
  long long size;
  unsigned long long seed;
};

// Looks at guard bands again and again until `stop`: a kernel that borrows them and puts back what was there
// is seen. It ends by itself, because a cooperative launch may have to wait for its place.
__global__ void watch(const Watched* ranges, int count, volatile int* stop, int* touched,
                      long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    for (int r = 0; r < count; ++r)
      for (long long i = threadIdx.x; i < ranges[r].size; i += blockDim.x)
        if (static_cast<const volatile unsigned char*>(ranges[r].bytes)[i] !=
            capstone::random::poison_byte_at(ranges[r].seed, i))
          *touched = 1;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (!*stop && now - begin < nanoseconds);
}

std::vector<char> read_all(int fd, std::size_t bytes) {
  std::vector<char> text(bytes);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) throw std::runtime_error("a packet cannot be mapped");
  std::memcpy(text.data(), mapped, bytes);
  ::munmap(mapped, bytes);
  return text;
}

// The submission's device code: one module for each fat binary in its object file.
class Code {
 public:
  explicit Code(std::vector<char> image) : image_(std::move(image)) {
    struct Header {  // of a fat binary
      std::uint32_t magic;
      std::uint16_t version, header_bytes;
      std::uint64_t bytes;
    } header;
    for (std::size_t at = 0; at + sizeof header <= image_.size();) {
      std::memcpy(&header, &image_[at], sizeof header);
      if (header.magic != 0xba55ed50u) {  // padding between two fat binaries
        at += 8;
        continue;
      }
      CUmodule module{};
      // A part without code for this device holds none of the kernels.
      if (CAPSTONE_DRIVER(cuModuleLoadData)(&module, &image_[at]) == CUDA_SUCCESS) modules_.push_back(module);
      at += header.header_bytes + header.bytes;
    }
    if (modules_.empty()) throw std::runtime_error("the built kernel holds no code for this GPU");
  }

  CUfunction function(const std::string& name) const {
    CUfunction found{};
    for (CUmodule module : modules_)
      if (CAPSTONE_DRIVER(cuModuleGetFunction)(&found, module, name.c_str()) == CUDA_SUCCESS) return found;
    throw Foreign("kernel " + name + " is not in the submission's own code");
  }
  CUdeviceptr global(const std::string& name, std::size_t offset, std::size_t bytes) const {
    CUdeviceptr address = 0;
    std::size_t size = 0;
    for (CUmodule module : modules_)
      if (CAPSTONE_DRIVER(cuModuleGetGlobal)(&address, &size, module, name.c_str()) == CUDA_SUCCESS) {
        if (offset > size || bytes > size - offset)
          throw Foreign("the variable " + name + " is smaller than the plan says");
        return address + offset;
      }
    throw Foreign("variable " + name + " is not in the submission's own code");
  }
  Json functions() const {
    Json names = Json::array();
    for (CUmodule module : modules_) {
      unsigned count = 0;
      CAPSTONE_CU(cuModuleGetFunctionCount, &count, module);
      if (count == 0) continue;
      std::vector<CUfunction> list(count);
      CAPSTONE_CU(cuModuleEnumerateFunctions, list.data(), count, module);
      for (CUfunction function : list) {
        const char* name = nullptr;
        CAPSTONE_CU(cuFuncGetName, &name, function);
        if (names.size() < 256) names.push_back(name);
      }
    }
    return names;
  }

  // The captured graph names something that the submission does not have, usually a library's kernel.
  struct Foreign : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

 private:
  std::vector<char> image_;
  std::vector<CUmodule> modules_;
};

// One step of a captured graph, ready to be enqueued on a stream.
struct Step {
  enum Kind { kKernel, kMemset, kCopy } kind;
  CUlaunchConfig config{};
  CUfunction function{};
  std::vector<CUlaunchAttribute> attributes;
  std::vector<char> bytes;
  std::vector<void*> params;
  bool early = false;  // a programmatic launch: it may start before its predecessor has
                       // ended
  int max_shared = 0, carveout = -1;
  bool portable = true;
  CUdeviceptr dst = 0, src = 0;
  const void* host = nullptr;
  std::size_t width = 0, height = 0, dst_pitch = 0, src_pitch = 0;
  unsigned value = 0, element = 1;
  std::vector<int> after;

  void enqueue(cudaStream_t stream) {
    switch (kind) {
      case kKernel:
        config.hStream = stream;
        config.attrs = attributes.data();
        config.numAttrs = static_cast<unsigned>(attributes.size());
        if (CUresult code = CAPSTONE_DRIVER(cuLaunchKernelEx)(&config, function, params.data(), nullptr);
            code != CUDA_SUCCESS) {
          const char* text = "unknown error";
          CAPSTONE_DRIVER(cuGetErrorString)(code, &text);
          throw Refusal(text);
        }
        break;
      case kMemset: {
        const CUstream s = stream;
        if (element == 1)
          CAPSTONE_CU(cuMemsetD2D8Async, dst, pitch(), static_cast<unsigned char>(value), width, height, s);
        else if (element == 2)
          CAPSTONE_CU(cuMemsetD2D16Async, dst, pitch(), static_cast<unsigned short>(value), width, height, s);
        else
          CAPSTONE_CU(cuMemsetD2D32Async, dst, pitch(), value, width, height, s);
        break;
      }
      case kCopy:
        CAPSTONE_CUDA(cudaMemcpy2DAsync(reinterpret_cast<void*>(dst), height > 1 ? dst_pitch : width,
                                        host ? host : reinterpret_cast<const void*>(src),
                                        height > 1 ? src_pitch : width, width, height,
                                        host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice, stream));
        break;
    }
  }

  // The driver refused the launch.
  struct Refusal : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

 private:
  std::size_t pitch() const { return height > 1 ? dst_pitch : width * element; }
};

// A captured call: its steps in order on one stream if they form a chain, else as a graph. A chain with a
// programmatic launch is a graph, too: on a stream, what follows such a kernel waits for that kernel alone,
// and that kernel need not wait for the one before it. The graph ends when every step has ended.
class Sequence {
 public:
  Sequence(std::vector<Step> steps, bool chain) : steps_(std::move(steps)) {
    const bool early = std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.early; });
    if (!chain || early) instantiate(chain);
  }
  ~Sequence() {
    if (graph_) cudaGraphExecDestroy(graph_);
    if (end_of_graph_) cudaEventDestroy(end_of_graph_);
  }
  Sequence(const Sequence&) = delete;

  void enqueue(cudaStream_t stream) {
    if (graph_) {
      CAPSTONE_CUDA(cudaGraphLaunch(graph_, stream));
      return;
    }
    for (Step& step : steps_) {
      // These limits belong to the function, not to the launch, and another case may have changed them.
      if (step.kind == Step::kKernel) prepare(step);
      step.enqueue(stream);
    }
  }

 private:
  static void prepare(const Step& step) {
    static std::map<CUfunction, std::pair<int, int>> now;
    auto& [shared, carveout] = now.emplace(step.function, std::make_pair(-1, -1)).first->second;
    if (shared != step.max_shared) {
      CAPSTONE_CU(cuFuncSetAttribute, step.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                  step.max_shared);
      shared = step.max_shared;
    }
    if (carveout != step.carveout) {
      CAPSTONE_CU(cuFuncSetAttribute, step.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                  step.carveout);
      carveout = step.carveout;
    }
    if (!step.portable)
      CAPSTONE_CU(cuFuncSetAttribute, step.function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }

  // Captures the steps into a graph: a chain on one stream, else each step on a stream of its own, ordered by
  // events. An event at the end waits for each of them.
  void instantiate(bool chain) {
    std::vector<cudaStream_t> streams(chain ? 1 : steps_.size() + 1);
    for (cudaStream_t& stream : streams)
      CAPSTONE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    const cudaStream_t origin = streams.back();
    std::vector<cudaEvent_t> ends(steps_.size());
    cudaEvent_t begin{}, all{};
    for (cudaEvent_t* event : {&begin, &all})
      CAPSTONE_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    CAPSTONE_CUDA(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed));
    CAPSTONE_CUDA(cudaEventRecord(begin, origin));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const cudaStream_t stream = chain ? origin : streams[i];
      CAPSTONE_CUDA(cudaEventCreateWithFlags(&ends[i], cudaEventDisableTiming));
      if (!chain) {
        CAPSTONE_CUDA(cudaStreamWaitEvent(stream, begin, 0));
        for (int before : steps_[i].after)
          CAPSTONE_CUDA(cudaStreamWaitEvent(stream, ends[static_cast<std::size_t>(before)], 0));
      }
      if (steps_[i].kind == Step::kKernel) prepare(steps_[i]);
      steps_[i].enqueue(stream);
      CAPSTONE_CUDA(cudaEventRecord(ends[i], stream));
    }
    for (cudaEvent_t end : ends) CAPSTONE_CUDA(cudaStreamWaitEvent(origin, end, 0));
    CAPSTONE_CUDA(cudaEventRecordWithFlags(all, origin, cudaEventRecordExternal));
    cudaGraph_t graph{};
    CAPSTONE_CUDA(cudaStreamEndCapture(origin, &graph));
    CAPSTONE_CUDA(cudaGraphInstantiate(&graph_, graph, 0));
    cudaGraphDestroy(graph);
    for (cudaEvent_t end : ends) cudaEventDestroy(end);
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
    cudaEventDestroy(begin);
    end_of_graph_ = all;
  }

  std::vector<Step> steps_;
  cudaGraphExec_t graph_ = nullptr;
  cudaEvent_t end_of_graph_ = nullptr;  ///< recorded by the graph: it must outlive it
};

struct CapturedGraph {
  std::vector<char> data;
  std::unique_ptr<Sequence> first, steady;
  bool begun = false;
};

class Replayer {
 public:
  Replayer() {
    CAPSTONE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CAPSTONE_CUDA(cudaEventCreate(&begin_));
    CAPSTONE_CUDA(cudaEventCreate(&end_));
    spin<<<1, 1, 0, stream_>>>(0);  // loaded now, so that loading does not disturb a sample
    CAPSTONE_CUDA(cudaStreamSynchronize(stream_));
  }

  Json handle(const Json& request, int fd) {
    const std::string op = request.value("op", "");
    if (op == "hello") return {{"ok", true}, {"protocol", 1}, {"backend", "cuda"}};
    if (op == "arena") {
      arena_.import(fd, request.at("bytes").get<std::size_t>());
      if (!arena_.at_fixed_address()) throw std::runtime_error("the address range for tensors is taken");
      return {{"ok", true}};
    }
    if (op == "module") {
      code_ = std::make_unique<Code>(read_all(fd, request.at("bytes").get<std::size_t>()));
      return {{"ok", true}, {"functions", code_->functions()}};
    }
    if (op == "plan") return take_graph(request, fd);
    if (op == "run") return run(request);
    return {{"ok", false}, {"kind", "exception"}, {"message", "unknown request: " + op}};
  }

  // Runs one captured call on tensors from files, for a profiler, which cannot use a channel. FOLDER holds
  // once.json ({"arena_bytes":N,"written":[{"at":OFFSET,"bytes":N},…]}), code.fatbin, arena.bin, run.plan
  // and, if the problem has prepare(), prepare.plan; the output is written.bin. Only the steady launch is
  // between the profiler's start and stop.
  void play_once(const std::string& folder) {
    const std::vector<char> text = read_whole(folder + "/once.json"),
                            image = read_whole(folder + "/arena.bin");
    const Json once = capstone::parse_json({text.data(), text.size()});
    arena_.create_private(once.at("arena_bytes").get<std::size_t>());
    if (!arena_.at_fixed_address()) throw std::runtime_error("the address range for tensors is taken");
    if (image.size() > arena_.size()) throw std::runtime_error("arena.bin is larger than the arena");
    code_ = std::make_unique<Code>(read_whole(folder + "/code.fatbin"));
    CAPSTONE_CUDA(cudaMemcpy(arena_.base(), image.data(), image.size(), cudaMemcpyHostToDevice));
    if (::access((folder + "/prepare.plan").c_str(), R_OK) == 0) {
      const auto preparation = load_graph(read_whole(folder + "/prepare.plan"), 1);
      preparation->first->enqueue(stream_);
      CAPSTONE_CUDA(cudaStreamSynchronize(stream_));
    }
    const auto graph = load_graph(read_whole(folder + "/run.plan"), 2);
    graph->first->enqueue(stream_);
    CAPSTONE_CUDA(cudaStreamSynchronize(stream_));
    for (const Json& part : once.at("written")) {
      const auto at = part.at("at").get<std::size_t>();
      CAPSTONE_CUDA(cudaMemcpy(arena_.base() + at, image.data() + at, part.at("bytes").get<std::size_t>(),
                               cudaMemcpyHostToDevice));
    }
    CAPSTONE_CUDA(cudaProfilerStart());
    graph->steady->enqueue(stream_);
    CAPSTONE_CUDA(cudaStreamSynchronize(stream_));
    CAPSTONE_CUDA(cudaProfilerStop());
    std::vector<char> written;
    for (const Json& part : once.at("written")) {
      const auto bytes = part.at("bytes").get<std::size_t>();
      written.resize(written.size() + bytes);
      CAPSTONE_CUDA(cudaMemcpy(written.data() + written.size() - bytes,
                               arena_.base() + part.at("at").get<std::size_t>(), bytes,
                               cudaMemcpyDeviceToHost));
    }
    std::ofstream out(folder + "/written.bin", std::ios::binary);
    out.write(written.data(), static_cast<std::streamsize>(written.size()));
    if (!out.flush()) throw std::runtime_error("written.bin cannot be written");
  }

 private:
  static std::vector<char> read_whole(const std::string& path) {
    std::ifstream in(path, std::ios::binary | std::ios::ate);
    std::vector<char> bytes(in ? static_cast<std::size_t>(in.tellg()) : 0);
    if (!in || !in.seekg(0).read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      throw std::runtime_error(path + " cannot be read");
    return bytes;
  }

  Json take_graph(const Json& request, int fd) try {
    if (!code_) throw std::runtime_error("a captured graph before its module");
    graphs_[request.at("plan").get<int>()] = load_graph(read_all(fd, request.at("bytes").get<std::size_t>()),
                                                        request.at("seed").get<std::uint64_t>());
    return {{"ok", true}};
  } catch (const Code::Foreign& foreign) {
    return {{"ok", true}, {"foreign", foreign.what()}};
  }

  std::unique_ptr<CapturedGraph> load_graph(const std::vector<char>& packet, std::uint64_t seed) {
    std::uint64_t length = 0;
    if (packet.size() < sizeof length) throw std::runtime_error("a captured graph without a header");
    std::memcpy(&length, packet.data(), sizeof length);
    if (length > packet.size() - sizeof length)
      throw std::runtime_error("a captured graph longer than its packet");
    const char* text = packet.data() + sizeof length;
    const Json document = capstone::parse_json({text, length});
    auto graph = std::make_unique<CapturedGraph>();
    graph->data.assign(text + length, text + packet.size() - sizeof length);
    auto [fresh, bytes] = scratch_.grow(std::max<std::size_t>(document.at("scratch").get<std::size_t>(), 1));
    if (bytes) {
      poison_bytes<<<1024, 256, 0, stream_>>>(seed, reinterpret_cast<unsigned char*>(fresh),
                                              static_cast<long long>(bytes));
      CAPSTONE_CUDA(cudaStreamSynchronize(stream_));
    }
    graph->first = sequence(document.at("first"), *graph);
    graph->steady = sequence(document.at("steady"), *graph);
    return graph;
  }

  std::unique_ptr<Sequence> sequence(const Json& nodes, CapturedGraph& graph) {
    std::vector<Step> steps;
    bool chain = true;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      steps.push_back(step(nodes[i], graph));
      Step& made = steps.back();
      auto follows = [&](const std::vector<int>& list) {
        return list.size() == 1 && list[0] == static_cast<int>(i) - 1;
      };
      std::vector<int> early =
          nodes[i].contains("early") ? nodes[i]["early"].get<std::vector<int>>() : std::vector<int>{};
      made.early = early.size() == 1 && made.after.empty() && follows(early);
      if (i > 0 && !made.early && !(early.empty() && follows(made.after))) chain = false;
      if (i == 0 && !made.after.empty()) chain = false;
      made.after.insert(made.after.end(), early.begin(), early.end());
    }
    for (Step& step : steps)
      if (chain && step.early) {
        CUlaunchAttribute attribute{};
        attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        step.attributes.push_back(attribute);
      }
    return std::make_unique<Sequence>(std::move(steps), chain);
  }

  CUdeviceptr address(const Json& at, std::size_t bytes) const {
    if (at.contains("global")) return code_->global(at["global"], at["offset"].get<std::size_t>(), bytes);
    const bool tensor = at.contains("arena");
    const std::size_t offset = at[tensor ? "arena" : "scratch"],
                      space = tensor ? arena_.size() : scratch_.size();
    if (offset > space || bytes > space - offset)
      throw Code::Foreign("the plan leaves the memory of the case");
    return reinterpret_cast<CUdeviceptr>(tensor ? arena_.base() : scratch_.base()) + offset;
  }

  Step step(const Json& node, CapturedGraph& graph) {
    Step s{};
    s.after = node.at("after").get<std::vector<int>>();
    const std::string kind = node.at("kind");
    if (kind == "kernel") {
      kernel(node, s);
      return s;
    }
    s.width = node.at("width");
    s.height = node.at("height");
    if (kind == "memset") {
      s.kind = Step::kMemset;
      s.value = node.at("value");
      s.element = node.at("element");
      s.dst_pitch = node.at("pitch");
      s.dst = address(node.at("dst"), (s.height - 1) * s.dst_pitch + s.width * s.element);
      return s;
    }
    s.kind = Step::kCopy;
    s.dst_pitch = node.at("dst_pitch");
    s.src_pitch = node.at("src_pitch");
    s.dst = address(node.at("dst"), (s.height - 1) * s.dst_pitch + s.width);
    const std::size_t from = (s.height - 1) * s.src_pitch + s.width;
    const Json& src = node.at("src");
    if (src.contains("data")) {
      std::size_t at = src["data"];
      if (at > graph.data.size() || from > graph.data.size() - at)
        throw Code::Foreign("the plan leaves its data");
      s.host = graph.data.data() + at;
    } else {
      s.src = address(src, from);
    }
    return s;
  }

  void kernel(const Json& node, Step& s) {
    s.kind = Step::kKernel;
    s.function = code_->function(node.at("function"));
    const std::string hex = node.at("params");
    s.bytes.resize(hex.size() / 2);
    for (std::size_t i = 0; i < s.bytes.size(); ++i)
      s.bytes[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    if (node.contains("relocations"))
      for (const Json& relocation : node["relocations"]) {
        CUdeviceptr value = code_->global(relocation["global"], relocation["offset"].get<std::size_t>(), 0);
        std::memcpy(&s.bytes.at(relocation["at"].get<std::size_t>()), &value, sizeof value);
      }
    const Json& sizes = node.at("sizes");
    for (std::size_t i = 0;; ++i) {
      std::size_t offset = 0, size = 0;
      bool has = CAPSTONE_DRIVER(cuFuncGetParamInfo)(s.function, i, &offset, &size) == CUDA_SUCCESS;
      if (has != (i < sizes.size()) ||
          (has && (sizes[i][0] != offset || sizes[i][1] != size || offset + size > s.bytes.size())))
        throw Code::Foreign("the parameters of a kernel are not those of the submission's code");
      if (!has) break;
      s.params.push_back(s.bytes.data() + offset);  // the vector's buffer moves with the step
    }
    s.config.gridDimX = node["grid"][0];
    s.config.gridDimY = node["grid"][1];
    s.config.gridDimZ = node["grid"][2];
    s.config.blockDimX = node["block"][0];
    s.config.blockDimY = node["block"][1];
    s.config.blockDimZ = node["block"][2];
    s.config.sharedMemBytes = node["shared"];
    s.max_shared = node["max_shared"].get<int>();
    s.carveout = node.value("carveout", -1);
    s.portable = node.value("portable", true);
    auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
      s.attributes.emplace_back();
      s.attributes.back().id = id;
      return s.attributes.back().value;
    };
    if (node.contains("cluster")) {
      auto& dim = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
      dim.x = node["cluster"][0];
      dim.y = node["cluster"][1];
      dim.z = node["cluster"][2];
    }
    if (node.contains("cluster_policy"))
      add(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE).clusterSchedulingPolicyPreference =
          static_cast<CUclusterSchedulingPolicy>(node["cluster_policy"].get<int>());
    if (node.value("cooperative", false)) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
    if (node.contains("window")) {
      const Json& window = node["window"];
      auto& policy = add(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW).accessPolicyWindow;
      policy.num_bytes = window["bytes"];
      policy.base_ptr = reinterpret_cast<void*>(address(window["base"], policy.num_bytes));
      policy.hitRatio = window["ratio"];
      policy.hitProp = static_cast<CUaccessProperty>(window["hit"].get<int>());
      policy.missProp = static_cast<CUaccessProperty>(window["miss"].get<int>());
    }
  }

  // One timed sample (repeat = 1, hidden behind a spin) or `repeat` calls back to back. The first run of a
  // captured graph is the submission's first call, which may prepare state for later calls.
  Json run(const Json& request) try {
    auto found = graphs_.find(request.at("plan").get<int>());
    if (found == graphs_.end()) throw std::runtime_error("no such plan");
    CapturedGraph& graph = *found->second;
    int repeat = std::max(1, request.value("repeat", 1));
    cudaGetLastError();
    const bool watched = request.contains("watch");
    if (watched) begin_watch(request["watch"]);
    if (long long hide = request.value("hide_ns", 0ll); hide > 0) spin<<<1, 1, 0, stream_>>>(hide);
    CAPSTONE_CUDA(cudaEventRecord(begin_, stream_));
    auto t0 = Clock::now();
    for (int i = 0; i < repeat; ++i) {
      (graph.begun ? graph.steady : graph.first)->enqueue(stream_);
      graph.begun = true;
    }
    auto t1 = Clock::now();
    cudaEventRecord(end_, stream_);
    if (watched) {
      cudaStreamSynchronize(stream_);
      flags_[0] = 1;  // the watcher may end
    }
    cudaError_t finished =
        CAPSTONE_DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS ? cudaSuccess : cudaGetLastError();
    auto t2 = Clock::now();
    if (finished == cudaSuccess) finished = cudaGetLastError();
    if (finished != cudaSuccess) return launch_failure(cudaSuccess, finished);
    float ms = 0;
    CAPSTONE_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
    const double launch_ns = std::chrono::duration<double, std::nano>(t1 - t0).count() / repeat;
    return {{"ok", true},
            {"ms", double(ms) / repeat},
            {"launch_ns", launch_ns},
            {"host_ms", std::chrono::duration<double, std::milli>(t2 - t0).count() / repeat},
            {"touched", watched && flags_[1] != 0}};
  } catch (const Step::Refusal& refusal) {
    return {{"ok", false},
            {"kind", "launch_error"},
            {"message", std::string("the launch failed: ") + refusal.what()},
            {"hint",
             "too many threads or registers a block, or more than 48 KB of dynamic shared memory without "
             "cudaFuncSetAttribute(…MaxDynamicSharedMemorySize…)"}};
  }

  // Starts a watcher of guard bands on a stream of its own, next to the run that follows.
  void begin_watch(const Json& ranges) {
    constexpr long long kLongest = 50'000'000;  // ns
    if (!flags_) {
      CAPSTONE_CUDA(cudaStreamCreateWithFlags(&watching_, cudaStreamNonBlocking));
      int* flags = nullptr;
      CAPSTONE_CUDA(cudaHostAlloc(&flags, 2 * sizeof(int), cudaHostAllocMapped));
      flags_ = flags;
    }
    std::vector<Watched> list;
    for (const Json& range : ranges) {
      const auto at = range.at("at").get<std::size_t>(), bytes = range.at("bytes").get<std::size_t>();
      if (at > arena_.size() || bytes > arena_.size() - at) throw std::runtime_error("outside the arena");
      list.push_back({reinterpret_cast<const unsigned char*>(arena_.base() + at),
                      static_cast<long long>(bytes), range.at("seed").get<std::uint64_t>()});
    }
    if (!watched_) CAPSTONE_CUDA(cudaMalloc(&watched_, kMostWatched * sizeof(Watched)));
    if (list.size() > kMostWatched) list.resize(kMostWatched);
    CAPSTONE_CUDA(cudaMemcpy(watched_, list.data(), list.size() * sizeof(Watched), cudaMemcpyHostToDevice));
    flags_[0] = flags_[1] = 0;
    int* on_device = nullptr;
    CAPSTONE_CUDA(cudaHostGetDevicePointer(&on_device, const_cast<int*>(flags_), 0));
    watch<<<1, 256, 0, watching_>>>(watched_, static_cast<int>(list.size()), on_device, on_device + 1,
                                    kLongest);
    CAPSTONE_CUDA(cudaGetLastError());
  }

  static constexpr std::size_t kMostWatched = 256;
  volatile int* flags_ = nullptr;  ///< [0]: the watcher may end; [1]: it saw a change
  Watched* watched_ = nullptr;
  cudaStream_t watching_{};
  std::unique_ptr<Code> code_;
  Arena arena_;
  Scratch scratch_;
  std::map<int, std::unique_ptr<CapturedGraph>> graphs_;
  cudaStream_t stream_{};
  cudaEvent_t begin_{}, end_{};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--once") == 0) try {
      Replayer().play_once(argv[2]);
      return 0;
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "capstone-replayer: %s\n", problem.what());
      return 1;
    }
  std::unique_ptr<Replayer> replayer;
  return serve([&](const Json& request, int fd, int&) {
    if (!replayer) replayer = std::make_unique<Replayer>();
    return replayer->handle(request, fd);
  });
}
