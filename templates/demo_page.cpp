#include "templates/demo_page.h"

#include <cstring>  // before ctemplate, whose header uses strlen

#include <ctemplate/template_dictionary.h>

#include "templates/page.h"

namespace capstone {

Result<std::string> demo_page(const DemoPage& demo, const std::filesystem::path& templates) {
  PageTemplates pages(templates / "html");
  ctemplate::TemplateDictionary page("demo");
  CAPSTONE_TRY(std::string css, pages.style());
  page.SetValue("CSS", css);
  page.SetValue("NAME", demo.name);
  page.SetValue("SESSION", demo.session);
  page.SetValue("WHAT", demo.what);
  page.SetValue("TEXT", demo.text);
  page.SetValue("LINE", demo.line);
  page.SetValue("TIME", demo.time);
  return pages.expand("demo.tpl", page);
}

}  // namespace capstone
