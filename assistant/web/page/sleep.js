/** Sleep: what each did, how far one is that runs now, and what the next would do. */
import { html, useEffect, useState } from "./vendor/preact.js";
import { get, run, runAsked } from "./api.js";
import { Action, Markdown, Page, Problem, Time, useLoaded } from "./parts.js";

const LOOK_EVERY = 1000;

export default function Sleep() {
  const [loaded, error, reload] = useLoaded(() => get("/sleeps", { limit: 30, html: true }), []);
  const [forecast, setForecast] = useState(null);
  const [failure, setFailure] = useState(null);
  const sleeps = loaded?.sleeps ?? [];
  const running = sleeps.find((it) => it.state === "running");
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
  return html`<${Page} title="Sleep" aside=${html`<div class="row">
      <${Action} class="primary" does=${sleepNow}>Sleep now</${Action}>
      <${Action} does=${async () => setForecast(await run(["sleep", "--dry-run"]))}>What would it do?</${Action}>
    </div>`}>
    <${Problem} error=${error ?? failure} />
    ${forecast && html`<${Markdown} of=${forecast.html} />`}
    ${sleeps.map((sleep, n) => html`<${One} key=${sleep.id} sleep=${sleep} open=${n === 0} newest=${n === 0} done=${reload} />`)}
    ${loaded && !sleeps.length && html`<p class="quiet">It has not slept yet. It sleeps at night, and learns from the day.</p>`}
  </${Page}>`;
}

function One({ sleep, open, newest, done }) {
  const phases = Object.entries(sleep.phases);
  const undo = async () => (await runAsked(["sleep", "--undo"])) && done();
  return html`<details open=${open}>
    <summary class="row"><span>#${sleep.id} <${Time} at=${sleep.started_at} /></span><span class="quiet small" role="status">${sleep.trigger}, ${sleep.state}</span></summary>
    ${sleep.state === "running" && html`<p class="quiet">Now: ${phases.at(-1)?.[0] ?? "begins"}<span class="dots" aria-hidden="true"></span></p>`}
    <${Markdown} of=${sleep.html} />
    <table class="plain"><caption class="quiet small">What each phase did</caption><tbody>
      ${phases.map(([name, did]) => html`<tr><th scope="row">${name}</th><td>${Object.entries(did).filter(([, it]) => it && typeof it !== "object").map(([key, it]) => `${key.replaceAll("_", " ")}: ${it}`).join(", ")}</td></tr>`)}
    </tbody></table>
    ${newest && sleep.state === "done" && html`<p><${Action} does=${undo}>Take back what it changed</${Action}></p>`}
  </details>`;
}
