/** Today: what is on, as a day, a week or a month; reminders are moved by dragging, or by typing when. */
import { html, useState } from "./vendor/preact.js";
import { getStatus, read, run } from "./api.js";
import { clockTime, dayName, isoDay, monthName, weekName, weekdayName } from "./format.js";
import { Listed, Run } from "./listed.js";
import { Action, Due, Editor, Page, Problem, Tabs, Time, Zone, useDoing, useLoaded } from "./parts.js";

const SPANS = [["day", "Day"], ["week", "Week"], ["month", "Month"]];
const plusDays = (date, days) => isoDay(new Date(new Date(`${date}T12:00:00`).getTime() + days * 86_400_000));

/** The days that are shown: of a month whole weeks, from Monday on. */
function daysOf(span, date) {
  if (span === "day") return [date];
  const first = span === "month" ? `${date.slice(0, 8)}01` : date;
  const monday = plusDays(first, -((new Date(`${first}T12:00:00`).getDay() + 6) % 7));
  if (span === "week") return Array.from({ length: 7 }, (_, n) => plusDays(monday, n));
  const days = Array.from({ length: 42 }, (_, n) => plusDays(monday, n));
  return days.filter((_, n) => days[n - (n % 7)].slice(0, 7) <= date.slice(0, 7));
}

const keyOf = (item) => `${item.kind}${item.id}${item.day}${item.time}${item.text}${item.name}`;

/** The agenda of a week at a time, as the command reads it. */
async function loadItems(span, days) {
  const weeks = span === "day" ? [days[0]] : days.filter((_, n) => n % 7 === 0);
  const answers = await Promise.all(weeks.map((first) => read(["agenda", first, ...(span === "day" ? [] : ["--week"])])));
  const seen = new Map(answers.flatMap((it) => it.items).map((item) => [keyOf(item), item]));
  return { days, items: [...seen.values()].filter((item) => days.includes(item.day)) };
}

export function Today({ rest }) {
  const [span, setSpan] = useState("day");
  const [date, setDate] = useState(/^\d{4}-\d\d-\d\d$/.test(rest[0]) ? rest[0] : isoDay(new Date()));
  const days = daysOf(span, date);
  const [loaded, error, reload] = useLoaded(() => loadItems(span, days), [span, date]);
  // What was read of other days says nothing of these.
  const items = loaded?.days.join() === days.join() ? loaded.items : null;
  const [ended] = useLoaded(() => read(["remind", "history", "--limit", "20"]), []);
  const [status] = useLoaded(getStatus, []);
  const [failure, setFailure] = useState(null);
  const move = async (id, day, time) => {
    setFailure(null);
    await run(["remind", "change", String(id), "--at", `${day} ${time || "09:00"}`]);
    reload();
  };
  const later = (count) => {
    // The first day of another month: not each month has the day that is chosen.
    const other = new Date(`${date.slice(0, 8)}01T12:00:00`);
    other.setMonth(other.getMonth() + count);
    setDate(span === "month" ? isoDay(other) : plusDays(date, span === "day" ? count : 7 * count));
  };
  const missed = (ended ?? []).filter((slot) => slot.state !== "sent" && slot.state !== "done");
  return html`<${Page} title=${span === "month" ? monthName(date) : span === "week" ? weekName(days) : dayName(date)} aside=${html`<div class="row">
      <${Tabs} label="Span" of=${SPANS} chosen=${span} choose=${setSpan} />
      <span class="row"><button type="button" aria-label="Earlier" onClick=${() => later(-1)}>‹</button>
      <button type="button" onClick=${() => setDate(isoDay(new Date()))}>Today</button>
      <button type="button" aria-label="Later" onClick=${() => later(1)}>›</button></span>
    </div>`} waits=${!items && !error}>
    <${Problem} error=${error ?? failure} />
    <${Zone} of=${status}>Times</${Zone}>
    <${NewReminder} added=${reload} />
    <div class=${span === "month" ? "month" : ""}>
      ${span === "month" && days.slice(0, 7).map((day) => html`<span class="quiet small">${weekdayName(day)}</span>`)}
      ${days.map((day) => html`<${Day} key=${day} day=${day} span=${span} isOutside=${day.slice(0, 7) !== date.slice(0, 7)} open=${() => (setDate(day), setSpan("day"))} items=${items?.filter((it) => it.day === day)} move=${move} failed=${setFailure} reload=${reload} />`)}
    </div>
    ${span === "day" && status?.next_due && html`<p class="quiet small">Next reminder or schedule: <${Due} at=${status.next_due} now=${status.at} /></p>`}
    <${Listed} title="To-dos without a day" argv=${["todo", "list"]} of=${(all) => all.filter((it) => !it.due && !it.done)} since=${items} row=${(it, then) => html`<span>${it.text} ${it.list && html`<span class="quiet small">${it.list}</span>`}</span><${Run} argv=${["todo", "done", String(it.id)]} then=${then}>Done</${Run}>`} />
    ${missed.length > 0 && html`<h2>Late or missed</h2>
      <ul class="list">${missed.map((slot) => html`<li class="row"><span>${slot.text || slot.name}</span><span class="quiet small">${slot.state} · <${Time} at=${slot.due} /></span></li>`)}</ul>`}
  </${Page}>`;
}

