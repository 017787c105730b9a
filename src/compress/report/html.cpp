// SPDX-License-Identifier: Apache-2.0
#include "compress/report/charts.hpp"
#include "compress/report/figures.hpp"
#include "compress/report/report.hpp"
#include "compress/report/svg.hpp"
#include "console/text.hpp"

namespace spud::compress {
namespace {

using report::escape;

constexpr std::string_view kStyle = R"css(
:root { --ink:#1c2330; --soft:#5d6879; --line:#dde2ea; --page:#ffffff; --card:#f6f8fb;
  --good:#15803d; --bad:#c2410c; --blue:#2563eb; --margin:#9333ea;
  --b32:#475569; --b16:#2563eb; --b8:#0d9488; --b5:#84a516; --b4:#f59e0b; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6eaf2; --soft:#9aa6b8; --line:#323b4b;
  --page:#12161e; --card:#1a202b; --good:#4ade80; --bad:#fb923c; --blue:#60a5fa; --margin:#c084fc;
  --b32:#94a3b8; --b16:#60a5fa; --b8:#2dd4bf; --b5:#a3c926; --b4:#fbbf24; } }
* { box-sizing:border-box }
body { margin:0 auto; padding:32px 20px 60px; max-width:1080px; background:var(--page);
  color:var(--ink); font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; }
h1 { font-size:26px; margin:0 0 6px } h2 { font-size:18px; margin:36px 0 10px }
.lead { font-size:17px; margin:0 0 20px } p { margin:8px 0 } .soft { color:var(--soft) }
.cards { display:flex; flex-wrap:wrap; gap:12px; margin:18px 0 }
.card { flex:1 1 170px; background:var(--card); border:1px solid var(--line); border-radius:10px;
  padding:12px 14px } .card b { display:block; font-size:22px; line-height:1.25 }
.card span { color:var(--soft); font-size:13px }
.scroll { overflow-x:auto }
table { border-collapse:collapse; width:100%; font-size:13.5px; font-variant-numeric:tabular-nums }
th { text-align:left; color:var(--soft); font-weight:600; border-bottom:2px solid var(--line) }
th,td { padding:6px 10px 6px 0; vertical-align:top } td { border-bottom:1px solid var(--line) }
td.n,th.n { text-align:right; white-space:nowrap } .i { color:var(--soft); font-size:12px }
.ok { color:var(--good); font-weight:600 } .no { color:var(--bad); font-weight:600 }
code { font-size:12px; word-break:break-all }
figure { margin:0 } svg { width:100%; max-width:860px; height:auto; display:block }
svg text { fill:var(--ink); font-size:12px } svg text.tick { font-size:11.5px }
svg text.label { fill:var(--soft); font-size:12px } svg text.margin-label { fill:var(--margin); font-size:11px }
.grid { stroke:var(--line) } .axis { stroke:var(--soft) } .fall { stroke:var(--soft); stroke-dasharray:3 3 }
.margin { stroke:var(--margin); stroke-dasharray:5 4 }
line.good { stroke:var(--good); stroke-width:1.6 } line.bad { stroke:var(--bad); stroke-width:1.6 }
circle.good { fill:var(--good) } circle.bad { fill:var(--bad) } circle.original { fill:var(--soft) }
.size { fill:var(--soft) } .prefill { fill:var(--blue) } .decode { fill:var(--b8) }
.bits32 { fill:var(--b32) } .bits16 { fill:var(--b16) } .bits8 { fill:var(--b8) }
.bits5 { fill:var(--b5) } .bits4 { fill:var(--b4) }
svg.swatch { width:12px; height:12px; display:inline-block; vertical-align:-1px }
.legend span { margin-right:18px; white-space:nowrap; font-size:13px }
)css";

std::string card(std::string_view figure, std::string_view words) {
  return fmt::format("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escape(figure),
                     escape(words));
}

std::string cards(const Journal& journal) {
  const Attempt* accepted = report::find_accepted(journal);
  std::string text = "<div class=\"cards\">\n";
  if (accepted != nullptr) {
    text += card(fmt::format("{:.1f} %", 100.0 * static_cast<double>(accepted->bytes) /
                                             static_cast<double>(journal.original_bytes)),
                 fmt::format("of the original's size: {} instead of {}",
                             console::format_bytes(accepted->bytes),
                             console::format_bytes(journal.original_bytes)));
    if (const auto* ratio = report::find_finding(*accepted, "ppl_ratio")) {
      text += card(fmt::format("{:.3f}", ratio->estimate),
                   fmt::format("perplexity ratio, at most {:.3f} (limit {:.3f})", ratio->upper,
                               ratio->limit));
    }
    if (const auto* top1 = report::find_finding(*accepted, "top1_agreement")) {
      text += card(fmt::format("{:.1f} %", 100 * top1->estimate),
                   "same most likely token as the original");
    }
    if (accepted->peak_memory_bytes > 0) {
      text += card(console::format_bytes(accepted->peak_memory_bytes),
                   fmt::format("memory when loaded and run (original {})",
                               console::format_bytes(journal.original_memory_bytes)));
    }
  }
  return text + "</div>\n";
}

// "1.0312 [1.0278, 1.0345]" with the interval smaller.
std::string interval_cell(const std::string& text) {
  const std::size_t bracket = text.find(" [");
  if (bracket == text.npos) return fmt::format("<td class=\"n\">{}</td>", escape(text));
  return fmt::format("<td class=\"n\">{}<br><span class=\"i\">{}</span></td>",
                     escape(text.substr(0, bracket)), escape(text.substr(bracket + 1)));
}

std::string attempt_html(const Journal& journal, const StepRecord& step, const Attempt& attempt) {
  const bool accepted = attempt.decision == Decision::kAccepted;
  std::string row = fmt::format(
      "<tr><td>{}</td><td>{}{}</td>", escape(step.pass), escape(report::attempt_name(attempt)),
      attempt.note.empty() ? ""
                           : fmt::format("<br><span class=\"i\">{}</span>", escape(attempt.note)));
  row += interval_cell(report::size_text(attempt, journal));
  row += interval_cell(report::finding_text(attempt, "ppl_ratio", 4));
  row += interval_cell(report::finding_text(attempt, "kld_mean", 4));
  row += interval_cell(report::finding_text(attempt, "top1_agreement", 3));
  row += interval_cell(attempt.speed ? report::ratio_text(attempt.speed->prefill) : "-");
  row += interval_cell(attempt.speed ? report::ratio_text(attempt.speed->decode) : "-");
  row += interval_cell(
      attempt.peak_memory_bytes > 0 ? console::format_bytes(attempt.peak_memory_bytes) : "-");
  row += fmt::format("<td class=\"{}\">{}</td></tr>\n", accepted ? "ok" : "no",
                     escape(report::verdict_word(attempt)));
  return row;
}

std::string verdicts(const Journal& journal) {
  std::string text =
      "<div class=\"scroll\"><table><tr><th>step</th><th>alternative</th><th class=\"n\">size</th>"
      "<th class=\"n\">perplexity ratio</th><th class=\"n\">KL divergence</th>"
      "<th class=\"n\">top-1</th><th class=\"n\">prefill</th><th class=\"n\">decode</th>"
      "<th class=\"n\">memory</th><th>verdict</th></tr>\n";
  for (const StepRecord& step : journal.steps) {
    for (const Attempt& attempt : step.attempts) text += attempt_html(journal, step, attempt);
    if (step.attempts.empty()) {
      text += fmt::format(
          "<tr><td>{}</td><td colspan=\"8\" class=\"soft\">{}</td><td "
          "class=\"soft\">{}</td></tr>\n",
          escape(step.pass), escape(step.reason), to_string(step.status));
    }
  }
  return text + "</table></div>\n";
}

// Each verdict in words, with every finding it rests on.
std::string reasons(const Journal& journal) {
  std::string text;
  for (const StepRecord& step : journal.steps) {
    for (const Attempt& attempt : step.attempts) {
      const bool accepted = attempt.decision == Decision::kAccepted;
      text += fmt::format(
          "<p><b>{} {}</b> <span class=\"{}\">{}</span>: {} <span class=\"soft\">"
          "({:.0f} s)</span></p>\n",
          escape(step.pass), escape(report::attempt_name(attempt)), accepted ? "ok" : "no",
          escape(report::verdict_word(attempt)), escape(attempt.reason), attempt.seconds);
      if (!attempt.verdict || attempt.verdict->findings.empty()) continue;
      text += "<ul class=\"soft\">";
      for (const quality::Finding& finding : attempt.verdict->findings) {
        text += fmt::format("<li>{}</li>", escape(finding.sentence));
      }
      text += "</ul>\n";
    }
    if (step.status == StepStatus::kDeclined) {
      text += fmt::format("<p><b>{}</b>: {}</p>\n", escape(step.pass), escape(step.reason));
    }
  }
  return text;
}

std::string data_table(const Journal& journal) {
  std::string text =
      "<div class=\"scroll\"><table><tr><th>use</th><th>source</th><th class=\"n\">texts</th>"
      "<th class=\"n\">scored tokens</th><th>SHA-256 of the tokens</th></tr>\n";
  for (const DataUse& use : journal.data) {
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>"
        "<td><code>{}</code></td></tr>\n",
        escape(use.use), escape(use.name), use.sequences, use.tokens, escape(use.digest));
  }
  return text + "</table></div>\n";
}

std::string figure(std::string_view title, std::string_view words, const std::string& picture) {
  return fmt::format("<h2>{}</h2>\n<p class=\"soft\">{}</p>\n<figure>{}</figure>\n", title, words,
                     picture);
}

}  // namespace

