/** Memory: what is remembered, searched or as a timeline; each memory down to the words it came from; put right. */
import { html, useState } from "./vendor/preact.js";
import { read, runAsked, run } from "./api.js";
import { day, plural } from "./format.js";
import { Connections } from "./connections.js";
import { Changes, UndoSleep } from "./sleep.js";
import { Action, Editor, Markdown, Page, Problem, Tabs, Time, useLoaded, useSettled } from "./parts.js";

const PAGE = 100;

export function Memory({ rest }) {
  if (rest[0] === "about") return html`<${Connections} key=${rest[1]} name=${rest[1]} />`;
  if (rest[0] === "profiles") return html`<${Profiles} />`;
  return rest[0] ? html`<${One} key=${rest[0]} reference=${rest[0]} />` : html`<${All} />`;
}

function All() {
  const [text, setText] = useState("");
  const asked = useSettled(text.trim());
  const [state, setState] = useState("current");
  const [limit, setLimit] = useState(PAGE);
  const list = () => read(["memory", "list", "--limit", String(limit), ...(state === "former" ? ["--former"] : [])]);
  const load = () => (asked ? read(["memory", "search", "--limit", "30", "--", asked]) : list());
  const [found, error, reload] = useLoaded(load, [asked, state, limit]);
  return html`<${Page} title="Memory" about="What is remembered, newest first. Open one to see the words it came from." waits=${!found && !error} aside=${html`<${Views} chosen=${state} choose=${setState} />`}>
    <input type="search" value=${text} placeholder="Search what is remembered" aria-label="Search what is remembered" onInput=${(event) => setText(event.target.value)} />
    <${Problem} error=${error} />
    ${!asked && html`<${LastSleep} changed=${reload} />`}
    ${found && (asked ? html`<${List} of=${found} />` : html`<${Timeline} of=${found} />`)}
    ${found?.length === 0 && html`<p class="quiet">${asked ? "No memory was found." : html`Nothing is remembered yet. The assistant learns while it <a href="#/sleep">sleeps</a>.`}</p>`}
    ${!asked && found?.length >= limit && html`<${Action} does=${async () => setLimit(limit + PAGE)}>Earlier ones</${Action}>`}
  </${Page}>`;
}

const List = ({ of, dated = true }) =>
  html`<ul class="list memories">
    ${of.map(
      (memory) => html`<li class="row">
        <a class=${memory.until ? "former" : ""} href=${`#/memory/${memory.id}`}>${memory.text}</a>
        <span class="quiet small">${memory.kind}${dated && html` · <${Time} at=${memory.said_at} />`}</span>
      </li>`,
    )}
  </ul>`;

/** By the day on which it was said, newest first. */
function Timeline({ of }) {
  const days = new Map();
  for (const memory of [...of].sort((a, b) => b.said_at.localeCompare(a.said_at))) {
    const name = day(memory.said_at);
    days.set(name, [...(days.get(name) ?? []), memory]);
  }
  return [...days].map(([name, memories]) => html`<section key=${name}><h2>${name}</h2><${List} of=${memories} dated=${false} /></section>`);
}

