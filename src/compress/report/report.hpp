// SPDX-License-Identifier: Apache-2.0
// What a chain did, for people and programs: report.html (one file, no outside resources, charts as
// inline SVG), report.md and report.json. All figures come from the journal; nothing is measured
// here. Every figure says how it was measured.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"
#include "compress/journal.hpp"
#include "console/table.hpp"
#include "formats/model_file.hpp"

namespace spud::compress {

// `artifact`: the accepted file (the original when nothing was accepted), for the map of bits.
[[nodiscard]] Result<void> write_reports(const Journal& journal, const formats::ModelFile& artifact,
                                         const std::filesystem::path& folder);

// One row per candidate: what a person looks at first.
console::Table verdict_table(const Journal& journal);
// "Accepted: int4 mixed, 118.2 MB, 43.6 % of the original ...", one or two sentences.
std::string headline(const Journal& journal);
// The hold-out refused what validation had accepted: the artifact has no certificate.
bool holdout_failed(const Journal& journal);
// How the figures came about, for the foot of a report.
std::string method_text(const Journal& journal);

std::string render_html(const Journal& journal, const formats::ModelFile& artifact);
std::string render_markdown(const Journal& journal);
std::string render_json(const Journal& journal);

}  // namespace spud::compress
