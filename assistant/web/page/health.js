/** Health: how every part is, what needs a person and is fixed by a button, who is let in, backups, archive, logs. */
import { html, useState } from "./vendor/preact.js";
import { get, getStatus, logOut, post, read, run } from "./api.js";
import { bytes } from "./format.js";
import { Approvals, Listed, Run } from "./listed.js";
import { Action, Facts, Line, Markdown, Page, Problem, Time, Zone, useLoaded } from "./parts.js";

export function Health() {
  const [status, error, reload] = useLoaded(getStatus, []);
  const [shown] = useLoaded(async () => status && run(["status"]), [status]);
  return html`<${Page} title="Health" about="What needs you, and how each part of your assistant is." waits=${!status && !error} aside=${status && html`<span class=${status.ok ? "good" : "problem"} role="status">${status.ok ? "All is well." : "Something needs you."}</span>`}>
    <${Problem} error=${error} />
    ${status?.problems.length > 0 && html`<ul class="list">${status.problems.map((problem) => html`<${Trouble} key=${problem} text=${problem} then=${reload} />`)}</ul>`}
    <${Approvals} /><${Allowed} />
    <${People} />
    <${Deliveries} />
    <${Zone} of=${status}>Times in texts</${Zone}>
    ${shown && html`<${Facts} rows=${factsOf(shown.text)} />`}
    <${Checks} done=${reload} />
    <${Bridges} />
    <${Backups} />
    <${Archive} />
    <${Browsers} /><${Notifications} />
    <${Logs} />
  </${Page}>`;
}

/** What may be run from here of what a problem says to run. */
const REMEDIES = /^assistant (sleep|backup create|memory rebuild|doctor --fix|service restart)$/;

/** What needs a person, with a button for each command that fixes it. */
function Trouble({ text, then }) {
  const commands = text.split("`").filter((part, n) => n % 2 && REMEDIES.test(part));
  return html`<li class="row"><span class="problem"><${Line} text=${text} /></span>
    <span class="row">${commands.map((line) => html`<${Run} class="" argv=${line.split(" ").slice(1)} then=${then}>Run <code>${line}</code></${Run}>`)}</span></li>`;
}

/** The lines of a status, "Subject: how it is", as rows; what needs a person stands above them. */
const factsOf = (text) =>
  text
    .split("\n")
    .map((line) => /^- (?!!)(.{1,60}?): (.*)$/.exec(line))
    .filter((found) => found && found[1] !== "Green")
    .map((found) => [found[1], html`<${Line} text=${found[2]} />`]);

const Allowed = () =>
  html`<${Listed} title="What you allowed" argv=${["approvals", "allowed"]} row=${(it, then) => html`<span>${it.allows}, until ${it.allowed_until.slice(0, 10)}, used ${it.uses === 1 ? "once" : `${it.uses} times`}</span>
    <${Run} argv=${["approvals", "revoke", String(it.id)]} then=${then}>Ask me again</${Run}>`} />`;

const Deliveries = () =>
  html`<${Listed} title="What did not arrive, or may not have" argv=${["deliveries", "list"]} row=${(it, then) => html`<span>${it.text ?? it.body ?? it.key}</span>
    <span class="row"><${Run} argv=${["deliveries", "again", String(it.id)]} then=${then}>Send again</${Run}><${Run} argv=${["deliveries", "drop", String(it.id)]} then=${then}>Drop</${Run}></span>`} />`;

/** What `assistant doctor` finds; a button fixes what is safe to fix. */
function Checks({ done }) {
  const [report, setReport] = useState(null);
  const check = (...options) => async () => {
    const answer = await run(["doctor", ...options]);
    setReport(answer.value);
    if (options.length) done();
  };
  const found = (report?.findings ?? []).filter((it) => it.verdict !== "ok" || it.fixed);
  return html`<section><h2>Checks</h2>
    <p class="quiet">Looks at every part: settings, files, disk, clock, model, bridges, service.</p>
    <p class="row"><${Action} does=${check()}>Check every part</${Action}>
      ${report && html`<${Action} class=${report.ok ? "" : "primary"} does=${check("--fix")}>Fix what is safe to fix</${Action}><${Action} does=${check("--call")}>Ask the model, too</${Action}>`}</p>
    ${report && html`<div role="status"><p>${report.ok ? "All is well." : "Something needs you."} <span class="quiet">${report.findings.length} checks</span></p>
      <ul class="list findings">${found.map((it) => html`<li><strong>${it.subject}</strong> <span class=${it.verdict === "problem" ? "problem" : ""}><${Line} text=${it.text} /></span>
        ${it.fixed && html` <span class="good">${it.fixed}</span>`}<br /><span class="quiet"><${Line} text=${it.to_do} /></span></li>`)}</ul></div>`}
  </section>`;
}

const Bridges = () =>
  html`<${Listed} title="Bridges" argv=${["bridge", "list"]} row=${(it, then) => html`<span>${it.name} <span class="quiet small">${it.state}${it.account && `, ${it.account}`}</span> ${it.error && html`<span class="problem small">${it.error} ${it.todo}</span>`}</span>
    <span class="row"><${Run} argv=${["bridge", "test", it.name]} says>Test</${Run}><${Run} argv=${["bridge", it.state === "paused" ? "resume" : "pause", it.name]} then=${then}>${it.state === "paused" ? "Resume" : "Pause"}</${Run}></span>`} />`;

