/** Talk: a conversation, the others at its side, and a search in everything that was ever said. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { get, newId, post, type } from "./api.js";
import { Composer, attachmentOf, useDraft, withMore } from "./composer.js";
import { NOTHING_WRITTEN, entriesOf, merge, withAccepted, withDelivery, withSent, written } from "./conversation.js";
import { Entry, Writing } from "./entry.js";
import { Approvals } from "./listed.js";
import { Action, Problem, Waiting } from "./parts.js";
import { Sessions } from "./sessions.js";
import { follow } from "./stream.js";

const PAGE = 60;
// Nearer to the end than this (pixels) the view follows what is written.
const NEAR = 120;

/** What a conversation holds, what is written in it now, and what may be done. It is made anew for each conversation, so
 * that what was asked for another one never comes into it. */
function useConversation(session, place) {
  const [entries, setEntries] = useState([]);
  const [writing, setWriting] = useState(NOTHING_WRITTEN);
  const [more, setMore] = useState(null); // null: not known yet
  const [happened, setHappened] = useState(0);
  const [lost, setLost] = useState(false);
  const [error, setError] = useState(null);
  const steps = useRef([]);
  const latest = useRef(0);
  const sending = useRef();
  const shown = useRef();
  shown.current = new Set(entries.map((entry) => entry.id));

  /** Read the newest. What was shown before and is not among them now was undone, here or elsewhere; or so much is new
   * that it does not join what was shown. What comes meanwhile stays. */
  const refresh = async () => {
    const mine = ++latest.current;
    const known = shown.current;
    const { messages } = await get("/messages", { session, limit: PAGE, html: true });
    // What is being sent may be among them already: first its id is known.
    await sending.current;
    if (mine !== latest.current) return;
    const joins = messages.length === PAGE && messages.some((it) => known.has(it.id));
    setEntries((was) => merge(was, entriesOf(messages), ({ id }) => known.has(id) && id && !(joins && id < messages[0].id)));
    if (!joins) setMore(messages.length === PAGE);
  };

  useEffect(() => {
    if (place) {
      get(`/history/${place}`, { neighbours: 30, html: true }).then(({ messages }) => (setEntries(entriesOf(messages)), setMore(true)), setError);
      return undefined;
    }
    return follow(session, (name, data) => {
      setLost(name === "lost");
      if (name === "refused") setError(data);
      if (name === "connected" || name === "turn" || name === "deliver") setHappened((n) => n + 1);
      // What a turn that was stopped had written is stored; an answer is delivered.
      if (name === "connected" || name === "changed" || (name === "turn" && data.state !== "answered")) refresh().then(() => setError(null), setError);
      if (name === "deliver") setEntries((was) => withDelivery(was, data, steps.current));
      setWriting((now) => {
        const next = written(now, name, data);
        steps.current = next.steps.length ? next.steps : name === "deliver" ? [] : steps.current;
        return next;
      });
    });
  }, []);

  const earlier = async () => {
    const before = entries.find((entry) => entry.id)?.id;
    const { messages } = await get("/messages", { session, before, limit: PAGE, html: true });
    setMore(messages.length === PAGE);
    setEntries((was) => merge(was, entriesOf(messages)));
  };

  /** Sent again under the same id after a failure, so it is accepted once. */
  const say = async (text, media, key) => {
    setEntries((was) => withSent(was, key, text, media));
    const message = { text, session, external_id: key, media: media.map(({ mime, name, data, voice = false }) => ({ mime, name, data, voice })) };
    try {
      const posted = post("/messages", message);
      sending.current = posted.catch(() => {});
      const accepted = await posted;
      setEntries((was) => withAccepted(was, key, accepted.message_id));
    } catch (failure) {
      setEntries((was) => was.filter((entry) => entry.key !== key));
      throw failure;
    }
  };

  const command = async (line) => {
    const answer = await type(line, session);
    const entry = { key: newId(), role: "command", typed: line, html: answer.html, at: new Date().toISOString(), steps: [] };
    await refresh();
    setEntries((was) => [...was, entry]);
  };

  return { entries, writing, more, happened, lost, error, earlier, say, command };
}

