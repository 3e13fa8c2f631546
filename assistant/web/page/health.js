/** Health: how every part is, what needs a person, who is let in, backups and logins. */
import { html } from "./vendor/preact.js";
import { get, logOut, read, run, runAsked } from "./api.js";
import { bytes } from "./format.js";
import { Action, Facts, Markdown, Page, Problem, Time, useLoaded } from "./parts.js";

export default function Health() {
  const [status, error, reload] = useLoaded(() => get("/status"), []);
  const [shown] = useLoaded(() => run(["status"]), [status]);
  return html`<${Page} title="Health" aside=${status && html`<span class=${status.ok ? "good" : "problem"} role="status">${status.ok ? "All is well." : "Something needs you."}</span>`}>
    <${Problem} error=${error} />
    ${status?.problems.length > 0 && html`<ul class="list">${status.problems.map((problem) => html`<li class="problem">${problem}</li>`)}</ul>`}
    ${shown && html`<${Markdown} of=${shown.html} />`}
    <${Approvals} />
    <${Bridges} />
    <${People} />
    <${Deliveries} />
    <${Backups} />
    <${Browsers} />
    <p class="row"><button type="button" onClick=${reload}>Look again</button></p>
  </${Page}>`;
}

/** A heading and what a command lists; nothing where there is nothing. */
function Listed({ title, argv, row, empty, children }) {
  const [items, error, reload] = useLoaded(() => read(argv), []);
  const rows = Array.isArray(items) ? items : [];
  if (!error && items !== null && !rows.length && !empty) return null;
  return html`<section><h2>${title}</h2><${Problem} error=${error} />
    <ul class="list">${rows.map((item) => html`<li class="row">${row(item, reload)}</li>`)}</ul>
    ${items !== null && !rows.length && html`<p class="quiet">${empty}</p>`}${children?.(reload)}</section>`;
}

/** A button that runs a command, and reads the list again. */
const Run = ({ argv, then, children, class: name = "link" }) => html`<${Action} class=${name} does=${async () => ((await runAsked(argv)) && then?.())}>${children}</${Action}>`;

const Approvals = () =>
  html`<${Listed} title="What waits for your yes" argv=${["approvals", "list"]} row=${(it, then) => html`<span>${it.effect}</span>
    <span class="row"><${Run} argv=${["approvals", "yes", String(it.id)]} then=${then}>Yes</${Run}><${Run} argv=${["approvals", "no", String(it.id)]} then=${then}>No</${Run}></span>`} />`;

const Bridges = () =>
  html`<${Listed} title="Bridges" argv=${["bridge", "list"]} row=${(it, then) => html`<span>${it.name} <span class="quiet small">${it.state}${it.account && `, ${it.account}`}</span> ${it.error && html`<span class="problem small">${it.error} ${it.todo}</span>`}</span>
    <span class="row"><${Run} argv=${["bridge", "test", it.name]}>Test</${Run}><${Run} argv=${["bridge", it.state === "paused" ? "resume" : "pause", it.name]} then=${then}>${it.state === "paused" ? "Resume" : "Pause"}</${Run}></span>`} />`;

function People() {
  const [text, error] = useLoaded(() => run(["people", "list"]), []);
  return html`<section><h2>People</h2><${Problem} error=${error} />${text && html`<${Markdown} of=${text.html} />`}</section>`;
}

const Deliveries = () =>
  html`<${Listed} title="What did not arrive, or may not have" argv=${["deliveries", "list"]} row=${(it, then) => html`<span>${it.text ?? it.body ?? it.key}</span>
    <span class="row"><${Run} argv=${["deliveries", "again", String(it.id)]} then=${then}>Send again</${Run}><${Run} argv=${["deliveries", "drop", String(it.id)]} then=${then}>Drop</${Run}></span>`} />`;

const Backups = () =>
  html`<${Listed} title="Backups" argv=${["backup", "list"]} empty="There is no backup yet." row=${(it) => html`<span>${it.name}</span><span class="quiet small">${bytes(it.bytes)}, <${Time} at=${it.made_at} /></span>`}>
    ${(then) => html`<p><${Run} class="" argv=${["backup", "create"]} then=${then}>Back up now</${Run}></p>`}
  </${Listed}>`;

const Browsers = () =>
  html`<${Listed} title="Browsers that are logged in" argv=${["web", "sessions"]} empty="None." row=${(it, then) => html`<span>${it.agent}<br /><span class="quiet small">last used <${Time} at=${it.used_at} /></span></span><${Run} argv=${["web", "revoke", String(it.id)]} then=${then}>Log out</${Run}>`}>
    ${() => html`<p><${Action} does=${async () => (await logOut(), window.dispatchEvent(new Event("loggedout")))}>Log this browser out</${Action}></p>`}
  </${Listed}>`;
