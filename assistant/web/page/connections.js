/** What somebody or something is connected with: a picture, and the same as a list, in which each connection leads to the
 * facts and memories that say so. The picture is for the eye alone; the list has everything. */
import { html } from "./vendor/preact.js";
import { read } from "./api.js";
import { day } from "./format.js";
import { Page, Problem, Time, useLoaded } from "./parts.js";

const [WIDTH, HEIGHT] = [640, 380];
const MOST = 12;

const addressOf = (name) => `#/memory/about/${encodeURIComponent(name)}`;
/** Only former facts connect them, and no memory that is current. */
const isFormer = (it) => [...it.facts, ...it.memories].every((one) => one.until);
const shorten = (text) => (text.length > 22 ? `${text.slice(0, 21)}…` : text);

export function Connections({ name }) {
  const [found, error] = useLoaded(() => read(["memory", "connections", name]), [name]);
  const isEmpty = found && !found.connections.length && !found.memories.length;
  return html`<${Page} title=${found?.name ?? name} aside=${html`<a href="#/memory/profiles">People, places, projects</a>`}>
    <${Problem} error=${error} />
    ${found?.connections.length > 0 && html`<${Picture} of=${found} />`}
    ${found?.connections.map((it) => html`<section key=${it.name}>
      <h2>${it.kind ? html`<a href=${addressOf(it.name)}>${it.name}</a>` : it.name}</h2>
      <ul class="list">
        ${it.facts.map((fact) => html`<li class="row"><span class=${fact.until ? "former" : ""}>${fact.name}</span>
          <span class="quiet small">since ${day(fact.since)}${fact.until && ` until ${day(fact.until)}`} ${fact.source && html`<a href=${`#/memory/e${fact.source}`}>why</a>`}</span></li>`)}
        ${it.memories.map((memory) => html`<${Line} of=${memory} />`)}
      </ul></section>`)}
    ${found?.memories.length > 0 && html`<h2>Also remembered</h2><ul class="list memories">${found.memories.map((memory) => html`<${Line} of=${memory} />`)}</ul>`}
    ${isEmpty && html`<p class="quiet">Nothing is known that is connected with it.</p>`}
  </${Page}>`;
}

const Line = ({ of }) =>
  html`<li class="row"><a class=${of.until ? "former" : ""} href=${`#/memory/${of.id}`}>${of.text}</a><span class="quiet small"><${Time} at=${of.said_at} /></span></li>`;

/** Those closest to it around it: a line is the firmer the more says so, and broken where it is over. */
function Picture({ of }) {
  const shown = of.connections.slice(0, MOST);
  const middle = [WIDTH / 2, HEIGHT / 2];
  const places = shown.map((_, n) => {
    const angle = (2 * Math.PI * n) / shown.length - Math.PI / 2;
    return [middle[0] + Math.cos(angle) * 200, middle[1] + Math.sin(angle) * 150];
  });
  return html`<svg class="connections" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
    ${shown.map((it, n) => {
      const [x, y] = places[n];
      const weight = 1 + Math.min(3, (it.facts.length + it.memories.length - 1) / 2);
      return html`<line x1=${middle[0]} y1=${middle[1]} x2=${x} y2=${y} stroke-width=${weight} stroke-dasharray=${isFormer(it) ? "4 4" : undefined} />`;
    })}
    ${shown.map((it, n) => {
      const [x, y] = places[n];
      const side = Math.abs(x - middle[0]) < 20 ? "middle" : x < middle[0] ? "end" : "start";
      const label = it.facts[0]?.name;
      const open = it.kind ? () => (location.hash = addressOf(it.name)) : undefined;
      return html`<g class=${it.kind ? "known" : ""} onClick=${open}>
        <circle cx=${x} cy=${y} r="5" />
        <text x=${x + (side === "start" ? 10 : side === "end" ? -10 : 0)} y=${y + (side === "middle" ? (y < middle[1] ? -12 : 22) : 5)} text-anchor=${side}>${shorten(it.name)}${label && html`<tspan class="label"> ${shorten(label)}</tspan>`}</text>
      </g>`;
    })}
    <circle class="middle" cx=${middle[0]} cy=${middle[1]} r="7" />
    <text class="middle" x=${middle[0]} y=${middle[1] - 14} text-anchor="middle">${of.name}</text>
  </svg>`;
}
