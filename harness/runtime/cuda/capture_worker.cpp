// capstone-capture-worker SUBMISSION.so: loads one submission and writes down what its launch() puts on the
// GPU, as a captured graph.
//
// Untrusted as soon as the submission is loaded: the judge checks every field of a captured graph, and the
// captured graph is then judged by what it computes. Nothing that is recorded here runs here.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>

#include "harness/runtime/cuda/captures.h"
#include "harness/runtime/cuda/shim.h"

namespace {

using namespace capstone::gpu;
using capstone::difference;
using Json = capstone::Json;

// What no captured graph can hold; the submission then runs in in-process execution, with these words as the
// reason.
struct NotSealable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Graph {
  cudaGraph_t graph = nullptr;
  Graph() = default;
  Graph(const Graph&) = delete;
  ~Graph() {
    if (graph) cudaGraphDestroy(graph);
  }
};

// A recorded graph as the captured graph's list of nodes.
class Translation {
 public:
  Translation(const Arena& arena, std::string& data) : arena_(arena), data_(data) {
    for (const Shim::Variable& variable : Shim::get().variables) {
      void* address = nullptr;
      if (cudaGetSymbolAddress(&address, variable.host) == cudaSuccess)
        globals_[reinterpret_cast<CUdeviceptr>(address)] = {variable.name, variable.bytes};
      cudaGetLastError();
    }
  }

  Json nodes(cudaGraph_t graph) {
    list_ = Json::array();
    add(reinterpret_cast<CUgraph>(graph), {});
    return std::move(list_);
  }

 private:
  using Ids = std::vector<int>;

  // Appends a graph whose roots come after `entry`; returns the ids after which it is complete.
  Ids add(CUgraph graph, const Ids& entry) {
    std::size_t count = 0, edge_count = 0;
    CAPSTONE_CU(cuGraphGetNodes, graph, nullptr, &count);
    std::vector<CUgraphNode> nodes(count);
    CAPSTONE_CU(cuGraphGetNodes, graph, nodes.data(), &count);
    using GetEdges = CUresult (*)(CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, std::size_t*);
    static const auto get_edges = reinterpret_cast<GetEdges>(driver_symbol("cuGraphGetEdges_v2"));
    check(get_edges(graph, nullptr, nullptr, nullptr, &edge_count), "cuGraphGetEdges");
    std::vector<CUgraphNode> from(edge_count), to(edge_count);
    std::vector<CUgraphEdgeData> kind(edge_count);
    check(get_edges(graph, from.data(), to.data(), kind.data(), &edge_count), "cuGraphGetEdges");

    std::map<CUgraphNode, Ids> done;     // node → captured graph ids that stand for its end
    std::map<CUgraphNode, int> waiting;  // node → edges not yet satisfied
    std::map<CUgraphNode, bool> last;    // node has no successor
    for (CUgraphNode node : nodes) waiting[node] = 0, last[node] = true;
    for (std::size_t e = 0; e < edge_count; ++e) ++waiting[to[e]], last[from[e]] = false;
    std::vector<CUgraphNode> ready;
    for (CUgraphNode node : nodes)
      if (!waiting[node]) ready.push_back(node);
    Ids ends;
    for (std::size_t next = 0; next < ready.size(); ++next) {
      CUgraphNode node = ready[next];
      Ids after, early;
      bool root = true;
      for (std::size_t e = 0; e < edge_count; ++e)
        if (to[e] == node) {
          root = false;
          Ids& list = kind[e].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC ? early : after;
          list.insert(list.end(), done[from[e]].begin(), done[from[e]].end());
        }
      if (root) after = entry;
      done[node] = add_node(node, after, early);
      if (last[node]) ends.insert(ends.end(), done[node].begin(), done[node].end());
      for (std::size_t e = 0; e < edge_count; ++e)
        if (from[e] == node && --waiting[to[e]] == 0) ready.push_back(to[e]);
    }
    return nodes.empty() ? entry : ends;
  }

  Ids add_node(CUgraphNode node, const Ids& after, const Ids& early) {
    CUgraphNodeType type{};
    CAPSTONE_CU(cuGraphNodeGetType, node, &type);
    Json out;
    switch (type) {
      case CU_GRAPH_NODE_TYPE_EMPTY: {
        Ids both = after;
        both.insert(both.end(), early.begin(), early.end());
        return both;
      }
      case CU_GRAPH_NODE_TYPE_GRAPH: {
        CUgraph child{};
        CAPSTONE_CU(cuGraphChildGraphNodeGetGraph, node, &child);
        return add(child, after);
      }
      case CU_GRAPH_NODE_TYPE_KERNEL:
        out = kernel(node);
        break;
      case CU_GRAPH_NODE_TYPE_MEMSET:
        out = memset(node);
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        out = copy(node);
        break;
      case CU_GRAPH_NODE_TYPE_HOST:
        throw NotSealable("it calls the host from a stream");
      case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        throw NotSealable("it uses conditional graph nodes");
      default:
        throw NotSealable("it uses a kind of graph node that a captured graph does not hold (" +
                          std::to_string(int(type)) + ")");
    }
    out["after"] = unique(after);
    if (!early.empty()) out["early"] = unique(early);
    list_.push_back(std::move(out));
    if (list_.size() > 4096) throw NotSealable("it takes more than 4096 steps");
    return {static_cast<int>(list_.size()) - 1};
  }
  static Ids unique(Ids ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
  }

