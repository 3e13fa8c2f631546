/** What a command lists, each with the commands that change it; what waits for the owner's yes. */
import { html, useState } from "./vendor/preact.js";
import { read, runAsked } from "./api.js";
import { Action, Line, Problem, useLoaded } from "./parts.js";

/** A heading and what a command lists; nothing where there is nothing. */
export function Listed({ title, argv, of = (value) => value, row, empty, since, children }) {
  const [value, error, reload] = useLoaded(() => read(argv), [since]);
  const rows = value === null ? [] : (of(value) ?? []);
  // Whoever cannot be reached at all is told of by the page.
  if (!rows.length && !empty && !error?.status) return null;
  return html`<section><h2>${title}</h2><${Problem} error=${error} />
    <ul class="list">${rows.map((item) => html`<li class="row" key=${item.id ?? item.name ?? item.started_at}>${row(item, reload)}</li>`)}</ul>
    ${value !== null && !rows.length && html`<p class="quiet">${empty}</p>`}${children?.(reload)}</section>`;
}

/** A button that runs a command, shows what came of it, and reads the list again. */
export function Run({ argv, session, then, children, class: name = "link", says = false }) {
  const [done, setDone] = useState(null);
  const act = async () => {
    const answer = await runAsked(argv, session);
    if (!answer) return;
    setDone(says ? answer.text || answer.remark : null);
    then?.(answer);
  };
  return html`<${Action} class=${name} does=${act}>${children}</${Action}>${done && html` <span class="quiet small" role="status"><${Line} text=${done} /></span>`}`;
}

/** What waits now, each with its buttons; read again when `since` is another. */
export const Approvals = ({ since }) =>
  html`<${Listed} title="What waits for your yes" argv=${["approvals", "list"]} since=${since} row=${(it, then) => html`<span>${it.effect}</span>
    <span class="row"><${Run} class="" argv=${["approvals", "yes", String(it.id)]} then=${then}>Yes</${Run}><${Run} class="" argv=${["approvals", "no", String(it.id)]} then=${then}>No</${Run}>${it.allows && html`<${Run} class="" argv=${["approvals", "yes", String(it.id), "--always"]} then=${then}>Always: ${it.allows}</${Run}>`}</span>`} />`;
