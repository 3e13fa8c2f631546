/** The frame: login, navigation, and the page that the address names (`#/memory/x`). */
import { html, render, useEffect, useState } from "./vendor/preact.js";
import { ApiError, get, logIn } from "./api.js";
import { Problem } from "./parts.js";

/** What each page is called, and the module that shows it; loaded when somebody looks. */
const PAGES = {
  talk: ["Talk", () => import("./talk.js")],
  today: ["Today", () => import("./today.js")],
  memory: ["Memory", () => import("./memory.js")],
  context: ["Context", () => import("./context.js")],
  sleep: ["Sleep", () => import("./sleep.js")],
  spending: ["Spending", () => import("./spending.js")],
  health: ["Health", () => import("./health.js")],
  settings: ["Settings", () => import("./settings.js")],
  setup: ["Set up", () => import("./setup.js")],
};
/** Reached from another page. */
const WITHOUT_ENTRY = ["setup"];

function readAddress() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  return { name: PAGES[name] ? name : "talk", rest };
}

/** Use the code of a link up, and take it out of the address and the history. */
async function useLoginLink() {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1];
  if (!code) return;
  history.replaceState(null, "", "/");
  await logIn(code);
}

function Nav({ chosen, isWell }) {
  return html`<nav aria-label="Pages">
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>To the content</a>
    <span class="brand">Nocturne</span>
    <ul>
      ${Object.entries(PAGES).filter(([key]) => !WITHOUT_ENTRY.includes(key)).map(
        ([key, [title]]) =>
          html`<li><a href=${`#/${key}`} aria-current=${key === chosen ? "page" : undefined}>
            ${title}${key === "health" && isWell === false && html`<span class="dot" title="Something needs you" aria-label=", something needs you"></span>`}
          </a></li>`,
      )}
    </ul>
  </nav>`;
}

function Frame() {
  const [address, setAddress] = useState(readAddress);
  const [shown, setShown] = useState(null);
  const [isWell, setWell] = useState(null);
  const [error, setError] = useState(null);
  const [loggedOut, setLoggedOut] = useState(false);
  useEffect(() => {
    const moved = () => setAddress(readAddress());
    const out = () => setLoggedOut(true);
    window.addEventListener("hashchange", moved);
    window.addEventListener("loggedout", out);
    moved(); // also where the address was changed before somebody listened
    return () => {
      window.removeEventListener("hashchange", moved);
      window.removeEventListener("loggedout", out);
    };
  }, []);
  useEffect(() => {
    document.title = `${PAGES[address.name][0]} · Nocturne`;
    let left = false; // for another page, before this one was loaded
    PAGES[address.name][1]().then((module) => left || setShown({ name: address.name, page: module.default }), setError);
    get("/status").then((status) => setWell(status.ok), () => {});
    return () => (left = true);
  }, [address.name]);
  if (loggedOut) return html`<${LoggedOut} />`;
  return html`<${Nav} chosen=${address.name} isWell=${isWell} />
    <${Problem} error=${error} />
    ${shown?.name === address.name && html`<${shown.page} key=${shown.name} rest=${address.rest} />`}`;
}

const LoggedOut = ({ error }) =>
  html`<main class="column lone" id="main">
    <h1>Nocturne</h1>
    <${Problem} error=${error} />
    <p>This browser is not logged in. Run this on the machine where your assistant runs:</p>
    <pre><code>assistant open</code></pre>
    <p class="quiet">It makes a link that logs one browser in, once. For another machine: <code>assistant open --print</code>.</p>
  </main>`;

async function begin() {
  const root = document.getElementById("page");
  window.addEventListener("hashchange", () => location.hash.startsWith("#login=") && location.reload());
  try {
    await useLoginLink();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    render(html`<${LoggedOut} error=${error} />`, root);
    return;
  }
  // Whoever is not logged in is told by the first answer; the frame does not wait for it.
  render(html`<${Frame} />`, root);
}

begin();
