// SPDX-License-Identifier: Apache-2.0
#include "compress/report/report.hpp"

#include "io/atomic_file.hpp"

namespace spud::compress {

Result<void> write_reports(const Journal& journal, const formats::ModelFile& artifact,
                           const std::filesystem::path& folder) {
  SPUD_TRY(io::write_file_atomically(folder / "report.json", render_json(journal)));
  SPUD_TRY(io::write_file_atomically(folder / "report.md", render_markdown(journal)));
  return io::write_file_atomically(folder / "report.html", render_html(journal, artifact));
}

}  // namespace spud::compress
