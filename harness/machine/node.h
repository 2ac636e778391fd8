#pragma once
// One question to a language model and what came of it. The nodes of a run form a tree.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/base/units.h"
#include "harness/model/explanation.h"
#include "harness/model/record.h"

namespace capstone::machine {

/// The verdict on a reply without a kernel.
inline constexpr std::string_view kNoCode = "NO CODE";

/// What a node asks for.
enum class NodeKind {
  kKernel,  ///< a kernel
  kIdeas,   ///< ideas in English; each becomes an idea of the kernels below it
};

enum class NodeState {
  kPlanned,   ///< not answered yet
  kAnswered,  ///< the reply is on disk
  kDone,      ///< judged; of ideas: read
};

/// How good a correct kernel is.
struct Fitness {
  /// The speedup over the baseline with its interval. Without a GPU: the modelled share of the problem's
  /// lower bound, a single number; see modelled_share().
  Interval value;
  bool measured = false;  ///< on a GPU
  /// What counts in a comparison: the lower end, so that a lucky sample gains nothing.
  double low() const { return value.low; }
};

/// What a correct kernel does, from facts that the tool sees: kernels of one cell are variants of one
/// another.
struct Behaviour {
  std::string bound_by;           ///< "memory", "shared memory and L1", "compute"; empty: not counted
  int launches = 0;               ///< kernels a call
  double traffic = 0;             ///< bytes touched over bytes that the problem has to move; 0: not counted
  int threads = 0;                ///< per block, of its largest kernel
  std::int64_t shared_bytes = 0;  ///< dynamic, per block, of its largest kernel
  std::string movement;           ///< "plain", "cp.async" or "bulk": how the source moves data
  std::string arithmetic;         ///< "scalar", "mma" or "wgmma"
  /// Kernels with the same cell are alike.
  std::string cell() const;
};

struct Node {
  std::string name;  ///< unique in its run, a path: "0007", "2-3", "1-2-k3"
  NodeKind kind = NodeKind::kKernel;
  std::string parent;  ///< the node that it continues; empty: none
  int round = 0;       ///< counted from 1; of a refinement: the turn
  int island = 0;      ///< of an evolution, or the chain of a refinement; counted from 1
  std::string idea;    ///< the English idea that a kernel is to implement
  std::vector<std::string> inspirations = {};  ///< other nodes whose kernels the prompt shows

  NodeState state = NodeState::kPlanned;
  std::string prompt_sha256, reply_sha256;  ///< contents among the run's texts
  std::string model;                        ///< as the provider named it
  std::int64_t tokens_in = 0, tokens_out = 0;
  double cost = 0, seconds = 0;  ///< of the answer
  double judge_seconds = 0;      ///< of all its judgements; 0: taken over from the same code, or not recorded
  int requests = 0;
  std::vector<std::string> notes = {};  ///< of the provider: "the provider cut the reply off …"

  std::vector<std::string> ideas = {};  ///< of kIdeas: what the reply lists
  std::string source_sha256;            ///< the code; empty: the reply has none
  std::string verdict;                  ///< kNoCode, else gate one's label; empty: not judged
  std::string gate_two;                 ///< gate two's label; empty: not timed
  std::string failure;                  ///< what went wrong, one line
  bool python = false;                  ///< the code is a .py file with ModelNew
  std::vector<std::string> labels = {};  ///< of the judgement, see Measurement
  std::string tokens_sha256;            ///< see token_digest()
  std::optional<Fitness> fitness = {};
  Behaviour behaviour = {};
  // JSON among the run's texts; empty: none
  std::string measurement_sha256;  ///< of the first judgement, a Measurement
  std::string explanation_sha256;  ///< counts of a correct kernel, an Explanation
  std::string profile_sha256;      ///< of a correct kernel on a GPU, a Profile
  /// The second judgement, with fresh seeds; absent: there was none.
  std::optional<bool> confirmed = {};

  /// Whether it asked for a kernel and came to a verdict, which may be that the reply has none.
  bool judged() const { return kind == NodeKind::kKernel && state == NodeState::kDone; }
  bool correct() const { return verdict == label_of(GateOne::kPassed); }
  bool faster() const { return gate_two == label_of(GateTwo::kFaster); }
  /// Whether a label says that a person has to look first: then nothing is built on it, however fast.
  bool doubtful() const;
  /// Whether it may be continued: correct, and found correct again.
  bool proven() const { return correct() && confirmed.value_or(false) && !doubtful(); }
};

void to_json(Json& json, const Node& node);
void from_json(const Json& json, Node& node);

/// All nodes of a run, in the order in which they were planned.
using Tree = std::vector<Node>;
/// The first node of the tree whose code has the same tokens; null if that is the node itself.
const Node* same_code_before(const Tree& tree, const Node& node);
/// Null if there is none of this name.
const Node* find_node(const Tree& tree, const std::string& name);

/// The fitness without a GPU: the problem's lower bound on a device over the modelled time of a kernel with
/// these counts, in (0, 1]. The time is the largest of: the bytes touched at full bandwidth, shared-memory
/// wavefronts and L1 passes, FLOPs at the peak. Nothing where the explanation has no modelled floor.
std::optional<double> modelled_share(const Explanation& explanation);

Behaviour behaviour_of(const std::string& source, const Explanation* explanation);

/// SHA-256 of a source's tokens, without comments and white space.
std::string token_digest(const std::string& source);

}  // namespace capstone::machine
