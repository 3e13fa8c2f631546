/** One entry of a conversation: who said it, its words, its files, the steps of an answer, and what may be done with it. */
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { read } from "./api.js";
import { bytes } from "./format.js";
import { Action, Markdown, Time } from "./parts.js";

export const WHO = { user: "You", assistant: "Assistant", tool: "Tool", reminder: "Reminder", notice: "Notice", command: "Command", system: "Note" };
const PICTURES = /^image\/(png|jpeg|gif|webp)$/;

export function Entry({ entry, found, command, edit, isLast }) {
  const { role, html: words, text, media = [], steps = [], buttons = [] } = entry;
  return html`<article class=${`entry ${role} ${found ? "found" : ""}`} aria-label=${WHO[role]}>
    <header><span>${entry.typed ?? WHO[role]}</span> <${Time} at=${entry.at} /></header>
    <${Steps} of=${steps} open=${found} />
    <${Said} words=${words} text=${text} shortens=${role === "user"} />
    ${media.length > 0 && html`<div class="files">${media.map((file, number) => html`<${File} of=${file} message=${entry.id} number=${number} />`)}</div>`}
    ${entry.spoken && html`<audio controls preload="none" src=${`/v1/history/${entry.id}/spoken`} aria-label="The answer, spoken"></audio>`}
    ${buttons.length > 0 && html`<p class="buttons">${buttons.map((it) => html`<${Action} does=${() => command(it.command)}>${it.label}</${Action}>`)}</p>`}
    <footer>
      ${role === "assistant" && html`<${Why} text=${text} />${isLast && html`<${Action} class="link" does=${() => command("/retry")}>Try again</${Action}>`}`}
      ${edit && html`<${Action} class="link" does=${() => edit(entry)}>Edit</${Action}>`}
      ${entry.pending && html`<span class="quiet">sending</span>`}
    </footer>
  </article>`;
}

/** What was said; of a long text that was pasted the beginning, until all of it is asked for. */
function Said({ words, text, shortens }) {
  const [whole, setWhole] = useState(!shortens || !(text?.length > 6000));
  if (words != null && whole) return html`<${Markdown} of=${words} />`;
  return html`<p class="words plain">${whole ? text : html`${text.slice(0, 1200)}… <button class="link" onClick=${() => setWhole(true)}>Show all of it</button>`}</p>`;
}

/** What the assistant did before it answered, folded. */
function Steps({ of, open }) {
  if (!of.length) return null;
  const running = of.find((step) => step.state === "started");
  const names = [...new Set(of.map((step) => step.name.replaceAll("_", " ")))].join(", ");
  return html`<details class="steps" open=${open}>
    <summary>${running ? `Now: ${running.name.replaceAll("_", " ")}` : `Did: ${names}`}</summary>
    <ol>
      ${of.map(
        (step) => html`<li class=${step.state}>
          <strong>${step.name.replaceAll("_", " ")}</strong>${step.state === "failed" ? " (failed)" : ""}
          ${step.arguments && html`<code>${JSON.stringify(step.arguments)}</code>`}
          ${step.result && html`<pre>${step.result}</pre>`}
        </li>`,
      )}
    </ol>
  </details>`;
}

function File({ of, message, number }) {
  const address = of.preview ?? (message ? `/v1/history/${message}/files/${number}` : null);
  const name = of.name || of.mime;
  if (address && PICTURES.test(of.mime)) return html`<a href=${address} target="_blank"><img src=${address} alt=${name} loading="lazy" /></a>`;
  if (address && of.mime.startsWith("audio/")) return html`<audio controls preload="none" src=${address} aria-label=${name}></audio>`;
  return html`<a href=${address} download=${name}>${name}${of.size ? `, ${bytes(of.size)}` : ""}</a>`;
}

/** Where an answer, or the words of it that are selected, may come from. */
function Why({ text }) {
  const [found, setFound] = useState(null);
  const list = useRef(null);
  useEffect(() => list.current?.scrollIntoView({ block: "nearest" }), [found]);
  const ask = async () => {
    const chosen = window.getSelection()?.toString().trim();
    setFound(await read(["memory", "search", "--limit", "5", "--", chosen || text.slice(0, 300)]));
  };
  return html`<${Action} class="link" does=${ask}>Why do you know this?</${Action}>
    ${found &&
    html`<ul class="why" role="status" ref=${list}>
      ${found.map((hit) => html`<li><a href=${`#/memory/${hit.id}`}>${hit.text}</a> <${Time} at=${hit.said_at} /></li>`)}
      ${found.length === 0 && html`<li class="quiet">No memory has these words. Select the words that you mean, and ask again.</li>`}
    </ul>`}`;
}

/** What is being written now. */
export function Writing({ now }) {
  if (!now.turn && !now.notice) return null;
  return html`<article class="entry assistant writing" aria-label="Assistant" aria-busy="true">
    <header><span>Assistant</span></header>
    <${Steps} of=${now.steps} />
    ${now.blocks.map((block, number) => html`<${Markdown} key=${number} of=${block} />`)}
    ${!now.blocks.length && html`<p class="quiet" role="status">${now.notice || "Writing"}<span class="dots" aria-hidden="true"></span></p>`}
  </article>`;
}
