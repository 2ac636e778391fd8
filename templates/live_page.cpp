#include "templates/live_page.h"

#include <fmt/format.h>

#include "harness/base/text.h"
#include "templates/page.h"

namespace capstone {
namespace {

// Stands first in the pages' own policy (page.tpl, sheet.tpl), before any text of the student's.
constexpr std::string_view kPolicy = "content=\"default-src 'none';";

constexpr const char* kNoPageYet = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>The report could not be rendered yet</title>
<style>pre { white-space: pre-wrap; overflow-wrap: anywhere; }</style>
</head>
<body>
</body>
</html>
)";

}  // namespace

Result<std::string> live_page(std::string page, const std::string& version,
                              const std::optional<Error>& problem) {
  if (page.empty()) page = kNoPageYet;
  const std::size_t policy = page.find(kPolicy), end = page.rfind("</body>");
  std::size_t body = page.find("\n<body");
  if (body != std::string::npos) body = page.find('>', body);
  if (policy == std::string::npos || body == std::string::npos || end == std::string::npos || policy > body)
    return fail("this page has no security policy that a script could be added to", {},
                "reinstall capstone, or check its templates folder", ExitCode::kInternal);
  // From the end to the beginning: positions before an insertion stay right.
  page.insert(end, fmt::format("<script src=\"{}\" data-version=\"{}\"></script>\n", kLiveScript, version));
  if (problem)
    page.insert(body + 1,
                fmt::format("\n<pre class=\"note bad\" role=\"alert\" style=\"position: sticky; top: 0; "
                            "z-index: 1; white-space: pre-wrap\">"
                            "The newest state of your files could not be rendered.\n{}</pre>",
                            escape_html(to_utf8(render(*problem)))));
  page.insert(policy + kPolicy.size(), " script-src 'self'; connect-src 'self';");
  return page;
}

}  // namespace capstone
