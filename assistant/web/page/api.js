/** What the page asks of the web API (`/openapi.json` describes it). Every error is one line for people. */

/** An error whose message is for people; `status` is 0 where nobody answered. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(method, path, { params, body, headers } = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value != null && value !== "") query.set(name, value);
  }
  const address = `/v1${path}${query.size ? `?${query}` : ""}`;
  let response;
  try {
    response = await fetch(address, {
      method,
      headers: { ...(body ? { "Content-Type": "application/json" } : {}), ...headers },
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch {
    throw new ApiError(0, "The assistant cannot be reached. It may be restarting; what it accepted is kept.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) window.dispatchEvent(new Event("loggedout"));
  throw new ApiError(response.status, answer.error ?? `The assistant answered with ${response.status}.`);
}

export const get = (path, params) => ask("GET", path, { params });

let status = null;
/** How it is; whoever asks while it is on its way gets the same. */
export const getStatus = () => (status ??= get("/status").finally(() => (status = null)));
export const post = (path, body) => ask("POST", path, { body });

/** Run a command as a shell would; its answer has `value`, `text`, `html`, `remark` and maybe a `confirmation`. `typed` is
 * what a command of a shell asks for. */
export const run = (argv, session, typed) =>
  ask("POST", "/commands", { body: { argv, html: true, ...(session && { session }), ...(typed && { typed }) } });

/** Run a line as typed in a conversation. */
export const type = (text, session) => ask("POST", "/commands", { body: { text, html: true, session } });

/** The value of a command that only reads. */
export const read = async (argv, session) => (await post("/commands", { argv, ...(session && { session }) })).value;

/** Run a command; a person is asked where it needs a yes, and after a no whether to do what a no stands for. Gives null
 * where nothing was done. */
export async function runAsked(argv, session) {
  const answer = await run(argv, session);
  if (!answer.confirmation) return answer;
  const { question, argv: agreed, otherwise } = answer.confirmation;
  const yes = window.confirm([answer.text, question].filter(Boolean).join("\n\n"));
  if (!yes && !(otherwise && window.confirm("Go on without that? Cancel changes nothing."))) return null;
  return run(yes ? agreed : otherwise, session);
}

/** Log in with the code of a link, which is used up. */
export const logIn = (code) => ask("POST", "/login", { headers: { Authorization: `Login ${code}` } });
export const logOut = () => ask("POST", "/logout");

export const newId = () => `page-${crypto.getRandomValues(new Uint32Array(4)).join("-")}`;
