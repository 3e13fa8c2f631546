/** Small parts that several pages use. */
import { html, useEffect, useLayoutEffect, useState, useRef } from "./vendor/preact.js";
import { when } from "./format.js";

/** HTML that the server made safe. */
export const Markdown = ({ of, class: name = "" }) =>
  html`<div class=${`words ${name}`} dangerouslySetInnerHTML=${{ __html: of }}></div>`;

export const Time = ({ at }) => (at ? html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${when(at)}</time>` : null);

/** A zone, or the reader's own, by the name that it has here. */
const zoneOf = (timeZone) => new Intl.DateTimeFormat(undefined, { timeZone }).resolvedOptions().timeZone;

/** Whose times they are, where the reader has others. */
export const Zone = ({ of, children }) =>
  of && zoneOf(of.timezone) !== zoneOf() && html`<p class="quiet small">${children} are those of ${of.timezone}, where your assistant lives.</p>`;

/** When something comes that may be overdue, as `status` says it. */
export const Due = ({ at, now }) => html`${at <= now && "due since "}<${Time} at=${at} />`;

export const Problem = ({ error }) => (error ? html`<p class="problem" role="alert">${error.message ?? error}</p>` : null);

/** A line in which commands stand between backticks. */
export const Line = ({ text }) => String(text ?? "").split("`").map((part, n) => (n % 2 ? html`<code>${part}</code>` : part));

/** What an async function gives: `[value, error, reload]`; asked again when `keys` change, and where nobody answered. */
export function useLoaded(load, keys) {
  const [state, setState] = useState({ value: null, error: null });
  const [round, setRound] = useState(0);
  const latest = useRef(0);
  const reload = () => setRound((n) => n + 1);
  useEffect(() => {
    const mine = ++latest.current;
    load().then(
      (value) => mine === latest.current && setState({ value, error: null }),
      (error) => {
        if (mine !== latest.current) return;
        setState((was) => ({ ...was, error }));
        if (!error.status) setTimeout(reload, 3000);
      },
    );
  }, [...keys, round]);
  return [state.value, state.error, reload];
}

/** What leaves the page with the focus of a keyboard gives it to what stands after it, or else before it. */
function useKeptFocus(of) {
  useLayoutEffect(() => () => {
    if (of.current !== document.activeElement) return;
    const all = [...document.querySelectorAll("main :is(a, button, summary, input, textarea)")];
    const at = all.indexOf(of.current);
    const near = [...all.slice(at), ...all.slice(0, at).reverse()];
    setTimeout(() => document.activeElement === document.body && near.find((it) => it.isConnected && it.offsetParent)?.focus());
  }, []);
}

/** `[act, busy, error]` of what is done once at a time, by a button or a form. */
export function useDoing(does) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const act = async (event) => {
    event.preventDefault();
    // The second press of a double click may meet what has moved into the place of the first.
    if (busy || event.detail > 1) return;
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
  return [act, busy, error];
}

/** A button that cannot be pressed twice while what it does is under way; failures are shown beside it. */
export function Action({ does, children, class: name = "", label, disabled = false }) {
  const [act, busy, error] = useDoing(does);
  const button = useRef(null);
  useKeptFocus(button);
  // What is disabled loses the focus of a keyboard; what is busy keeps it.
  return html`<button type="button" ref=${button} class=${name} aria-label=${label} aria-disabled=${busy} disabled=${disabled} onClick=${act}>${children}</button
    ><${Problem} error=${error} />`;
}

/** A small form in the place of what it changes: the first field has the focus, Enter saves, Escape cancels. The button
 * that opened it gets the focus back. */
export function Editor({ does, cancel, save = "Save", class: name = "row", children }) {
  const form = useRef(null);
  const [act, busy, error] = useDoing(does);
  useLayoutEffect(() => {
    const place = form.current.parentElement;
    form.current.querySelector("input, textarea").focus();
    return () => setTimeout(() => document.activeElement === document.body && place.querySelector("button, a")?.focus());
  }, []);
  return html`<form class=${name} ref=${form} onSubmit=${act} onKeyDown=${(event) => event.key === "Escape" && cancel()}>${children}
    <button class="primary" aria-disabled=${busy}>${save}</button><button type="button" onClick=${cancel}>Cancel</button><${Problem} error=${error} /></form>`;
}

/** What was typed last, once nothing more was typed for a moment. */
export function useSettled(text) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

/** Shown where it takes longer than a moment. */
export const Waiting = () => html`<p class="quiet late" role="status">Loading<span class="dots" aria-hidden="true"></span></p>`;

/** Rows of words beside words. */
export const Facts = ({ rows }) =>
  html`<dl class="facts">
    ${rows.filter(([, value]) => value != null && value !== "").map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}
  </dl>`;

/** The frame of a page that is read; `about` says what it is for, `waits` that what it shows is still asked for. */
export const Page = ({ title, about, aside, waits, children }) =>
  html`<main class="column" id="main" tabindex="-1">
    <header class="head"><h1>${title}</h1>${aside}</header>
    ${about && html`<p class="quiet">${about}</p>`}
    ${waits && html`<${Waiting} />`}
    ${children}
  </main>`;

export const Tabs = ({ of, chosen, choose, label }) =>
  html`<div class="tabs" role="group" aria-label=${label}>
    ${of.map(([key, name]) => html`<button type="button" aria-pressed=${key === chosen} onClick=${() => choose(key)}>${name}</button>`)}
  </div>`;
