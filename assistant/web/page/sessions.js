/** At the side of a conversation: the others, a new one, and the search in everything that was ever said. */
import { html, useState } from "./vendor/preact.js";
import { get } from "./api.js";
import { WHO } from "./entry.js";
import { Problem, Time, useLoaded, useSettled } from "./parts.js";

export function Sessions({ chosen }) {
  const [loaded, error] = useLoaded(() => get("/sessions", { limit: 1 }), [chosen]);
  const [text, setText] = useState("");
  const shown = (loaded?.sessions ?? []).filter((it) => it.current);
  const names = new Set(["main", chosen, ...shown.map((it) => it.session)]);
  const begin = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("name").trim();
    if (!name) return;
    event.target.reset();
    location.hash = `#/talk/thread:${encodeURIComponent(name.toLowerCase().replace(/[^\p{L}\p{N}_.-]+/gu, "-").slice(0, 40))}`;
  };
  return html`<aside class="sessions" aria-label="Conversations">
    <input type="search" value=${text} placeholder="Search" aria-label="Search all that was said" onInput=${(event) => setText(event.target.value)} />
    ${text.trim()
      ? html`<${Found} text=${text.trim()} />`
      : html`<${Problem} error=${error} />
          <ul>
            ${[...names].map((name) => {
              const row = shown.find((it) => it.session === name);
              return html`<li><a href=${`#/talk/${name}`} aria-current=${name === chosen ? "true" : undefined}>${name.replace(/^thread:/, "")}</a> <${Time} at=${row?.last_at} /></li>`;
            })}
          </ul>
          <form onSubmit=${begin}><input name="name" placeholder="New conversation" aria-label="Name of a new conversation" maxlength="40" /><button class="link">Start</button></form>`}
  </aside>`;
}

function Found({ text }) {
  const asked = useSettled(text);
  const [found, error] = useLoaded(() => get("/history", { q: asked, limit: 20 }), [asked]);
  return html`<${Problem} error=${error} />
    <ul class="found" role="status">
      ${(found?.hits ?? []).map(
        (hit) => html`<li><a href=${`#/talk/${hit.session}/${hit.id}`}><span class="quiet">${WHO[hit.role]}, ${hit.session.replace(/^thread:/, "")}, <${Time} at=${hit.at} /></span><br />${hit.text}</a></li>`,
      )}
      ${found && !found.hits.length && html`<li class="quiet">Nothing was found.</li>`}
    </ul>`;
}
