#include "bitfed/report/pages/page_parts.h"

#include <fmt/format.h>

#include "bitfed/report/charts/palette.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr std::string_view kLayout = R"css(
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main,header,footer{max-width:1160px;margin:0 auto;padding:0 24px}
header{padding-top:40px}
h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.015em;margin:0;overflow-wrap:anywhere}
h2{font-size:21px;font-weight:650;letter-spacing:-.01em;margin:44px 0 4px;overflow-wrap:anywhere}
h3{font-size:15px;font-weight:650;margin:0 0 14px}
h4{font-size:13px;font-weight:600;margin:0 0 8px;overflow-wrap:anywhere}
p{margin:6px 0 0;max-width:75ch}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
.eyebrow{color:var(--muted);font-size:13px;letter-spacing:.04em;margin:0 0 6px}
.facts{color:var(--muted)}
.facts span{display:inline-block}
.facts span:not(:last-child)::after{content:"·";margin:0 .55em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:16px;margin:28px 0 16px}
.tile,.card{background:var(--surface);border:1px solid var(--grid);border-radius:10px}
.tile{padding:16px 18px;margin:0}
.tile dt{color:var(--muted);font-size:13px}
.tile dd{margin:0}
.tile .value{font-size:28px;line-height:1.3;font-weight:650;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile .note{color:var(--muted);font-size:13px;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));grid-auto-flow:dense;gap:16px;margin:16px 0}
.card{padding:18px 20px 20px;min-width:0}
.card.wide{grid-column:1/-1}
.card>p,.card>.key{color:var(--muted);font-size:13px;margin:-8px 0 14px}
.picture{overflow-x:auto}
.picture svg{display:block;max-width:100%;height:auto}
.picture .samples{display:block;width:100%;image-rendering:pixelated}
.chart svg{width:100%}
.wide .picture svg{min-width:720px;margin:0 auto}
.stack>*+*{margin-top:16px}
.column{display:flex;flex-direction:column;gap:16px;min-width:0}
.column>:last-child{flex:1}
)css";

constexpr std::string_view kDetails = R"css(
.scroll{overflow:auto;max-height:430px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:6px 10px;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
th:last-child,td:last-child{padding-right:0}
tr:last-child>*{border-bottom:0}
thead th{color:var(--muted);font-weight:500;font-size:13px;position:sticky;top:0;background:var(--surface)}
tbody th{font-weight:500}
.runs thead th{white-space:normal}
.runs :is(td,th):not(:first-child,:last-child){padding:6px 7px}
.runs tbody th{white-space:normal;overflow-wrap:anywhere;min-width:150px}
td.part{background:linear-gradient(var(--accent),var(--accent)) right 10px bottom 3px/calc(var(--part)*.8) 3px no-repeat}
.clients td,.clients th{padding:5px 10px 9px}
.clients{table-layout:fixed}
.best{font-weight:650;color:var(--accent)}
.reproduced{font-size:13px}
.reproduced td,.reproduced th{padding:5px 7px}
.reproduced .name{text-align:left}
.reproduced .ours{font-weight:600}
.reproduced .paper,.reproduced .same{color:var(--muted)}
.reproduced .first{border-left:1px solid var(--grid);text-align:right;padding-left:7px}
.reproduced thead th{white-space:normal}
.reproduced thead .group{color:var(--ink);font-weight:650;text-align:center}
.reproduced .opens>*{border-top:2px solid var(--muted)}
.better{color:var(--accent)}.worse{color:var(--contrast)}
.banner{background:var(--contrast);color:var(--on-accent);border-radius:10px;padding:12px 18px;margin:20px 0 0;
font-weight:650;max-width:none}
.scroll.whole{max-height:none}
.costs th{color:var(--muted);font-weight:400;white-space:normal}
.people td.none{color:var(--muted)}
.radio .size>*{font-weight:600;color:var(--ink)}
.radio .time th{padding-left:14px}
.chosen{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(230px,100%),1fr));gap:22px 28px}
.chosen svg{display:block;width:100%;height:auto}
.swatch{display:inline-block;width:12px;height:12px;margin:0 6px 0 0;vertical-align:-1px;border:1px solid var(--muted)}
.key span{margin-right:18px;white-space:nowrap;display:inline-block}
.one{background:var(--ink)}.zero{background:var(--contrast);border-color:var(--contrast)}
.both{background:repeating-linear-gradient(-45deg,var(--contrast) 0 1px,transparent 1px 4px)}
.where{border-color:var(--accent);background:color-mix(in srgb,var(--accent) 22%,transparent)}
.clause-grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(480px,100%),1fr));gap:22px 28px}
.clauses{display:grid;grid-template-columns:repeat(auto-fill,minmax(154px,1fr));gap:8px 12px;align-content:start;
break-inside:avoid}
.clauses h4,.clauses code{grid-column:1/-1;margin:0}
.clauses figure{margin:0}
.clauses figcaption{font-size:12px;color:var(--muted);margin-top:2px}
.clauses figcaption b{color:var(--ink);font-weight:650}
.clauses svg{display:block}
.clauses code{overflow-wrap:anywhere}
code,pre{font:12.5px/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{margin:14px 0 0;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;font-weight:650}
.run>summary{font-size:21px;margin:40px 0 0;letter-spacing:-.01em;overflow-wrap:anywhere}
ul{margin:0;padding-left:18px}li+li{margin-top:6px}
footer{color:var(--muted);font-size:13px;padding-top:16px;padding-bottom:48px}
footer .facts{max-width:none}
footer code{overflow-wrap:anywhere}
@media(max-width:820px){.cards{grid-template-columns:minmax(0,1fr)}
main,header,footer{padding-left:14px;padding-right:14px}header{padding-top:26px}
h1{font-size:24px}.tiles{grid-template-columns:1fr 1fr;gap:10px;margin-top:20px}
.people,.people thead th{font-size:12px}.people td,.people th{padding:5px 3px}
.people tr>:first-child{padding-left:0}.people tr>:last-child{padding-right:0}
.tile:last-child:nth-child(odd){grid-column:1/-1}
.tile{padding:12px 14px}.tile .value{font-size:22px}.card{padding:16px}}
@media print{body{background:#fff;font-size:11pt}header{padding-top:0}
.tile,.card{break-inside:avoid}.card.long{break-inside:auto}
.scroll{max-height:none;overflow:visible}.tiles{grid-template-columns:repeat(4,1fr)}}
)css";

}  // namespace

std::string page_style() {
  return palette_css() + std::string(kLayout) + std::string(kDetails);
}

std::string html_document(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{}</title>\n"
      "<style>\n{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      escape_markup(title), page_style(), body);
}

std::string rows_left_out(size_t shown, size_t all) {
  if (shown == all) return "";
  return fmt::format("<p>The first {} of {}; all are in summary.json and events.jsonl.</p>",
                     exact_count(shown), exact_count(all));
}

std::string scrolled_table(std::string_view css_class, std::string_view head, std::string_view rows) {
  return fmt::format(
      "<div class=\"scroll\"><table class=\"{}\"><thead><tr>{}</tr></thead>\n"
      "<tbody>{}</tbody></table></div>\n",
      css_class, head, rows);
}

std::string chart_card(std::string_view heading, const std::string& svg) {
  return svg.empty() ? "" : card(heading, fmt::format("<div class=\"picture chart\">{}</div>", svg));
}

}  // namespace bitfed
