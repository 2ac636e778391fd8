#pragma once
// A captured graph: what launch() put on the GPU, without the host code that put it there. Written by the
// capture worker, which is not trusted; read and checked by the judge, then passed to the replayer.
// protocol.md describes the format.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "harness/base/json.h"

namespace capstone {

struct GraphLimits {
  std::size_t arena_bytes = 0;                       ///< [B] of the captured case
  std::size_t scratch_bytes = std::size_t{1} << 40;  ///< [B] maximum of private memory
  std::size_t document_bytes = std::size_t{4} << 20;
  std::size_t data_bytes = std::size_t{256} << 20;  ///< [B] host data that copies use
  std::size_t nodes = 4096;                         ///< per graph
};

struct CapturedGraph {
  Json document;  ///< every field checked; no unknown field
  std::vector<std::byte> data;
  std::size_t scratch_bytes = 0;
  std::vector<std::string> kernels;  ///< mangled names in the steady graph, each once, in launch order
  std::vector<std::string> notes;    ///< what the capture worker omitted
};

/// Reads a packet: 8 bytes of document length (little endian), the JSON document, the data.
/// @error says which field is wrong and why.
tl::expected<CapturedGraph, std::string> read_graph(std::span<const std::byte> packet,
                                                    const GraphLimits& limits);

/// The packet of a captured graph, in the form that read_plan() reads.
std::vector<std::byte> graph_packet(const Json& document, std::span<const std::byte> data);

}  // namespace capstone