function Day({ day, span, isOutside, open, items, move, failed, reload }) {
  const [over, setOver] = useState(false);
  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    const { id, time } = JSON.parse(event.dataTransfer.getData("text/plain") || "{}");
    if (id) move(id, day, time).catch(failed);
  };
  const name = span === "month" ? Number(day.slice(8)) : dayName(day);
  return html`<div
    class=${[over && "target", day === isoDay(new Date()) && "now"].filter(Boolean).join(" ")}
    data-day=${day}
    onDragOver=${(event) => (event.preventDefault(), setOver(true))}
    onDragLeave=${() => setOver(false)}
    onDrop=${dropped}
  >
    ${span === "month" ? html`<button type="button" class=${`date link ${isOutside ? "quiet" : ""}`} aria-label=${dayName(day)} onClick=${open}>${name}</button>` : span === "week" && html`<h2>${name}</h2>`}
    ${span === "month"
      ? items?.map((item) => html`<span class="thing" title=${item.text} ...${dragged(item)}>${item.time || "•"} <span class="what">${item.text}</span></span>`)
      : html`<ul class="list agenda">
          ${items?.map((item) => html`<li class="row" key=${keyOf(item)} ...${dragged(item)}><${Item} item=${item} move=${move} reload=${reload} /></li>`)}
          ${items?.length === 0 && html`<li class="quiet">Nothing planned.</li>`}
        </ul>`}
  </div>`;
}

/** Kinds that people read by another word. */
const KINDS = { told: "you said", todo: "to-do" };
const canMove = (item) => item.kind === "reminder" && !item.came;
const dragged = (item) =>
  canMove(item)
    ? { draggable: true, onDragStart: (event) => event.dataTransfer.setData("text/plain", JSON.stringify({ id: item.id, time: item.time })) }
    : {};

function Item({ item, move, reload }) {
  const [when, setWhen] = useState(null);
  const act = (...argv) => async () => (await run(argv), reload());
  return html`<span><span class="quiet">${item.time ? clockTime(item.time) : "all day"}${item.until && ` to ${clockTime(item.until)}`}</span> ${item.text} ${item.place && html`<span class="small">${item.place}</span> `}${item.note && html`<span class="quiet small">${item.note}</span> `}${item.late && html`<span class="problem small">late${item.since && ` since ${item.since}`}</span>`}
      ${item.repeats && html`<span class="quiet small">${item.repeats}</span>`}</span>
    <span class="row small">
      ${item.kind === "todo" && html`<${Action} class="link" does=${act("todo", "done", String(item.id))}>Done</${Action}>`}
      ${canMove(item) && when === null && html`<button type="button" class="link" aria-label=${`Move ${item.text}`} onClick=${() => setWhen(`${item.day}T${item.time || "09:00"}`)}>Move</button>
        <${Action} class="link" label=${`Cancel ${item.text}`} does=${act("remind", "cancel", String(item.id))}>Cancel</${Action}>`}
      ${when !== null && html`<${Editor} save="Move" cancel=${() => setWhen(null)} does=${async () => (await move(item.id, ...when.split("T")), setWhen(null))}>
        <input type="datetime-local" required aria-label="When" value=${when} onInput=${(event) => setWhen(event.target.value)} /></${Editor}>`}
      <span class="quiet">${KINDS[item.kind] ?? (item.kind === "event" ? item.name : item.kind)}</span>
    </span>`;
}

function NewReminder({ added }) {
  const [text, setText] = useState("");
  const [add, , error] = useDoing(async () => {
    await run(["remind", "add", ...text.split(/\s+/)]);
    setText("");
    added();
  });
  return html`<form class="row" onSubmit=${add}>
    <input value=${text} size="40" aria-label="New reminder" placeholder="tomorrow at 9 call Ada" onInput=${(event) => setText(event.target.value)} />
    <button disabled=${!text.trim()}>Remind me</button>
  </form><${Problem} error=${error} />`;
}