  Json kernel(CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS p{};
    CAPSTONE_CU(cuGraphKernelNodeGetParams, node, &p);
    CUfunction function = p.func;
    if (!function) CAPSTONE_CU(cuKernelGetFunction, &function, p.kern);
    const char* name = nullptr;
    CAPSTONE_CU(cuFuncGetName, &name, function);
    Json out{{"kind", "kernel"},
             {"function", name},
             {"grid", {p.gridDimX, p.gridDimY, p.gridDimZ}},
             {"block", {p.blockDimX, p.blockDimY, p.blockDimZ}},
             {"shared", p.sharedMemBytes}};
    int value = 0;
    CAPSTONE_CU(cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function);
    out["max_shared"] = static_cast<unsigned>(std::max(value, 0));
    std::string bytes;
    Json sizes = Json::array();
    for (std::size_t i = 0;; ++i) {
      std::size_t offset = 0, size = 0;
      if (CAPSTONE_DRIVER(cuFuncGetParamInfo)(function, i, &offset, &size) != CUDA_SUCCESS) break;
      bytes.resize(std::max(bytes.size(), offset + size));
      if (p.kernelParams) std::memcpy(&bytes[offset], p.kernelParams[i], size);
      sizes.push_back({offset, size});
    }
    if (!p.kernelParams && !sizes.empty()) throw NotSealable("it passes kernel parameters as one buffer");
    if (Json relocations = relocate(bytes); !relocations.empty()) out["relocations"] = std::move(relocations);
    out["params"] = hex(bytes);
    out["sizes"] = std::move(sizes);
    attributes(node, function, out);
    return out;
  }

  void attributes(CUgraphNode node, CUfunction function, Json& out) {
    CUlaunchAttributeValue value{};
    auto has = [&](CUlaunchAttributeID id) {
      value = {};
      return CAPSTONE_DRIVER(cuGraphKernelNodeGetAttribute)(node, id, &value) == CUDA_SUCCESS;
    };
    if (has(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) && value.clusterDim.x)
      out["cluster"] = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    if (has(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) &&
        value.clusterSchedulingPolicyPreference)
      out["cluster_policy"] = static_cast<unsigned>(value.clusterSchedulingPolicyPreference);
    if (has(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) && value.cooperative) out["cooperative"] = true;
    if (has(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) && value.accessPolicyWindow.num_bytes) {
      const CUaccessPolicyWindow& w = value.accessPolicyWindow;
      out["window"] = {{"base", address(reinterpret_cast<CUdeviceptr>(w.base_ptr))},
                       {"bytes", w.num_bytes},
                       {"ratio", w.hitRatio},
                       {"hit", static_cast<unsigned>(w.hitProp)},
                       {"miss", static_cast<unsigned>(w.missProp)}};
    }
    int number = 0;
    if (CAPSTONE_DRIVER(cuFuncGetAttribute)(&number, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                                            function) == CUDA_SUCCESS &&
        number)
      out["portable"] = false;
    if (CAPSTONE_DRIVER(cuFuncGetAttribute)(&number, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                            function) == CUDA_SUCCESS &&
        number >= 0)
      out["carveout"] = static_cast<unsigned>(number);
  }

  Json memset(CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS p{};
    CAPSTONE_CU(cuGraphMemsetNodeGetParams, node, &p);
    return {{"kind", "memset"},
            {"dst", address(p.dst)},
            {"value", p.value},
            {"element", p.elementSize},
            {"width", p.width},
            {"height", p.height},
            {"pitch", p.height > 1 ? p.pitch : 0}};
  }

