/** Context: what the model sees of a conversation now, what that costs, and what was compacted. */
import { html, useState } from "./vendor/preact.js";
import { get, read, run, runAsked } from "./api.js";
import { dollars, number, plural } from "./format.js";
import { WHO } from "./entry.js";
import { Run } from "./listed.js";
import { Action, Facts, Markdown, Page, Problem, Time, useLoaded } from "./parts.js";
import { Plot } from "./plot.js";

const NAMES = { tools: "Tools", persona: "PERSONA.md", rules: "Rules", pins: "Pinned", memory: "What is remembered", summary: "Summary", message: "Message" };
const STATES = { live: "in use", absorbed: "merged into a later one" };
const SHOWN = 60;

export function Context({ rest }) {
  return html`<${Of} key=${rest[0]} session=${rest[0] || "main"} />`;
}

function Of({ session }) {
  const [report, error, reload] = useLoaded(() => read(["context"], session), [session]);
  const [made, madeError, reloadMade] = useLoaded(() => get("/compactions", { session, limit: 200 }), [session]);
  const [sessions] = useLoaded(() => get("/sessions", { limit: 1 }), []);
  const [all, setAll] = useState(false);
  const names = new Set([session, ...(sessions?.sessions ?? []).filter((it) => it.current).map((it) => it.session)]);
  const again = () => (reload(), reloadMade());
  const price = report && (report.cached ? report.read_price : report.write_price);
  const parts = report?.parts ?? [];
  const shown = all ? parts : parts.slice(0, SHOWN);
  return html`<${Page} title="Context" about="What the model sees with your next message, in order, and what that costs." waits=${!report && !error} aside=${html`<select aria-label="Conversation" value=${session} onChange=${(event) => (location.hash = `#/context/${event.target.value}`)}>
      ${[...names].map((name) => html`<option value=${name}>${name.replace(/^thread:/, "")}</option>`)}
    </select>`}>
    <${Problem} error=${error ?? madeError} />
    ${report && html`<${Facts} rows=${[
        ["Model", report.model],
        ["Tokens", `${number(report.tokens)} of ${number(report.window_tokens)}`],
        ["Full", `${Math.round(report.pressure * 100)}%, room for the answer included`],
        ["Next call", price === null ? report.model === "offline" ? "nothing" : "no price is known" : `${dollars(report.tokens * price)}, ${report.cached ? "read from the cache" : "written to the cache"}`],
      ]} />
      <span class=${`bar ${report.pressure > 0.8 ? "full" : ""}`}><i ref=${(it) => it && (it.style.width = `${Math.min(100, report.pressure * 100)}%`)}></i></span>`}
    <p class="row"><${Run} class="" argv=${["compact"]} session=${session} then=${again} says>Compact now</${Run}></p>
    ${made?.compactions.length > 0 && html`<${Pressure} of=${made.compactions} now=${report?.tokens ?? 0} />`}
    <h2>What the model sees, in order</h2>
    <ol class="list">${shown.map((part) => html`<${Part} key=${part.message_id ?? part.kind} part=${part} price=${price} session=${session} />`)}</ol>
    ${parts.length > shown.length && html`<button onClick=${() => setAll(true)}>All ${number(parts.length)} parts</button>`}
    ${made?.compactions.length > 0 && html`<h2>What was compacted</h2>${made.compactions.map((it) => html`<${Compaction} key=${it.id} of=${it} done=${again} />`)}`}
  </${Page}>`;
}

function Part({ part, price, session }) {
  const name = part.kind === "message" ? WHO[part.role] : NAMES[part.kind];
  return html`<li>
    <details>
      <summary class="row"><span>${name} <span class="quiet">${part.text.slice(0, 200)}</span></span>
        <span class="quiet small">${plural(part.tokens, "token")}${price != null ? `, ${dollars(part.tokens * price)}` : ""}</span></summary>
      <div class="quote">${part.text}</div>
      ${part.kind === "message" && part.message_id && html`<a class="small" href=${`#/talk/${session}/${part.message_id}`}>Where it was said</a>`}
    </details>
  </li>`;
}

/** The size of the context over time: it falls with each compaction, and grows again. */
function Pressure({ of, now }) {
  const [times, tokens] = [[], []];
  let before = 0;
  for (const it of [...of].reverse().filter((one) => one.state === "live")) {
    const at = new Date(it.at).getTime() / 1000;
    const after = before + it.summary_tokens;
    times.push(at, at + 1);
    tokens.push(after + it.original_tokens - it.summary_tokens, after);
    before = after;
  }
  times.push(Date.now() / 1000);
  tokens.push(now);
  return html`<h2>Size over time</h2><${Plot} label="Tokens over time; it falls with each compaction" times=${times} series=${[{ label: "Tokens", values: tokens, show: number }]} />`;
}

/** Give what a command printed as a file. */
function download(name, text) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function Compaction({ of, done }) {
  const [originals, setOriginals] = useState(null);
  const [detail, setDetail] = useState(null);
  const plan = async () => setDetail((await run(["aihistory", "show", String(of.id)])).html);
  const recover = async () => download(`compaction-${of.id}.json`, JSON.stringify(await read(["aihistory", "recover", String(of.id)]), null, 1));
  const show = async () => {
    const { messages } = await get("/messages", { session: of.session, before: of.to_message_id + 1, limit: 200, html: false });
    setOriginals(messages.filter((it) => it.id >= of.from_message_id));
  };
  const undo = async () => (await runAsked(["compact", "--undo", String(of.id)], of.session), done());
  return html`<details class="compaction">
    <summary class="row"><span>#${of.id} ${plural(of.messages, "message")} <span class="quiet">${of.trigger}, ${STATES[of.state] ?? of.state}</span></span>
      <span class="quiet small">${number(of.original_tokens)} → ${number(of.summary_tokens)} tokens, ${dollars(of.cost_usd)}, <${Time} at=${of.at} /></span></summary>
    <p class="row"><${Action} does=${plan}>Show the plan and the check</${Action}><${Action} does=${show}>Show the originals</${Action}><${Action} does=${recover}>Recover as a file</${Action}>${of.state === "live" && html`<${Action} does=${undo}>Undo</${Action}>`}</p>
    <div class="columns">
      ${detail ? html`<${Markdown} of=${detail} />` : html`<section><h3>Summary</h3><p class="words plain">${of.summary || "(none)"}</p></section>`}
      ${originals && html`<section><h3>Originals</h3>${originals.map((it) => html`<p class="words plain"><a class="small" href=${`#/talk/${of.session}/${it.id}`}>${WHO[it.role]}</a> ${it.text}</p>`)}</section>`}
    </div>
  </details>`;
}
