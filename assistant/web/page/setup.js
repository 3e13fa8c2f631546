/** Setup: the steps of `assistant setup`, asked here and answered there. Each is kept as soon as it is answered. */
import { html, useState } from "./vendor/preact.js";
import { read, run } from "./api.js";
import { Action, Line, Page, Problem, Waiting, useLoaded } from "./parts.js";

const MODELS = {
  anthropic: ["Claude", "with an Anthropic API key"],
  openai: ["GPT", "with an OpenAI API key"],
  local: ["Your own server", "Ollama, llama.cpp, vLLM, LM Studio, or another that is OpenAI-compatible"],
  offline: ["Offline mode", "no language model, no key, no network"],
};
const ADDRESS = { openai: "https://api.openai.com/v1", local: "http://localhost:11434/v1" };

/** What the step `model` asks, in its order; an empty line keeps what is in brackets there. */
function answersOf({ provider, address, key, name }) {
  if (provider === "offline") return [provider];
  // What follows is asked only where it did not answer, or where a vocabulary may be downloaded.
  return [provider, ...(provider in ADDRESS ? [address || ADDRESS[provider]] : []), key, name, "leave", "no"];
}

export function Setup() {
  const [rows, error, reload] = useLoaded(() => read(["config", "show"]), []);
  const value = (key) => JSON.parse(/^".*"$/.test(it(key)) ? it(key) : JSON.stringify(it(key)));
  const it = (key) => (rows ?? []).find((row) => row.key === key)?.value ?? "";
  return html`<${Page} title="Set up" aside=${html`<a href="#/settings">All settings</a>`}>
    <p class="quiet">The same as <code>assistant setup</code>. Each step can be left out, and repeated at any time.</p>
    <${Problem} error=${error} />
    ${rows === null ? !error && html`<${Waiting} />` : html`
      <${Model} done=${reload} current=${value("model.provider")} hasKey=${(name) => !/^("")?$|not set/.test(it(name))} />
      <${Step} name="persona" title="Names" fields=${[["person", "Your name", ""], ["assistant", "The assistant's name", "Nocturne"], ["manner", "Its manner, in a few words", "", "dry, patient, formal"]]} />
      <${Step} name="time" title="Time" done=${reload} fields=${[["zone", "Your time zone, or your city", value("home.timezone") || Intl.DateTimeFormat().resolvedOptions().timeZone], ["sleep", "When it sleeps", value("sleep.at")]]} />
      <${Step} name="budget" title="Budget" done=${reload} about="The most that models may cost, in US dollars; 0 for no limit." fields=${[["day", "Per day", value("budget.daily_usd")], ["month", "Per month", value("budget.monthly_usd")]]} />
      <${Bridge} />
      <section><h2>A service</h2><p class="quiet">Set up in a terminal: <code>assistant service install</code>.</p></section>`}
  </${Page}>`;
}

/** What a step said, with what it saved at its end. */
const Said = ({ of }) => (of ? html`<div class="said-by-step" role="status">${of.split("\n").map((line) => html`<p><${Line} text=${line} /></p>`)}</div>` : null);
/** Without the questions, and what is about the keys of a terminal. */
const shorten = (text) =>
  text
    .split("\n")
    .filter((line) => line.trim() && !/Ctrl-C|^Setting up|^Next: |:$|^ +\d |^Answer with|^(Model|Names|Time|Budget)$/.test(line))
    .map((line) => line.replace(/ `assistant setup \w+` continues from here\./, ""))
    .join("\n");

function Model({ done, current, hasKey }) {
  const [answers, setAnswers] = useState({ provider: current in MODELS && current !== "offline" ? current : "anthropic", address: "", key: "", name: "" });
  const [said, setSaid] = useState("");
  const set = (name) => (event) => setAnswers((was) => ({ ...was, [name]: event.target.value }));
  const save = async () => {
    setSaid("");
    const answer = await run(["setup", "model", "--once"], undefined, `${answersOf(answers).join("\n")}\n`);
    setSaid(shorten(answer.text));
    setAnswers((was) => ({ ...was, key: "" }));
    done();
  };
  const { provider } = answers;
  const needsKey = { anthropic: "ANTHROPIC_API_KEY", openai: "OPENAI_API_KEY" }[provider];
  const lacksKey = needsKey && !answers.key && !hasKey(needsKey);
  return html`<section><h2>Model</h2>
    <fieldset class="choices"><legend class="quiet small">Who answers</legend>
      ${Object.entries(MODELS).map(([key, [name, about]]) => html`<label><input type="radio" name="provider" value=${key} checked=${key === provider} onChange=${set("provider")} /> ${name} <span class="quiet">${about}</span></label>`)}
    </fieldset>
    ${provider in ADDRESS && html`<label class="field">Address of the server <input value=${answers.address} placeholder=${ADDRESS[provider]} onInput=${set("address")} /></label>`}
    ${provider !== "offline" && html`<label class="field">Key <input type="password" autocomplete="off" value=${answers.key} placeholder=${needsKey ? (hasKey(needsKey) ? "the one that is set" : "paste it here") : "none"} onInput=${set("key")} /></label>
      <label class="field">Model <input value=${answers.name} placeholder="the usual one" onInput=${set("name")} /></label>`}
    <p><${Action} class="primary" disabled=${lacksKey} does=${save}>${provider === "offline" ? "Use offline mode" : "Try it, and keep it if it answers"}</${Action}></p>
    <${Said} of=${said} />
  </section>`;
}

