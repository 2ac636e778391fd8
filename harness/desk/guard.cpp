#include "harness/desk/guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/digest.h"
#include "harness/base/text.h"

namespace capstone::desk {

bool is_our_host(std::string_view host, const std::vector<std::string>& names, int port) {
  const std::string end = ":" + std::to_string(port);
  // A proxy in front may listen on a default port, which browsers leave out.
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return host == name || host == name + end; });
}

bool is_same_origin(std::string_view origin, std::string_view host) {
  if (origin.empty()) return true;
  for (std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return origin.substr(scheme.size()) == host;
  return false;
}

std::string session_in(std::string_view cookie_header, std::string_view name) {
  for (const std::string& part : split(std::string(cookie_header), ';')) {
    const std::string_view cookie = trim(part);
    const std::size_t at = cookie.find('=');
    if (at != std::string_view::npos && cookie.substr(0, at) == name)
      return std::string(cookie.substr(at + 1));
  }
  return {};
}

std::string session_cookie(std::string_view session, std::string_view name, std::string_view path) {
  constexpr long kSeconds = 14 * 86'400L;
  return fmt::format("{}={}; HttpOnly; SameSite=Strict; Path={}; Max-Age={}", name, session, path,
                     session.empty() ? 0 : kSeconds);
}

std::string form_token(const std::string& session) {
  return DigestBuilder().add("purpose", "form").add("session", session).hex();
}

bool same_secret(std::string_view a, std::string_view b) {
  unsigned different = a.size() != b.size();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

}  // namespace capstone::desk
