/** Sleep: what each did, how far one is that runs now, and what the next would do. */
import { html, useEffect, useState } from "./vendor/preact.js";
import { get, getStatus, read, run, runAsked } from "./api.js";
import { plural } from "./format.js";
import { Action, Due, Markdown, Page, Problem, Time, Zone, useLoaded } from "./parts.js";

const LOOK_EVERY = 1000;

export function Sleep() {
  const [limit, setLimit] = useState(30);
  const [loaded, error, reload] = useLoaded(() => get("/sleeps", { limit, html: true }), [limit]);
  const [forecast, setForecast] = useState(null);
  const [failure, setFailure] = useState(null);
  const sleeps = loaded?.sleeps ?? [];
  const running = sleeps.find((it) => it.state === "running");
  const [status] = useLoaded(getStatus, [sleeps[0]?.id, running?.id]);
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(reload, LOOK_EVERY);
    return () => clearInterval(timer);
  }, [running?.id]);
  /** It answers when the sleep is over; what it is at is read meanwhile. */
  const sleepNow = () => {
    setFailure(null);
    run(["sleep"]).then(reload, (refused) => (setFailure(refused), reload()));
    return new Promise((resolve) => setTimeout(() => (reload(), resolve()), 300));
  };
  return html`<${Page} title="Sleep" about="At night it reads what was said, keeps what matters, and makes room." waits=${!loaded && !error} aside=${html`<div class="row">
      <${Action} class="primary" does=${sleepNow}>Sleep now</${Action}>
      <${Action} does=${async () => setForecast(await run(["sleep", "--dry-run"]))}>What would it do?</${Action}>
    </div>`}>
    <${Problem} error=${error ?? failure} />
    <${Zone} of=${status}>Times in reports</${Zone}>
    ${status && !running && html`<p class="quiet next">Next sleep: ${!status.next_sleep ? "off" : html`<${Due} at=${status.next_sleep} now=${status.at} />`}</p>`}
    ${forecast && html`<${Markdown} of=${forecast.html} />`}
    ${sleeps.map((sleep, n) => html`<${One} key=${sleep.id} sleep=${sleep} newest=${n === 0} done=${reload} />`)}
    ${sleeps.length >= limit && html`<${Action} does=${async () => setLimit(limit + 30)}>Earlier ones</${Action}>`}
    ${loaded && !sleeps.length && html`<p class="quiet">It has not slept yet.</p>`}
  </${Page}>`;
}

function One({ sleep, newest, done }) {
  const [changes, setChanges] = useState(null);
  const show = async () => setChanges(await read(["memory", "changes", String(sleep.id)]));
  useEffect(() => setChanges(null), [sleep.state]);
  return html`<details open=${newest}>
    <summary class="row"><span>#${sleep.id} <${Time} at=${sleep.started_at} /></span><span class="quiet small" role="status">${sleep.state}</span></summary>
    <${Markdown} of=${sleep.html} />
    ${sleep.state !== "running" && html`<p class="row"><${Action} does=${show}>What it changed</${Action}>${newest && sleep.state === "done" && html`<${UndoSleep} done=${done}>Undo what it changed</${UndoSleep}>`}</p>`}
    ${changes && html`<${Changes} of=${changes} changed=${show} />`}
  </details>`;
}

export function UndoSleep({ done, children }) {
  const undo = async () => {
    if (window.confirm("Undo what this sleep changed? What was said stays.") && (await runAsked(["sleep", "--undo"]))) done();
  };
  return html`<${Action} does=${undo}>${children}</${Action}>`;
}

/** What a sleep changed, as a difference: what went, and what came; each change is kept or undone by itself. */
export function Changes({ of, changed }) {
  const none = !of.memories.length && !of.texts.length && !of.rejected.length;
  return html`<div class="changes" role="status">
    ${none && html`<p class="quiet">${of.state === "undone" ? "What it changed was undone." : "It changed no memory and no file."}</p>`}
    ${of.memories.map((it) => html`<div class="change" key=${it.id}>${it.before && it.before !== it.after && html`<del>${it.before}</del>`}
      ${it.after && html`<ins>${it.after}</ins>`} ${it.until && html`<span class="quiet small">true until <${Time} at=${it.until} /></span>`}
      <${Choice} reference=${it.id.slice(0, 8)} of=${it} changed=${changed}>${it.after && html`<a class="small" href=${`#/memory/${it.id.slice(0, 8)}`}>Open</a>`}</${Choice}></div>`)}
    ${of.rejected.length > 0 && html`<h3>Not remembered</h3><ul>${of.rejected.map((it) => html`<li>${it.text} <span class="quiet small">${it.reason}</span></li>`)}</ul>`}
    ${of.texts.map((text) => html`<div class="change" key=${text.id}><h3>${text.name}</h3>${text.lines.map((line) => (line[0] === "+" ? html`<ins>${line.slice(2)}</ins>` : html`<del>${line.slice(2)}</del>`))}
      ${text.more > 0 && html`<p class="quiet small">${plural(text.more, "more line")}</p>`}
      <${Choice} reference=${`c${text.id}`} of=${text} changed=${changed} /></div>`)}
  </div>`;
}

/** Whether one change is right. */
const Choice = ({ reference, of, changed, children }) =>
  html`<p class="row">${of.accepted ? html`<span class="good small">Accepted</span>` : html`<${Action} class="link" does=${async () => (await run(["memory", "accept", reference]), changed())}>Accept</${Action}>`}
    <${Action} class="link" does=${async () => (await run(["memory", "undo", reference]), changed())}>Undo</${Action}>${children}</p>`;