std::string render_html(const Journal& journal, const formats::ModelFile& artifact) {
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>Shrinking {0}</title>\n<style>{1}</style></head>\n<body>\n<h1>Shrinking {0}</h1>\n"
      "<p class=\"lead\">{2}</p>\n",
      escape(journal.model_name), kStyle, escape(headline(journal)));
  page += cards(journal);
  page += "<h2>Steps</h2>\n" + verdicts(journal);
  page += figure("Size against quality",
                 "Each candidate with its interval; green was accepted. Down and to the left is "
                 "better.",
                 report::size_quality_chart(journal));
  page += figure("What each accepted step brought",
                 "Size of the file, and speed against the 16-bit original on this machine.",
                 report::waterfall_chart(journal));
  page += figure("Bits per weight",
                 "The accepted artifact, one cell per weight matrix; the pointer shows its type.",
                 report::bits_map(artifact));
  page += "<h2>Verdicts and reasons</h2>\n" + reasons(journal);
  page += fmt::format("<h2>How it was measured</h2>\n<p>{}</p>\n", escape(method_text(journal)));
  page += data_table(journal);
  page += fmt::format(
      "<p class=\"soft\">Recipe {} (<code>{}</code>), original <code>{}</code>, spud {}.</p>\n"
      "</body></html>\n",
      escape(journal.recipe_name), escape(journal.recipe_digest), escape(journal.original_digest),
      escape(journal.spud_version));
  return page;
}

}  // namespace spud::compress
