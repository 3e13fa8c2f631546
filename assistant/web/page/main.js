/** The frame: login, navigation, and the page that the address names (`#/memory/x`). */
import { html, render, useEffect, useState } from "./vendor/preact.js";
import { ApiError, get, logIn } from "./api.js";
import { Problem } from "./parts.js";

/** What each page is called, and the module that shows it; in this order their sum is the smallest compressed. */
const PAGES = {
  talk: ["Talk", () => import("./talk.js")],
  context: ["Context", () => import("./context.js")],
  sleep: ["Sleep", () => import("./sleep.js")],
  memory: ["Memory", () => import("./memory.js")],
  settings: ["Settings", () => import("./settings.js")],
  spending: ["Spending", () => import("./spending.js")],
  today: ["Today", () => import("./today.js")],
  setup: ["Set up", () => import("./setup.js")],
  health: ["Health", () => import("./health.js")],
};

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

/** The navigation stands in the page itself, so that it is there before any script is: what is chosen, and whether
 * something needs a person. */
function markNav(chosen, isWell) {
  for (const link of document.querySelectorAll("nav li a")) {
    const key = link.hash.slice(2);
    link.ariaCurrent = key === chosen ? "page" : null;
    if (key !== "health") continue;
    link.querySelector(".dot")?.remove();
    if (isWell !== false) continue;
    const name = "Something needs you";
    link.append(Object.assign(document.createElement("span"), { className: "dot", title: name, role: "img", ariaLabel: name }));
  }
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
  useEffect(() => markNav(address.name, isWell), [address.name, isWell]);
  // What had the focus may be gone with what was shown before.
  useEffect(() => {
    if (shown && document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  }, [shown, address]);
  if (loggedOut) return html`<${LoggedOut} />`;
  return html`<${Problem} error=${error} />
    ${shown?.name === address.name && html`<${shown.page} key=${shown.name} rest=${address.rest} />`}`;
}

function LoggedOut({ error }) {
  useEffect(() => document.querySelector("nav")?.remove(), []);
  return html`<main class="column lone" id="main">
    <h1>Nocturne</h1>
    <${Problem} error=${error} />
    <p>This browser is not logged in. Run this on the machine where your assistant runs:</p>
    <pre><code>assistant open</code></pre>
    <p class="quiet">It makes a link that logs one browser in, once. For another machine: <code>assistant open --print</code>.</p>
  </main>`;
}

async function begin() {
  PAGES[readAddress().name][1]().catch(() => {}); // asked for before anything else; the frame tells what went wrong
  const root = document.getElementById("page");
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address names the page
    document.getElementById("main")?.focus();
  });
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