export function Talk({ rest }) {
  const [session, place] = [rest[0] || "main", rest[1] ? Number(rest[1]) : null];
  const [aside, setAside] = useState(false);

  useEffect(() => setAside(false), [session, place]);
  useLayoutEffect(() => aside && document.querySelector(".sessions input").focus(), [aside]);
  const closed = (event) => {
    if (event.key !== "Escape" || !aside) return;
    setAside(false);
    document.querySelector(".side-button button").focus();
  };
  return html`<div class=${aside ? "talk aside" : "talk"} onKeyDown=${closed}>
    <${Sessions} chosen=${session} />
    <${Conversation} key=${rest.join()} session=${session} place=${place} aside=${aside} setAside=${setAside} />
  </div>`;
}

function Conversation({ session, place, aside, setAside }) {
  const talk = useConversation(session, place);
  const [draft, change] = useDraft(session);
  const list = useRef(null);
  const follows = useRef(true);

  useLayoutEffect(() => list.current.querySelector(".found")?.scrollIntoView({ block: "center" }), [!talk.entries.length]);
  useLayoutEffect(() => {
    if (!place && follows.current) list.current.scrollTop = list.current.scrollHeight;
  }, [talk.entries, talk.writing]);

  // A keyboard on the screen, or a turned telephone: the end stays in sight.
  useEffect(() => {
    const resized = new ResizeObserver(() => list.current && follows.current && !place && (list.current.scrollTop = list.current.scrollHeight));
    resized.observe(list.current);
    return () => resized.disconnect();
  }, []);

  const scrolled = () => {
    // An event that was on its way as another page was opened.
    if (!list.current) return;
    const { scrollTop, scrollHeight, clientHeight } = list.current;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };

  const submit = async (text, media, key) => {
    follows.current = true;
    if (!media.length && /^\/[a-z]+(\s|$)/i.test(text)) await talk.command(text);
    else await talk.say(text, media, key);
  };

  /** The last exchange is taken back, and its words and files are there to be changed. */
  const edit = async ({ id, text, media }) => {
    const files = await Promise.all(
      media.map(async (it, n) => attachmentOf(new File([await (await fetch(`/v1/history/${id}/files/${n}`)).blob()], it.name, { type: it.mime }))),
    );
    await talk.command("/undo");
    change((was) => withMore({ text, files }, was));
  };

  // Where a place is shown, the last exchange may be another one.
  const lastAnswer = !place && talk.entries.findLast((entry) => entry.role === "assistant" && !entry.buttons?.[0]);
  const lastUser = !place && talk.entries.findLast((entry) => entry.role === "user" && entry.id);
  return html`<main id="main" tabindex="-1" aria-label=${`Conversation ${session.replace(/^thread:/, "")}`}>
      <div class="side-button"><button class="link" aria-expanded=${aside} onClick=${() => setAside(!aside)}>Conversations and search</button></div>
      <div class="said" ref=${list} onScroll=${scrolled} tabindex="0" role="log" aria-label="What was said">
        <div class="column">
          ${place && html`<p class="quiet"><a href=${`#/talk/${session}`}>Back to the end of this conversation</a></p>`}
          ${talk.more && html`<${Action} class="link" does=${talk.earlier}>Earlier messages</${Action}>`}
          ${talk.entries.map(
            (entry) => html`<${Entry}
              key=${entry.key}
              entry=${entry}
              found=${place && [entry, ...entry.steps].some((it) => it.id === place)}
              command=${talk.command}
              isLast=${entry === lastAnswer}
              edit=${entry === lastUser && !entry.isForgotten ? edit : null}
            />`,
          )}
          <${Writing} now=${talk.writing} />
          ${!place && html`<${Approvals} since=${`${talk.happened} ${talk.entries.length}`} />`}
          ${talk.more === null && !talk.error && html`<${Waiting} />`}
          ${!talk.entries.length && talk.more === false && html`<p class="quiet">Say something. What you say here is kept, and remembered. New here? <a href="#/setup">Set it up</a>: model, names, time, budget.</p>`}
          <${Problem} error=${talk.error} />
        </div>
      </div>
      ${talk.lost && html`<p class="column lost" role="status">Not connected. It is tried again by itself; what was said is kept.</p>`}
      ${!place &&
      html`<${Composer}
        submit=${submit}
        draft=${draft}
        change=${change}
        running=${Boolean(talk.writing.turn)}
        lost=${talk.lost}
        stop=${() => post("/stop", { session })}
      />`}
    </main>`;
}
