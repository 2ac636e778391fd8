#include "harness/machine/curl.h"

#include <dlfcn.h>

namespace capstone::machine {
namespace {

// Null: not installed, or too old.
const Curl* load() {
  void* library = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = ::dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  bool whole = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    whole = whole && function;
  };
  static Curl loaded;
  find(loaded.global_init, "curl_global_init");
  find(loaded.init, "curl_easy_init");
  find(loaded.setopt, "curl_easy_setopt");
  find(loaded.perform, "curl_easy_perform");
  find(loaded.getinfo, "curl_easy_getinfo");
  find(loaded.strerror, "curl_easy_strerror");
  find(loaded.cleanup, "curl_easy_cleanup");
  find(loaded.append, "curl_slist_append");
  find(loaded.free_all, "curl_slist_free_all");
  return whole && loaded.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? &loaded : nullptr;
}

}  // namespace

Result<const Curl*> curl() {
  static const Curl* const loaded = load();
  if (loaded) return loaded;
  return fail("libcurl.so.4 is not installed: it carries the questions to an endpoint", {},
              "apt-get install libcurl4", ExitCode::kEnvironment);
}

}  // namespace capstone::machine
