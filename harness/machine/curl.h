#pragma once
// The part of libcurl that is used, loaded when it is first needed: a command that asks no model starts
// without its twenty libraries, and a package needs none of them.
#include <curl/curl.h>

#include "harness/base/error.h"

namespace capstone::machine {

struct Curl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) init;
  decltype(&curl_easy_setopt) setopt;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_getinfo) getinfo;
  decltype(&curl_easy_strerror) strerror;
  decltype(&curl_easy_cleanup) cleanup;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) free_all;
};

/// @error it is not installed
Result<const Curl*> curl();

}  // namespace capstone::machine