/** Who may talk to it, and who asks to; nobody may look at this page but its owner. */
function People() {
  const [known, error, reload] = useLoaded(() => read(["people", "list"]), []);
  const accounts = (it) => it.identities.map((one) => `${one.id} on ${one.bridge}`).join(", ") || "no account";
  return html`<section><${Problem} error=${error} />
    ${known?.waiting.length > 0 && html`<h2>Who asks to be let in</h2><ul class="list waiting">${known.waiting.map((it) => html`<li class="row" key=${it.number}><span>${it.room && "The room "}${it.name || it.id} <span class="quiet small">${it.bridge}, <${Time} at=${it.since} />${it.locked && ", locked after wrong codes"}</span></span>
      <span class="row"><${Run} argv=${["people", "pair", "allow", String(it.number)]} then=${reload}>Let in as a guest</${Run}><${Run} argv=${["people", "pair", "deny", String(it.number)]} then=${reload}>Refuse</${Run}></span></li>`)}</ul>`}
    ${known?.people.length > 0 && html`<h2>People</h2><ul class="list people">${known.people.map((it) => html`<li class="row" key=${it.id}><span>${it.name} <span class="quiet small">${it.role}${it.state === "denied" ? ", denied" : ""}; ${accounts(it)}</span></span>
      ${it.role === "guest" && html`<${Run} argv=${["people", it.state === "denied" ? "allow" : "deny", String(it.id)]} then=${reload}>${it.state === "denied" ? "Let in" : "Refuse"}</${Run}>`}</li>`)}</ul>`}
  </section>`;
}

const Backups = () =>
  html`<${Listed} title="Backups" argv=${["backup", "list"]} empty="There is no backup yet." row=${(it) => html`<span>${it.name}</span><span class="quiet small">${bytes(it.bytes)}, <${Time} at=${it.made_at} /></span>`}>
    ${(then) => html`<p><${Run} class="" argv=${["backup", "create"]} then=${then}>Back up now</${Run}></p>`}
  </${Listed}>`;

/** Conversations that ended; each opens. */
const Archive = () =>
  html`<${Listed} title="Archive" argv=${["archive", "list"]} row=${(it) => html`<${Archived} of=${it} />`} />`;

function Archived({ of }) {
  const [shown, setShown] = useState(null);
  const show = async () => setShown(shown ? null : await run(["archive", "show", of.session, String(of.generation)]));
  return html`<span>${of.session} ${of.generation} <span class="quiet small"><${Time} at=${of.started_at} /> to <${Time} at=${of.ended_at} />, ${bytes(of.bytes)}${of.encrypted ? ", encrypted" : ""}</span></span>
    <${Action} class="link" does=${show}>${shown ? "Hide" : "Show"}</${Action}>${shown && html`<${Markdown} class="whole" of=${shown.html} />`}`;
}

const Browsers = () =>
  html`<${Listed} title="Browsers that are logged in" argv=${["web", "sessions"]} empty="No browser is logged in." row=${(it, then) => html`<span title=${it.agent}>${it.name} <span class="quiet small">last used <${Time} at=${it.used_at} /></span></span><${Run} argv=${["web", "revoke", String(it.id)]} then=${then}>Log out</${Run}>`}>
    ${() => html`<p><${Action} does=${async () => (await logOut(), window.dispatchEvent(new Event("loggedout")))}>Log this browser out</${Action}></p>`}
  </${Listed}>`;

/** In this browser, of what nobody has seen. */
function Notifications() {
  const [state, error, reload] = useLoaded(() => get("/push"), []);
  const workers = window.PushManager && navigator.serviceWorker;
  const on = async () => {
    if ((await Notification.requestPermission()) !== "granted") throw new Error("Your browser does not allow it.");
    await workers.register("/worker.js");
    const asked = (await workers.ready).pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: state.key });
    // A browser that does not reach its push service tries for minutes.
    const made = await Promise.race([asked, new Promise((_, no) => setTimeout(no, 3e4))]).then((it) => it.toJSON(), () => {
      throw new Error("Your browser's push service does not answer.");
    });
    await post("/push", { endpoint: made.endpoint, ...made.keys });
    reload();
  };
  const off = async () => (await post("/push/off"), reload());
  return html`<section><h2>Notifications</h2>${error?.status === 400 ? html`<p class="quiet"><${Line} text=${error.message} /></p>` : html`<${Problem} error=${error} />`}
    <p class="quiet">Of reminders and questions that nobody has seen.${!workers && " This browser takes them over https only."}</p>
    ${workers && state && html`<p><${Action} does=${state.on ? off : on}>${state.on ? "Turn off" : "Notify me here"}</${Action}></p>`}</section>`;
}

/** The log of the service, where it runs as one; it has no text of messages. */
function Logs() {
  const [text, setText] = useState(null);
  const show = async () => setText((await run(["service", "logs", "--lines", "200"])).text);
  return html`<section><h2>Log</h2><p><${Action} does=${show}>Show the last lines</${Action}></p>${text !== null && html`<pre tabindex="0">${text || "It is empty."}</pre>`}</section>`;
}
