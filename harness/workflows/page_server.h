#pragma once
// Serves a few pages, held in memory, to a browser on this machine, and tells it when they change.
#include <map>
#include <memory>
#include <string>

#include "harness/base/error.h"

namespace capstone::workflows {

/// Pages by their names. Names have letters, digits, '.', '_' and '-'; the ending says the type: html, md,
/// json or js.
struct ServedPages {
  std::map<std::string, std::string> files;
  std::string front;    ///< the file that "/" shows
  std::string version;  ///< of all files together; one line
};

/// An HTTP server on 127.0.0.1. It answers only requests for the files that it was given, with a random word
/// in their path (other users of this machine can connect, too), and with the name of this machine in their
/// Host field (a site in the same browser could point its own name at 127.0.0.1). `events` announces the
/// version to each page that listens, at once and whenever it changes.
class PageServer {
 public:
  /// @param port  where to listen; the next free one if it is taken; 0: any
  /// @error no port is free; the system gives no random bytes.
  static Result<PageServer> start(int port, ServedPages pages);
  PageServer(PageServer&&) noexcept;
  ~PageServer();  ///< ends all connections

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8642/3f9a…/"
  void show(ServedPages pages);

 private:
  struct State;
  explicit PageServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace capstone::workflows
