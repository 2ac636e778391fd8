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

/// The page templates below templates/html. Each is in auto-escape mode: a value is escaped for the place where it
/// stands, unless the template says `:none`, which is kept for HTML that this library made itself.
class PageTemplates {
 public:
  explicit PageTemplates(std::filesystem::path folder);
  ~PageTemplates();
  PageTemplates(PageTemplates&&) noexcept;

  /// @error the template is missing or does not parse.
  Result<std::string> expand(const std::string& name, const ctemplate::TemplateDictionary& values) const;
  /// A figure as HTML.
  Result<std::string> expand(const Figure& figure) const;
  /// The style sheet, for the page's <style> element.
  Result<std::string> style() const;

 private:
  std::filesystem::path folder_;
  std::unique_ptr<ctemplate::TemplateCache> cache_;
};

/// "<" as "&lt;" and so on: for the few pieces of HTML that are made outside a template.
std::string escape_html(std::string_view text);

}  // namespace capstone
