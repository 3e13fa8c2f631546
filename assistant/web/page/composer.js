/** What a person types, with completion of commands, and the files, pictures and voice notes that go with it. */
import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { newId, run } from "./api.js";
import { Problem } from "./parts.js";

const LARGEST = 40 * 1024 * 1024;
let commands = null;

const readBase64 = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(",", 2)[1] ?? "");
    reader.onerror = () => reject(new Error(`${file.name} cannot be read. Nothing was sent.`));
    reader.readAsDataURL(file);
  });

/** What a file is shown as; it is read when it is sent. */
export function attachmentOf(file) {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than 40 MB. It was not attached.`);
  const mime = file.type.split(";")[0] || "application/octet-stream";
  const preview = /^(image|audio)\//.test(mime) ? URL.createObjectURL(file) : null;
  return { mime, name: file.name, size: file.size, file, preview };
}

const drafts = new Map();

/** What is typed and attached in a conversation: kept while another page is looked at. `change` is given what there is,
 * also after the page was left. */
export function useDraft(session) {
  const [, show] = useState();
  const now = () => drafts.get(session) ?? { text: "", files: [] };
  return [now(), (change) => show(drafts.set(session, change(now())) && {})];
}

/** A draft that comes back, and what was typed meanwhile. */
export const withMore = (back, { text, files }) => (text || files.length ? { text: [back.text, text].filter(Boolean).join("\n"), files: [...back.files, ...files] } : back);

/** The commands that begin with what was typed; loaded once. */
function useCommands(text) {
  const [found, setFound] = useState([]);
  useEffect(() => {
    const typed = /^\/[a-z ]*$/i.test(text);
    if (!typed) return setFound([]);
    let left = false;
    commands ??= run(["help"]).then((answer) => answer.value.commands);
    commands.then(
      (all) => left || setFound(all.filter((it) => it.name.startsWith(text.toLowerCase()) && it.name !== text).slice(0, 8)),
      () => (commands = null),
    );
    return () => (left = true);
  }, [text]);
  return found;
}

function useRecorder(attach, fail, isShown) {
  const [recorder, setRecorder] = useState(null);
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!recorder) return undefined;
    const timer = setInterval(() => setSeconds((was) => was + 1), 1000);
    // Also where the page is left: no microphone stays on, and the recording is kept.
    return () => (clearInterval(timer), setSeconds(0), recorder.state === "recording" && recorder.stop());
  }, [recorder]);
  const start = async () => {
    const sound = await navigator.mediaDevices.getUserMedia({ audio: true });
    const recording = new MediaRecorder(sound);
    const pieces = [];
    recording.ondataavailable = (event) => pieces.push(event.data);
    recording.onstop = () => {
      sound.getTracks().forEach((track) => track.stop());
      setRecorder(null);
      attach([new File(pieces, "voice-note.webm", { type: recording.mimeType })], { voice: true });
    };
    recording.start();
    if (isShown()) setRecorder(recording);
    else recording.stop();
  };
  return [recorder, `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, () => (recorder ? recorder.stop() : start().catch(() => fail(new Error("The microphone cannot be used."))))];
}

