#pragma once
// What a request must satisfy before any handler sees it. Pure functions.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstone::desk {

inline constexpr std::string_view kCookie = "capstone_session";

/// Whether a `Host` header names this server, so that a page of another site cannot reach it under a name of
/// its own (DNS rebinding).
/// @param names  host names without a port; an IPv6 address in brackets
bool is_our_host(std::string_view host, const std::vector<std::string>& names, int port);

/// Whether a form was sent by a page of this server: `Origin` is absent, or its host is that of the `Host`
/// header.
bool is_same_origin(std::string_view origin, std::string_view host);

/// The value of a session's cookie in a `Cookie` header; empty: none.
std::string session_in(std::string_view cookie_header, std::string_view name = kCookie);

/// The `Set-Cookie` header of a session, for 14 days; without a session it ends the cookie.
std::string session_cookie(std::string_view session, std::string_view name = kCookie,
                           std::string_view path = "/");

/// What every form of a session carries. It follows from the session's secret, which other sites do not know.
std::string form_token(const std::string& session);
/// Compares in a time that does not depend on where the two differ.
bool same_secret(std::string_view a, std::string_view b);

/// The security policy of the pages: scripts, styles and frames come only from this server.
inline constexpr const char* kPagePolicy =
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'self'";
/// The policy of what students wrote: no script at all, whatever the page holds.
inline constexpr const char* kStudentPolicy =
    "default-src 'none'; style-src 'self' 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'self'; sandbox allow-same-origin allow-forms";

}  // namespace capstone::desk