  Json copy(CUgraphNode node) {
    CUDA_MEMCPY3D p{};
    CAPSTONE_CU(cuGraphMemcpyNodeGetParams, node, &p);
    if (p.Depth != 1 || p.srcXInBytes || p.srcY || p.srcZ || p.dstXInBytes || p.dstY || p.dstZ)
      throw NotSealable("it makes a three-dimensional copy");
    if (p.dstMemoryType == CU_MEMORYTYPE_HOST)
      throw NotSealable("it copies results to the host inside launch()");
    if (p.dstMemoryType == CU_MEMORYTYPE_ARRAY || p.srcMemoryType == CU_MEMORYTYPE_ARRAY)
      throw NotSealable("it uses CUDA arrays");
    Json src;
    auto kept = Shim::get().kept.find(p.srcHost);
    if (p.srcMemoryType == CU_MEMORYTYPE_HOST && kept == Shim::get().kept.end())
      throw NotSealable("it copies host memory of its own");
    if (p.srcMemoryType != CU_MEMORYTYPE_DEVICE && kept != Shim::get().kept.end()) {
      src = {{"data", data_.size()}};
      data_.append(kept->second.data(), kept->second.size());
    } else {
      src = address(p.srcMemoryType == CU_MEMORYTYPE_UNIFIED ? reinterpret_cast<CUdeviceptr>(p.srcHost)
                                                             : p.srcDevice);
    }
    return {
        {"kind", "copy"},
        {"dst", address(p.dstMemoryType == CU_MEMORYTYPE_UNIFIED ? reinterpret_cast<CUdeviceptr>(p.dstHost)
                                                                 : p.dstDevice)},
        {"src", std::move(src)},
        {"width", p.WidthInBytes},
        {"height", p.Height},
        {"dst_pitch", p.Height > 1 ? p.dstPitch : 0},
        {"src_pitch", p.Height > 1 ? p.srcPitch : 0}};
  }

  Json address(CUdeviceptr at) const {
    const auto base = reinterpret_cast<CUdeviceptr>(arena_.base());
    if (at >= base && at < base + arena_.size()) return {{"arena", at - base}};
    if (Shim::get().memory.holds(reinterpret_cast<void*>(at))) return {{"scratch", at - Scratch::kAddress}};
    if (auto global = global_at(at)) return {{"global", global->first}, {"offset", global->second}};
    throw NotSealable("a copy or memset touches memory that the runtime did not give it");
  }
  std::optional<std::pair<std::string, std::size_t>> global_at(CUdeviceptr at) const {
    auto after = globals_.upper_bound(at);
    if (after == globals_.begin()) return std::nullopt;
    auto [begin, variable] = *std::prev(after);
    if (at >= begin + variable.second) return std::nullopt;
    return std::make_pair(variable.first, static_cast<std::size_t>(at - begin));
  }
  // Parameters that hold the address of a module's variable: it lies elsewhere in another process.
  Json relocate(const std::string& bytes) const {
    Json list = Json::array();
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      CUdeviceptr value = 0;
      std::memcpy(&value, &bytes[at], sizeof value);
      if (auto global = global_at(value))
        list.push_back({{"at", at}, {"global", global->first}, {"offset", global->second}});
    }
    return list;
  }
  static std::string hex(const std::string& bytes) {
    static const char* digits = "0123456789abcdef";
    std::string text;
    for (unsigned char byte : bytes) text += digits[byte >> 4], text += digits[byte & 15];
    return text;
  }

  const Arena& arena_;
  std::string& data_;
  std::map<CUdeviceptr, std::pair<std::string, std::size_t>> globals_;
  Json list_;
};

// A graph whose nodes follow one another: a host-side wait between them changes nothing.
bool is_chain(const Json& nodes) {
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    const Json& after = nodes[i]["after"];
    if (!(after.size() == 1 && after[0] == i - 1) && !(nodes[i].contains("early") && after.empty()))
      return false;
  }
  return true;
}

class CaptureWorker {
 public:
  explicit CaptureWorker(const char* path) : submission_(path) {}

  Json handle(const Json& request, int fd, int& give) {
    const std::string op = request.value("op", "");
    if (op == "hello") return {{"ok", true}, {"protocol", 1}, {"backend", "cuda"}};
    if (op == "arena") {
      // Memory of its own, at the address that the tensors have elsewhere: nothing real is here to be looked
      // at.
      if (fd >= 0) ::close(fd);
      ::close(arena_.create(request.at("bytes").get<std::size_t>()));
      if (!arena_.at_fixed_address())
        return {{"ok", false}, {"kind", "exception"}, {"message", "the address range for tensors is taken"}};
      return {{"ok", true}};
    }
    if (op == "workspace")
      return {{"ok", true},
              {"bytes", submission_.workspace(Slots(request.at("args"), arena_.base()).data())}};
    if (op == "prepared")
      return {
          {"ok", true},
          {"bytes",
           submission_.prepared ? submission_.prepared(Slots(request.at("args"), arena_.base()).data()) : 0}};
    if (op == "record") return record(request, give);
    return {{"ok", false}, {"kind", "exception"}, {"message", "unknown request: " + op}};
  }