/** One memory: what it says, said, and was; what may be done with it. */
function One({ reference }) {
  const [loaded, error, reload] = useLoaded(() => read(["memory", "why", reference]), [reference]);
  const [text, setText] = useState(null);
  const [done, setDone] = useState(null);
  const memory = Array.isArray(loaded) ? loaded[0] : loaded;
  const correct = async () => {
    const answer = await run(["memory", "edit", reference, text]);
    setText(null);
    setDone(answer);
    reload();
  };
  const forget = async () => {
    const answer = await runAsked(["memory", "forget", reference]);
    if (answer) setDone({ ...answer, forgotten: true });
  };
  return html`<${Page} title="A memory" waits=${!memory && !error} aside=${html`<a href="#/memory">All memories</a>`}>
    <${Problem} error=${error} />
    ${done && html`<div role="status"><${Markdown} of=${done.html} /></div>`}
    ${memory && !done?.forgotten && html`<p class=${`words ${memory.until ? "former" : ""}`}>${memory.text}</p>
      <p class="quiet small">${memory.kind}, said <${Time} at=${memory.said_at} />${memory.until && html`, true until <${Time} at=${memory.until} />`}
        ${memory.superseded_by && html`, now: <a href=${`#/memory/${memory.superseded_by}`}>what replaced it</a>`}</p>
      ${text === null
        ? html`<p class="row"><button onClick=${() => setText(memory.text)}>Correct</button><${Action} class="danger" does=${forget}>Forget</${Action}></p>`
        : html`<${Editor} save="Keep this instead" does=${correct} cancel=${() => setText(null)}>
            <textarea class="whole" rows="3" aria-label="What is right" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></${Editor}>`}
      <h2>Why it is known</h2>
      ${memory.said.map((entry) => html`<${Said} entry=${entry} />`)}
      ${!memory.said.length && html`<p class="quiet">No message says it.</p>`}
      ${memory.versions.length > 1 && html`<h2>What it said over time</h2>
        <ul class="list">${memory.versions.map((version) => html`<li><${Time} at=${version.at} /> ${version.after}</li>`)}</ul>`}
      <${Related} memory=${memory} />`}
  </${Page}>`;
}

const Said = ({ entry }) =>
  html`<section>
    <p class="quiet small">Noted <${Time} at=${entry.at} />: ${entry.text}</p>
    ${entry.messages.map(
      (message) => html`<blockquote class="quote">
        <a class="small" href=${`#/talk/${message.session}/${message.id}`}>${message.role === "user" ? "You" : "Assistant"}, <${Time} at=${message.at} /></a>
        <br />${message.text || "(forgotten)"}
      </blockquote>`,
    )}
  </section>`;

/** Memories of the same thing: the ones that the same words find. */
function Related({ memory }) {
  const [found] = useLoaded(() => read(["memory", "search", "--limit", "8", "--", memory.text.slice(0, 300)]), [memory.id]);
  const others = (found ?? []).filter((it) => it.id !== memory.id);
  return others.length ? html`<h2>Related</h2><${List} of=${others} />` : null;
}

const VIEWS = [["current", "Current"], ["former", "Outdated too"], ["profiles", "People, places, projects"]];
const Views = ({ chosen, choose }) =>
  html`<${Tabs} label="Which memories" of=${VIEWS} chosen=${chosen} choose=${(view) => (view === "profiles" ? (location.hash = "#/memory/profiles") : choose(view))} />`;

/** What the last sleep changed and nobody accepted yet: each change, or all of it, is accepted or undone. */
function LastSleep({ changed }) {
  const [changes, , reload] = useLoaded(() => read(["memory", "changes"]), []);
  if (changes?.state !== "done") return null;
  const open = [...changes.memories, ...changes.texts].filter((it) => !it.accepted).length;
  if (!open) return null;
  const again = () => (reload(), changed());
  return html`<details class="last-sleep"><summary class="row"><span>What the last sleep changed</span><span class="quiet small">${plural(open, "change")}${changes.more && " and more"}, <${Time} at=${changes.started_at} /></span></summary>
    <${Changes} of=${changes} changed=${again} />
    <p class="row"><${Action} does=${async () => (await run(["memory", "accept"]), again())}>Accept all</${Action}><${UndoSleep} done=${again}>Undo it all</${UndoSleep}></p></details>`;
}

const KINDS = [["person", "People"], ["place", "Places"], ["project", "Projects"], ["thing", "Other things"]];

/** People, places and projects, each with what is known of it and since when. */
function Profiles() {
  const [later, setLater] = useState([]);
  const list = (...after) => read(["memory", "profiles", "--limit", String(PAGE), ...after]);
  const [first, error] = useLoaded(list, []);
  const found = first && [...first, ...later];
  const more = async () => setLater([...later, ...(await list("--after", found.at(-1).name))]);
  return html`<${Page} title="Memory" about="Who and what your conversations come back to, with what is known and since when." waits=${!found && !error} aside=${html`<${Views} chosen="profiles" choose=${() => (location.hash = "#/memory")} />`}>
    <${Problem} error=${error} />
    ${found?.length === 0 && html`<p class="quiet">Nobody and nothing has a profile yet. Sleep makes them of what is said more than once.</p>`}
    ${KINDS.map(([kind, title]) => [title, (found ?? []).filter((it) => it.kind === kind)]).filter(([, all]) => all.length).map(([title, all]) => html`<h2>${title}</h2>
      ${all.map((it) => html`<section key=${it.name}><h3><a href=${`#/memory/about/${encodeURIComponent(it.name)}`}>${it.name}</a> ${it.aliases.length > 0 && html`<span class="quiet small">also: ${it.aliases.join(", ")}</span>`}</h3>
        ${it.summary && html`<p>${it.summary}</p>`}
        <ul class="list">${it.attributes.map((fact) => html`<li class="row"><span class=${fact.until ? "former" : ""}><span class="quiet">${fact.name}</span> ${fact.value}</span>
          <span class="quiet small">since ${day(fact.since)}${fact.until && ` until ${day(fact.until)}`} ${fact.sources[0] && html`<a href=${`#/memory/e${fact.sources[0]}`}>why</a>`}</span></li>`)}</ul></section>`)}`)}
    ${found?.length >= PAGE && found.length % PAGE === 0 && html`<p><${Action} does=${more}>More</${Action}></p>`}
  </${Page}>`;
}
