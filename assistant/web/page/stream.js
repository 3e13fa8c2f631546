/**
 * The events of one conversation (`/v1/events`), for as long as somebody looks at it. It goes on where it ended, whatever
 * happened to the connection or the assistant. A page that is hidden for a minute lets go: browsers allow only six
 * connections to one address.
 */
import { get, post } from "./api.js";

const HIDDEN_MILLISECONDS = 60_000;
const NAMES = ["hello", "deliver", "turn", "delta", "tool", "discard", "notice", "changed"];

/**
 * @param {string} session
 * @param {(name: string, data: object) => void} onEvent also gets `connected`, `lost` and `refused`
 * @returns {() => void} ends it
 */
export function follow(session, onEvent) {
  let source = null;
  let last = "";
  let timer = 0;
  let retry = 0;
  let hiddenAt = 0;

  function open() {
    clearTimeout(retry);
    const query = new URLSearchParams({ session, html: "true", ...(last && { after: last }) });
    source = new EventSource(`/v1/events?${query}`);
    for (const name of NAMES) {
      source.addEventListener(name, (event) => {
        if (event.lastEventId) last = event.lastEventId;
        const data = JSON.parse(event.data);
        if (name === "deliver") post("/deliveries/ack", { key: data.key }).catch(() => {});
        onEvent(name === "hello" ? "connected" : name, data);
      });
    }
    source.onerror = () => {
      onEvent("lost", {});
      // A browser gives up where it was answered with no stream, and otherwise connects again by itself.
      if (source.readyState === EventSource.CLOSED) retry = setTimeout(again, 1000);
    };
  }

  /** Whoever was logged out, or asks for what is no conversation, is told by the answer, and is not let in by asking on. Nothing is opened for a page that was
   * left meanwhile, nor a second time. */
  function again() {
    const failed = source;
    const isWanted = () => failed && failed === source;
    get("/messages", { session, limit: 1 }).then(
      () => isWanted() && open(),
      (error) => isWanted() && (/40[014]/.test(error.status) ? onEvent("refused", error) : (retry = setTimeout(again, 1000))),
    );
  }

  function close() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  /** A connection from before a machine slept, or from another network, may be dead, and say nothing of it. */
  function anew() {
    close();
    open();
  }

  function visibility() {
    clearTimeout(timer);
    if (document.hidden) {
      hiddenAt = Date.now();
      timer = setTimeout(close, HIDDEN_MILLISECONDS);
    } else if (!source || Date.now() - hiddenAt > HIDDEN_MILLISECONDS) anew(); // no timer runs while a machine sleeps
  }

  document.addEventListener("visibilitychange", visibility);
  window.addEventListener("online", anew);
  open();
  return () => {
    document.removeEventListener("visibilitychange", visibility);
    window.removeEventListener("online", anew);
    clearTimeout(timer);
    close();
  };
}