 private:
  // `what`: "run" (three calls: the first may set things up, the second and third must do the same) or
  // "prepare" (one).
  Json record(const Json& request, int& give) try {
    Slots slots(request.at("args"), arena_.base());
    void* workspace = at_offset(request, "workspace", arena_.base());
    void* prepared = at_offset(request, "prepared", arena_.base());
    const bool prepare = request.value("what", "run") == "prepare";
    if (prepare && !submission_.prepare) throw std::runtime_error("the problem has no prepare()");
    auto call = [&] {
      if (prepare)
        submission_.prepare(slots.data(), prepared, cudaStreamPerThread);
      else
        submission_.call(slots.data(), workspace, prepared, cudaStreamPerThread);
    };
    std::string data;
    Translation translation(arena_, data);
    const Json first = capture(call, translation);
    Json steady = first;
    if (!prepare) {
      steady = capture(call, translation);
      std::string again_data;
      Translation again(arena_, again_data);
      const Json repeated = capture(call, again);
      if (const std::string what = difference({steady, data}, {repeated, again_data}); !what.empty())
        throw NotSealable("launch() does something else from call to call: " + what);
    }
    Shim& shim = Shim::get();
    Json graph{{"plan", 1},
               {"scratch", shim.memory.high()},
               {"notes", Json::array()},
               {"first", first},
               {"steady", steady}};
    if (shim.waited) {
      if (!is_chain(first) || !is_chain(steady)) throw NotSealable("it waits for the GPU between branches");
      graph["notes"].push_back("launch() waits for the GPU; the plan has no host that could wait");
    }
    return send(graph, data, give);
  } catch (const NotSealable& reason) {
    Shim::get().recording = false;
    return {{"ok", true}, {"replayed", false}, {"because", reason.what()}};
  } catch (const LaunchError& error) {
    Shim::get().recording = false;
    return launch_failure(error.code, cudaSuccess);
  }

  struct LaunchError {
    cudaError_t code;
  };

  template <class Call>
  Json capture(Call&& call, Translation& translation) {
    Shim& shim = Shim::get();
    shim.refused.clear();
    shim.recording = true;
    cudaGetLastError();
    CAPSTONE_CUDA(cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
    std::string thrown;
    capstone::wipe_stack();
    try {
      call();
    } catch (const std::exception& problem) {
      thrown = problem.what();
    } catch (...) {
      thrown = "an exception that is not a std::exception";
    }
    const cudaError_t left = cudaGetLastError();
    Graph graph;
    const cudaError_t ended = cudaStreamEndCapture(cudaStreamPerThread, &graph.graph);
    cudaGetLastError();
    shim.recording = false;
    shim.memory.end_of_call();
    if (!shim.refused.empty()) throw NotSealable(shim.refused);
    if (ended == cudaErrorStreamCaptureUnjoined)
      throw NotSealable("it leaves work on another stream unjoined");
    if (ended != cudaSuccess)
      throw NotSealable(std::string("it makes a call that cannot be recorded (") +
                        cudaGetErrorName(left != cudaSuccess ? left : ended) + ")");
    if (!thrown.empty()) throw std::runtime_error("launch() threw: " + thrown);
    if (left != cudaSuccess) throw LaunchError{left};
    return translation.nodes(graph.graph);
  }

  static Json send(const Json& graph, const std::string& data, int& give) {
    const std::string text = graph.dump();
    const std::uint64_t length = text.size();
    give = ::memfd_create("capstone-plan", MFD_CLOEXEC);
    if (give < 0) throw std::runtime_error("no memory for the plan");
    std::string packet(reinterpret_cast<const char*>(&length), sizeof length);
    packet += text;
    packet += data;
    for (std::size_t at = 0; at < packet.size();) {
      ssize_t n = ::write(give, packet.data() + at, packet.size() - at);
      if (n <= 0) throw std::runtime_error("no memory for the plan");
      at += static_cast<std::size_t>(n);
    }
    return {{"ok", true}, {"replayed", true}, {"bytes", packet.size()}};
  }

  Submission submission_;
  Arena arena_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(
        stderr,
        "usage: capstone-capture-worker SUBMISSION.so (started by capstone; speaks on descriptor 3)\n");
    return 2;
  }
  std::unique_ptr<CaptureWorker> capture_worker;
  return serve([&](const Json& request, int fd, int& give) {
    if (!capture_worker) {
      int device = 0;
      CAPSTONE_CUDA(cudaSetDevice(device));
      cudaStreamCaptureStatus status;
      CAPSTONE_CUDA(cudaStreamIsCapturing(cudaStreamPerThread, &status));  // makes the context
      capture_worker = std::make_unique<CaptureWorker>(argv[1]);
    }
    return capture_worker->handle(request, fd, give);
  });
}