export function Composer({ submit, draft: { text, files, key }, change, running, lost, stop }) {
  const type = (words) => change((was) => ({ text: words, files: was.files }));
  const [error, setError] = useState(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [chosen, setChosen] = useState(0);
  const box = useRef(null);
  const picker = useRef(null);
  const found = useCommands(text);
  const [unwanted, setUnwanted] = useState(null);
  const offered = unwanted === text ? [] : found;

  useEffect(() => {
    box.current.style.height = "auto";
    box.current.style.height = `${Math.min(box.current.scrollHeight, 260)}px`;
  }, [text]);
  useEffect(() => box.current.focus(), []);
  // Whoever can be reached again may be told again.
  useEffect(() => lost || setError(null), [lost]);
  useEffect(() => setChosen(0), [text]);

  const attach = (list, about) => {
    setError(null);
    try {
      const added = [...list].map((file) => ({ ...attachmentOf(file), ...about }));
      change((was) => ({ text: was.text, files: [...was.files, ...added] }));
    } catch (failure) {
      setError(failure);
    }
  };
  const [recorder, lasted, record] = useRecorder(attach, setError, () => box.current);

  const send = async () => {
    if (busy || (!text.trim() && !files.length)) return;
    const sent = { text, files, key: key ?? newId() };
    setBusy(true);
    setError(null);
    change(() => ({ text: "", files: [] }));
    try {
      await submit(text.trim(), await Promise.all(files.map(async (it) => ({ ...it, data: await readBase64(it.file) }))), sent.key);
    } catch (failure) {
      setError(failure);
      change((was) => withMore(sent, was));
    } finally {
      setBusy(false);
    }
  };

  const complete = (entry) => {
    type(`${entry.name} `);
    box.current.focus();
  };

  const keys = (event) => {
    if (offered.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChosen((was) => (was + (event.key === "ArrowDown" ? 1 : -1) + offered.length) % offered.length);
    } else if (offered.length && event.key === "Tab" && !event.shiftKey) {
      event.preventDefault();
      complete(offered[chosen]);
    } else if (offered.length && event.key === "Escape") {
      setUnwanted(text);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };

  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    attach(event.dataTransfer.files);
  };
  const pasted = (event) => {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    attach(event.clipboardData.files);
  };

  return html`<form
    class=${`composer column ${over ? "over" : ""}`}
    onSubmit=${(event) => (event.preventDefault(), send())}
    onDragOver=${(event) => (event.preventDefault(), setOver(true))}
    onDragLeave=${() => setOver(false)}
    onDrop=${dropped}
  >
    ${offered.length > 0 &&
    html`<ul class="offered" role="listbox" id="offered" aria-label="Commands">
      ${offered.map(
        (entry, n) => html`<li id=${`offered-${n}`} role="option" aria-selected=${n === chosen} onMouseDown=${(event) => (event.preventDefault(), complete(entry))}>
          <code>${entry.name}</code> <span>${entry.about}</span>
        </li>`,
      )}
    </ul>`}
    ${files.length > 0 &&
    html`<ul class="attached" aria-label="Attached">
      ${files.map(
        (file) => html`<li>
          ${file.preview && file.mime.startsWith("image/") ? html`<img src=${file.preview} alt=${file.name} />` : file.name}
          <button type="button" class="link" aria-label=${`Remove ${file.name}`} onClick=${() => change((was) => ({ text: was.text, files: was.files.filter((it) => it !== file) }))}>×</button>
        </li>`,
      )}
    </ul>`}
    <${Problem} error=${error} />
    <div class="line">
      <textarea
        ref=${box}
        rows="1"
        value=${text}
        placeholder="Message, or /" title="/ begins a command"
        aria-label="Message"
        role=${offered.length ? "combobox" : undefined}
        aria-expanded=${offered.length ? "true" : undefined}
        aria-controls=${offered.length ? "offered" : undefined}
        aria-activedescendant=${offered.length ? `offered-${chosen}` : undefined}
        onInput=${(event) => type(event.target.value)}
        onKeyDown=${keys}
        onPaste=${pasted}
      ></textarea>
      <input ref=${picker} type="file" multiple hidden aria-hidden="true" tabindex="-1" onChange=${(event) => (attach(event.target.files), (event.target.value = ""))} />
      <button type="button" class="icon" aria-label="Attach a file" title="Attach a file" onClick=${() => picker.current.click()}>+</button>
      ${window.MediaRecorder &&
      html`<button type="button" class="icon" aria-label=${recorder ? "Stop recording" : "Record a voice note"} title="Voice note" aria-pressed=${Boolean(recorder)} onClick=${record}>${recorder ? `■ ${lasted}` : "●"}</button>`}
      ${running
        ? html`<button type="button" class="primary" onClick=${() => stop().catch(setError)}>Stop</button>`
        : html`<button type="submit" class="primary" disabled=${busy || (!text.trim() && !files.length)}>Send</button>`}
    </div>
  </form>`;
}
