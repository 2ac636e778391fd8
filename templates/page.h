#pragma once
// HTML through ctemplate with auto-escaping.
#include <filesystem>
#include <memory>
#include <string>

#include "harness/base/error.h"
#include "templates/blocks.h"

namespace ctemplate {
class TemplateCache;
class TemplateDictionary;
}  // namespace ctemplate

namespace capstone {

/// The page templates in templates/html. All use auto-escape mode: each value is escaped for its context,
/// unless the template says `:none`. Only HTML that this library itself made uses `:none`.
class PageTemplates {
 public:
  explicit PageTemplates(std::filesystem::path folder);
  ~PageTemplates();
  PageTemplates(PageTemplates&&) noexcept;

  /// @error the template is missing or does not parse.
  Result<std::string> expand(const std::string& name, const ctemplate::TemplateDictionary& values) const;
  /// A figure as HTML. @error as above.
  Result<std::string> expand(const Figure& figure) const;
  /// The style sheet, for the page's <style> element. @error the file cannot be read.
  Result<std::string> style() const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<ctemplate::TemplateCache> cache_;
};

/// Escapes a text for HTML ("<" becomes "&lt;" …), for the few pieces of HTML that are made outside a
/// template.
std::string escape_html(std::string_view text);
/// A comment's text as HTML: escaped, and what stands between backticks in <code>.
std::string html_with_code(std::string_view text);

}  // namespace capstone
