/** Spending: what models cost, by day, model, kind or conversation; the caps, and what the month comes to. */
import { html, useState } from "./vendor/preact.js";
import { get, run } from "./api.js";
import { dollars, number } from "./format.js";
import { Action, Facts, Markdown, Page, Problem, Tabs, useLoaded } from "./parts.js";
import { Plot } from "./plot.js";

const BY = [["day", "Day"], ["model", "Model"], ["kind", "Kind"], ["session", "Conversation"], ["part", "Part of the prompt"]];

export function Spending() {
  const [by, setBy] = useState("day");
  const [usage, error] = useLoaded(() => get("/usage", { by, days: 31 }), [by]);
  return html`<${Page} title="Spending" about="What language models cost, and how much they may." waits=${!usage && !error} aside=${html`<${Tabs} label="By" of=${BY} chosen=${by} choose=${setBy} />`}>
    <${Problem} error=${error} />
    ${usage && html`<${Facts} rows=${[
        ["Today", dollars(amount(usage.today))],
        ["This month", dollars(amount(usage.month))],
        ["At this pace", usage.forecast_usd === null ? "" : `${dollars(usage.forecast_usd)} at the end of the month`],
      ]} />
      ${usage.caps.map((cap) => html`<${Cap} of=${cap} />`)}
      ${usage.by === "day" && usage.rows.length > 1 && html`<${Days} rows=${usage.rows} />`}
      ${usage.by === by && html`<${Rows} usage=${usage} />`}`}
    <${Saved} />
  </${Page}>`;
}

/** What compactions made smaller, and what they cost, by month. */
function Saved() {
  const [shown, setShown] = useState(null);
  return html`<h2>What compactions saved</h2>
    ${shown ? html`<${Markdown} of=${shown.html} />` : html`<p><${Action} does=${async () => setShown(await run(["aihistory", "stats"]))}>Show by month</${Action}></p>`}`;
}

const CAPS = { daily_usd: "Cap for a day", monthly_usd: "Cap for a month", daily_tokens: "Tokens for a day" };
const nameOf = (cap) => CAPS[cap.setting] ?? cap.setting.replaceAll("_", " ");

const Cap = ({ of }) =>
  html`<p><span class="row small quiet">${nameOf(of)}: ${of.setting.endsWith("usd") ? `${dollars(of.used)} of ${dollars(of.most)}` : `${number(of.used)} of ${number(of.most)} tokens`}</span>
    <span class=${`bar ${of.used_up ? "full" : ""}`} role="meter" aria-valuenow=${Math.round(of.share * 100)} aria-valuemin="0" aria-valuemax="100" aria-label=${nameOf(of)}><i ref=${(it) => it && (it.style.width = `${Math.min(100, of.share * 100)}%`)}></i></span></p>`;

/** In US dollars; null where no price is known. */
const amount = (row) => (row.usd || !row.unpriced_tokens ? row.usd : null);

function Days({ rows }) {
  const sorted = [...rows].sort((a, b) => a.day.localeCompare(b.day));
  const times = sorted.map((row) => new Date(`${row.day}T12:00:00`).getTime() / 1000);
  return html`<${Plot} label="US dollars a day" times=${times} series=${[{ label: "US dollars", values: sorted.map(amount), show: dollars, bars: true }]} />`;
}

function Rows({ usage }) {
  if (!usage.rows.length) return html`<p class="quiet">No model was asked in the last ${usage.days} days.</p>`;
  const columns = ["calls", "input", "cache_read", "cache_write", "output", "unpriced_tokens"].filter((name) => usage.rows.some((row) => row[name]));
  return html`<div class="words"><table>
    <thead><tr><th scope="col">${BY.find(([key]) => key === usage.by)[1]}</th>${columns.map((name) => html`<th scope="col" class="amount">${name.replace("_", " ")}</th>`)}<th scope="col" class="amount">cost</th></tr></thead>
    <tbody>${usage.rows.map((row) => html`<tr><th scope="row">${row[usage.by] || "(none)"}</th>${columns.map((name) => html`<td class="amount">${number(row[name])}</td>`)}<td class="amount">${dollars(amount(row))}</td></tr>`)}</tbody>
  </table></div>`;
}
