/** Small parts that several pages use. */
import { html, useEffect, useState, useRef } from "./vendor/preact.js";
import { when } from "./format.js";

/** HTML that the server made safe. */
export const Markdown = ({ of, class: name = "" }) =>
  html`<div class=${`words ${name}`} dangerouslySetInnerHTML=${{ __html: of }}></div>`;

export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${when(at)}</time>` : null);

export const Problem = ({ error }) => (error ? html`<p class="problem" role="alert">${error.message ?? error}</p>` : null);

/** A line in which commands stand between backticks. */
export const Line = ({ text }) => String(text ?? "").split("`").map((part, n) => (n % 2 ? html`<code>${part}</code>` : part));

/** What an async function gives: `[value, error, reload]`; asked again when `keys` change. */
export function useLoaded(load, keys) {
  const [state, setState] = useState({ value: null, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    const mine = ++latest.current;
    load().then(
      (value) => mine === latest.current && setState({ value, error: null }),
      (error) => mine === latest.current && setState((was) => ({ ...was, error })),
    );
  }, [...keys, round]);
  return [state.value, state.error, () => setRound((n) => n + 1)];
}

/** A button that cannot be pressed twice while what it does is under way; failures are shown beside it. */
export function Action({ does, children, class: name = "", label, disabled = false }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async () => {
    setBusy(true);
    setError(null);
    try {
      await does();
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${name} aria-label=${label} disabled=${busy || disabled} onClick=${act}>${children}</button
    ><${Problem} error=${error} />`;
}

/** Rows of words beside words. */
export const Facts = ({ rows }) =>
  html`<dl class="facts">
    ${rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
  </dl>`;

/** The frame of a page that is read; `about` says what it is for. */
export const Page = ({ title, about, aside, children }) =>
  html`<main class="column" id="main" tabindex="-1">
    <header class="head"><h1>${title}</h1>${aside}</header>
    ${about && html`<p class="quiet">${about}</p>`}
    ${children}
  </main>`;

export const Tabs = ({ of, chosen, choose, label }) =>
  html`<div class="tabs" role="group" aria-label=${label}>
    ${of.map(([key, name]) => html`<button type="button" aria-pressed=${key === chosen} onClick=${() => choose(key)}>${name}</button>`)}
  </div>`;
