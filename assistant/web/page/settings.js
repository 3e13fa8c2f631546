/** Settings: each with its comment, its value and where that comes from; changed through the checks of the commands. */
import { html, useState } from "./vendor/preact.js";
import { read, run } from "./api.js";
import { plural } from "./format.js";
import { Action, Editor, Line, Page, Problem, useLoaded } from "./parts.js";

const SECTION = /^([a-z_]+)\./;

export function Settings() {
  const [rows, error, reload] = useLoaded(() => read(["config", "show"]), []);
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const words = text.toLowerCase();
  const found = (rows ?? []).filter((row) => SECTION.test(row.key) && `${row.key} ${row.about}`.toLowerCase().includes(words));
  const sections = new Map();
  for (const row of found) sections.set(SECTION.exec(row.key)[1], [...(sections.get(SECTION.exec(row.key)[1]) ?? []), row]);
  /** It ends before it can answer; a refusal is shown. */
  const restart = () => run(["service", "restart"]).catch((error) => { if (error.status) throw error; });
  const changed = (answer) => (setSaid(answer.remark), reload());
  return html`<${Page} title="Settings" waits=${!rows && !error} aside=${html`<a href="#/setup">Set up step by step</a>`}>
    <p class="quiet">They are in config.toml of your data folder. A value that the assistant could not start with is refused.</p>
    <input type="search" value=${text} placeholder="Search settings" aria-label="Search settings" onInput=${(event) => setText(event.target.value)} />
    <${Problem} error=${error} />
    ${said && html`<p class="row news" role="status"><span><${Line} text=${said} /></span>${/restart/.test(said) && html`<${Action} does=${restart}>Restart the service</${Action}>`}</p>`}
    ${rows && !found.length && html`<p class="quiet">No setting has these words.</p>`}
    ${[...sections].map(([name, all]) => html`<details key=${name} open=${words.length > 1}>
      <summary class="row"><span>${name.replaceAll("_", " ")}</span><span class="quiet small">${all.filter(isChanged).length ? `${all.filter(isChanged).length} changed, ` : ""}${plural(all.length, "setting")}</span></summary>
      <p class="quiet">${all[0].section}</p>
      <ul class="list">${all.map((row) => html`<${Setting} key=${row.key} row=${row} done=${changed} />`)}</ul>
    </details>`)}
    <${Secrets} done=${changed} />
  </${Page}>`;
}

const isChanged = (row) => row.origin !== "default.toml";
/** A variable of the environment, which is not changed from here. */
const isEnv = (row) => /^[A-Z\d_]+$/.test(row.origin);
/** As it is typed: text without its quotation marks. */
const bare = (value) => (/^".*"$/.test(value) ? JSON.parse(value) : value);

function Setting({ row, done }) {
  const [value, setValue] = useState(null);
  const isSecret = /\*|not set|^set$/.test(row.value) && /token|key|password/.test(row.key);
  const save = async () => {
    const answer = await run(["config", "set", row.key, value]);
    setValue(null);
    done(answer);
  };
  const reset = async () => done(await run(["config", "unset", row.key]));
  return html`<li>
    <div class="row"><code>${row.key}</code>
      ${value === null
        ? html`<span class="row"><span class=${isChanged(row) ? "" : "quiet"}>${row.value}</span>${!isSecret && html`<button type="button" class="link" aria-label=${`Change ${row.key}`} onClick=${() => setValue(bare(row.value))}>Change</button>`}
            ${isChanged(row) && !isSecret && !isEnv(row) && html`<${Action} class="link" label=${`Default for ${row.key}`} does=${reset}>Default</${Action}>`}</span>`
        : html`<${Editor} does=${save} cancel=${() => setValue(null)}><input aria-label=${row.key} value=${value} onInput=${(event) => setValue(event.target.value)} /></${Editor}>`}
    </div>
    <p class="quiet small"><${Line} text=${row.about} /> ${row.allowed && html`<br />Allowed: ${row.allowed}.`} ${isChanged(row) && html`<br />From ${row.origin}.`}</p>
  </li>`;
}

/** Keys and passwords: they can be replaced and removed, and are never shown. */
function Secrets({ done }) {
  const [rows, error, reload] = useLoaded(() => read(["config", "secret", "list"]), []);
  const [chosen, setChosen] = useState(null);
  const [typed, setTyped] = useState("");
  const save = async () => {
    const answer = await run(["config", "secret", "set", chosen], undefined, typed);
    setChosen(null);
    setTyped("");
    reload();
    done(answer);
  };
  const remove = (name) => async () => {
    if (!window.confirm(`Remove ${name}?`)) return;
    const answer = await run(["config", "secret", "remove", name]);
    reload();
    done(answer);
  };
  return html`<h2>Keys and passwords</h2><${Problem} error=${error} />
    <ul class="list">${(rows ?? []).map((row) => html`<li class="row"><code>${row.name}</code>
      ${chosen === row.name
        ? html`<${Editor} does=${save} cancel=${() => (setChosen(null), setTyped(""))}><input type="password" autocomplete="off" aria-label=${row.name} value=${typed} onInput=${(event) => setTyped(event.target.value)} /></${Editor}>`
        : html`<span class="row"><span class="quiet small">${row.set ? (isEnv(row) ? "from the environment" : row.origin) : "not set"}</span><button type="button" class="link" aria-label=${`Set ${row.name}`} onClick=${() => setChosen(row.name)}>${row.set ? "Replace" : "Set"}</button>
            ${row.set && !isEnv(row) && html`<${Action} class="link" label=${`Remove ${row.name}`} does=${remove(row.name)}>Remove</${Action}>`}</span>`}
    </li>`)}</ul>`;
}
