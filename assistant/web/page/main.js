/** The frame: login, navigation, and the page that the address names (`#/memory/x`). */
import { html, render, useEffect, useState } from "./vendor/preact.js";
import { ApiError, getStatus, logIn } from "./api.js";
import { Problem } from "./parts.js";
// In this order their sum is the smallest compressed.
import { Talk } from "./talk.js";
import { Today } from "./today.js";
import { Context } from "./context.js";
import { Memory } from "./memory.js";
import { Health } from "./health.js";
import { Settings } from "./settings.js";
import { Sleep } from "./sleep.js";
import { Spending } from "./spending.js";
import { Setup } from "./setup.js";

/** What each page is called, and what shows it. */
const PAGES = {
  talk: ["Talk", Talk],
  context: ["Context", Context],
  sleep: ["Sleep", Sleep],
  memory: ["Memory", Memory],
  settings: ["Settings", Settings],
  spending: ["Spending", Spending],
  today: ["Today", Today],
  setup: ["Set up", Setup],
  health: ["Health", Health],
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
  const [isWell, setWell] = useState(null);
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
    // A page that stays open tells what needs a person, too, and ends when it is logged out.
    const look = () => document.hidden || getStatus().then((status) => setWell(status.ok), () => {});
    look();
    const timer = setInterval(look, 60_000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [address.name]);
  useEffect(() => markNav(address.name, isWell), [address.name, isWell]);
  // What had the focus may be gone with what was shown before.
  useEffect(() => {
    if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true });
  }, [address]);
  if (loggedOut) return html`<${LoggedOut} />`;
  return html`<${PAGES[address.name][1]} key=${address.name} rest=${address.rest} />`;
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
