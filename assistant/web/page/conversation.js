/**
 * A conversation as a list of entries, made of what was said (`/v1/messages`) and what happens (`/v1/events`). Pure: each
 * function gives the next list. Nothing is shown twice: entries are told apart by the ids of messages and the keys of
 * deliveries. What waits for a yes is no part of them: the page asks it in one place, from what waits now.
 */

/** @typedef {{key: string, id?: number, role: string, html?: string, text?: string, at?: string, turn?: string,
 *   media?: object[], steps?: object[], buttons?: object[], pending?: boolean}} Entry */

/** Messages of the API as entries; tools and what they gave become steps of the answer that follows. */
export function entriesOf(messages) {
  const entries = [];
  let steps = [];
  for (const message of messages) {
    if (message.role === "tool") {
      const step = steps.find((it) => it.call === message.tool_call_id);
      if (step) Object.assign(step, { id: message.id, result: message.text });
      continue;
    }
    if (!/message|reminder/.test(message.kind)) continue;
    if (message.role === "user") steps = [];
    for (const call of message.tool_calls) {
      steps.push({ call: call.id, name: call.name, arguments: call.arguments, state: "done" });
    }
    if (message.role === "assistant" && message.tool_calls.length && !message.text) continue;
    const { id, kind, role, at, turn, media, spoken } = message;
    // What was noted for the model has a mark before it; what was forgotten has nothing left.
    const isNote = role === "system";
    const isForgotten = !message.text && !media.length;
    const text = isForgotten ? "(forgotten)" : isNote ? message.text.replace(/^(<[\w-]+>\s*|A reminder .*\n)/, "") : message.text;
    const html = isNote || isForgotten ? undefined : message.html;
    entries.push({ key: `m${id}`, id, role: kind === "message" ? role : kind, html, text, isForgotten, at, turn, media, spoken, steps: role === "assistant" ? steps : [] });
    if (role === "assistant") steps = [];
  }
  return entries;
}

/**
 * With newer messages, each once; what was sent and is stored now takes the place of what was shown meanwhile. What a
 * delivery asks is not among the stored words: an entry that has buttons keeps its delivered words and them. What was
 * read before an answer was spoken may come after the recording did: that it is there is kept. What is no message, as
 * the answer of a command, keeps its place. `isGone` says which entries are shown no longer.
 */
export function merge(entries, stored, isGone = () => false) {
  const shown = new Map(entries.filter((entry) => entry.id).map((entry) => [entry.id, entry]));
  const newer = stored.map((entry) => {
    const was = shown.get(entry.id);
    const { html, text, buttons } = was?.buttons?.length ? was : entry;
    return { ...entry, key: was?.key ?? entry.key, html, text, buttons, spoken: entry.spoken || was?.spoken };
  });
  // A notice has no id, and is not the same as another one.
  const known = new Set(newer.map((entry) => entry.id ?? entry.key));
  const noted = (entry) => newer.some((it) => it.role === "system" && it.text.startsWith(entry.text));
  const kept = entries.filter((entry) => !known.has(entry.id) && !isGone(entry) && !(entry.role === "notice" && noted(entry)));
  let last = 0;
  const places = new Map(entries.map((entry) => [entry.key, (last = entry.id ?? Math.floor(last) + 0.5)]));
  const place = (entry) => entry.id ?? places.get(entry.key) ?? Infinity;
  return [...kept, ...newer].sort((a, b) => place(a) - place(b));
}

/** With what the person just sent. */
export const withSent = (entries, key, text, media) => [
  ...entries,
  { key, role: "user", text, media, at: new Date().toISOString(), pending: true, steps: [] },
];

/** With the id that a sent message was stored under, in its place: its answer may be there already. */
export const withAccepted = (entries, key, id) => {
  const rest = entries.filter((entry) => entry.id !== id);
  return merge(rest.map((entry) => (entry.key === key ? { ...entry, id, pending: false } : entry)), []);
};

/** The recording of an answer comes after it. */
const isSpoken = (data) => data.key.startsWith("spoken:");
const buttonsOf = (data) => (data.buttons ?? []).filter((it) => !it.command.startsWith("/approvals "));

/** With a delivery: a reply that is shown already, or comes again, is not shown twice; what it asks is shown with it. */
export function withDelivery(entries, data, steps) {
  if (isSpoken(data)) return entries.map((entry) => (entry.id === data.message_id ? { ...entry, spoken: true } : entry));
  const isShown = (entry) => entry.key === data.key || Boolean(data.message_id && entry.id === data.message_id);
  if (entries.some(isShown)) {
    return entries.map((entry) => (isShown(entry) ? { ...entry, html: data.html, text: data.body, buttons: buttonsOf(data) } : entry));
  }
  const role = data.kind === "notice" ? "notice" : "assistant";
  if (role === "notice" && entries.some((entry) => entry.role === "system" && entry.text.startsWith(data.body))) return entries;
  const entry = {
    key: data.key,
    id: data.message_id ?? undefined,
    role,
    html: data.html,
    text: data.body,
    at: new Date().toISOString(),
    steps: role === "assistant" ? steps : [],
    buttons: buttonsOf(data),
    media: [],
  };
  return merge(entries, [entry]);
}

/** What is being written: its blocks of HTML, and its steps. */
export const NOTHING_WRITTEN = { turn: "", blocks: [], steps: [], notice: "" };

export function written(now, name, data) {
  switch (name) {
    // What began before the connection was lost may have ended meanwhile.
    case "connected":
      return data.turn === now.turn ? now : { ...NOTHING_WRITTEN, turn: data.turn };
    case "turn":
      return data.state === "started" ? { ...NOTHING_WRITTEN, turn: data.turn } : NOTHING_WRITTEN;
    case "delta": {
      const same = now.turn === data.turn ? now : { ...NOTHING_WRITTEN, turn: data.turn };
      return { ...same, blocks: [...same.blocks.slice(0, data.first), ...data.html], notice: "" };
    }
    case "tool": {
      const steps = now.steps.filter((step) => step.call !== data.call);
      return { ...now, turn: data.turn, blocks: [], steps: [...steps, { call: data.call, name: data.name, state: data.state }] };
    }
    case "discard":
      return { ...now, blocks: [] };
    case "notice":
      return { ...now, notice: data.text };
    case "deliver":
      return data.kind === "notice" || isSpoken(data) ? now : NOTHING_WRITTEN;
    default:
      return now;
  }
}