/** A step whose questions are answered in order. */
function Step({ name, title, about, fields, done }) {
  const [answers, setAnswers] = useState(Object.fromEntries(fields.map(([key, , value]) => [key, value])));
  const [said, setSaid] = useState("");
  const save = async () => {
    setSaid("");
    const lines = fields.map(([key]) => answers[key].trim());
    setSaid(shorten((await run(["setup", name, "--once"], undefined, `${lines.join("\n")}\n`)).text));
    done?.();
  };
  return html`<section><h2>${title}</h2>${about && html`<p class="quiet">${about}</p>`}
    ${fields.map(([key, label, , hint]) => html`<label class="field">${label} <input value=${answers[key]} placeholder=${hint ?? ""} onInput=${(event) => setAnswers((was) => ({ ...was, [key]: event.target.value }))} /></label>`)}
    <p><${Action} does=${save}>Save</${Action}></p><${Said} of=${said} />
  </section>`;
}

/** What `assistant bridge add` is given of each network; its secret is typed and is in no argument. */
const NETWORKS = {
  telegram: ["Telegram", "a bot of your own: send /newbot to @BotFather, and copy the token from its reply", "--token-stdin", "The bot's token", []],
  matrix: ["Matrix", "an account for the assistant alone, on any homeserver", "--password-stdin", "Its password", [["user", "Its account", "@nocturne:example.org"]]],
  mail: ["Mail", "a mailbox for the assistant alone", "--password-stdin", "Its password", [["user", "Its address", "nocturne@example.org"]]],
  discord: ["Discord", "a bot of your own, with Message Content Intent turned on", "--token-stdin", "The bot's token", []],
  slack: ["Slack", "an app of your own in your workspace", "--token-stdin", "Its bot token, a blank, and its app token", []],
};

function Bridge() {
  const [name, setName] = useState("telegram");
  const [answers, setAnswers] = useState({ secret: "", user: "", owner: "" });
  const [said, setSaid] = useState("");
  const [title, about, option, secret, fields] = NETWORKS[name];
  const set = (key) => (event) => setAnswers((was) => ({ ...was, [key]: event.target.value }));
  const add = async () => {
    setSaid("");
    const given = [...fields.map(([key]) => key), "owner"].filter((key) => answers[key].trim());
    const options = given.flatMap((key) => [`--${key}`, answers[key].trim()]);
    const done = await run(["bridge", "add", name, option, "--no-wait", ...options], undefined, `${answers.secret.trim()}\n`);
    if (done.exit_code) throw new Error(done.remark || done.text);
    setAnswers((was) => ({ ...was, secret: "" }));
    setSaid([done.text, done.remark].filter(Boolean).join("\n"));
  };
  return html`<section class="bridge-step"><h2>Bridge</h2>
    <fieldset class="choices"><legend class="quiet small">Where else you talk to it</legend>
      ${Object.entries(NETWORKS).map(([key, [label, how]]) => html`<label><input type="radio" name="network" value=${key} checked=${key === name} onChange=${() => (setName(key), setSaid(""))} /> ${label} <span class="quiet">${how}</span></label>`)}</fieldset>
    ${fields.map(([key, label, hint]) => html`<label class="field">${label} <input value=${answers[key]} placeholder=${hint} onInput=${set(key)} /></label>`)}
    <label class="field">${secret} <input type="password" autocomplete="off" value=${answers.secret} onInput=${set("secret")} /></label>
    <label class="field">Your own account there <input value=${answers.owner} placeholder="left empty, a code links it" onInput=${set("owner")} /></label>
    <p><${Action} disabled=${!answers.secret.trim()} does=${add}>Try ${title}, and keep it if it answers</${Action}></p><${Said} of=${said} />
  </section>`;
}
