// Where reports and alerts come from: the Stream API. Live, the stream goes on; in a replay the same log is read again
// from a time, a window after the other, so that a day of it never has to fit in here.

const WINDOW_MS = 20_000;
const WINDOW_LEAST_MS = 5_000;
const WINDOW_SHORTEST_MS = 2_000;
const RETRY_MS = 2_000;

export class Feed {
  // `take(record)` gets every record as {topic, t, value}; `tell(state, sentence)` what the connection is like.
  constructor({ base, topics, take, tell }) {
    this.base = base;
    this.topics = topics;
    this.take = take;
    this.tell = tell;
    this.source = null;
    this.abort = null;
    this.restUntil = 0; // after a failure
  }

  url(parameters) {
    const query = new URLSearchParams({ envelope: "record", ...parameters });
    return `${this.base}/stream/${this.topics.map(encodeURIComponent).join(",")}?${query}`;
  }

  stop() {
    this.source?.close();
    this.abort?.abort();
    this.source = this.abort = null;
  }

  // The last minutes, and then whatever comes. A browser reconnects by itself and says where it was.
  live(back) {
    this.stop();
    this.tell("opening");
    const source = (this.source = new EventSource(this.url({ since: String(Date.now() - back) })));
    source.onopen = () => this.tell("live");
    source.onmessage = (event) => this.#deliver(event.data);
    source.onerror = (event) => {
      if (this.source !== source) return;
      if (event.data) this.tell("broken", sentenceOf(event.data));
      if (source.readyState === EventSource.CLOSED) {
        this.tell("broken", "The stream ended.");
        setTimeout(() => this.source === source && this.live(back), RETRY_MS);
      } else if (!event.data) this.tell("opening");
    };
  }

  // The log again from a time: first what led there, then windows ahead of whoever asks for more.
  async replay(from, back) {
    this.stop();
    const abort = (this.abort = new AbortController());
    this.reaches = from;
    await this.#window(from - back, from, abort);
    return !abort.signal.aborted;
  }

  // Read on until so much of the log is known after the clock.
  async ahead(clock, speed) {
    if (this.busy || !this.abort) return;
    const want = Math.max(WINDOW_MS * speed, WINDOW_LEAST_MS);
    if (this.reaches - clock > want / 2 || Date.now() - this.reaches < WINDOW_SHORTEST_MS || Date.now() < this.restUntil) return;
    const until = Math.min(this.reaches + want, Date.now());
    await this.#window(this.reaches, until, this.abort);
  }

  async #window(since, until, abort) {
    this.busy = true;
    this.tell("reading");
    try {
      const answer = await fetch(this.url({ since: String(Math.round(since)), until: String(Math.round(until)) }), {
        headers: { Accept: "application/x-ndjson" },
        signal: abort.signal,
      });
      if (!answer.ok) throw new Error((await answer.json()).message ?? `The gateway answered ${answer.status}.`);
      await this.#lines(answer.body, abort);
      if (!abort.signal.aborted) {
        this.reaches = until;
        this.tell("replay");
      }
    } catch (fault) {
      this.restUntil = Date.now() + RETRY_MS;
      if (!abort.signal.aborted) this.tell("broken", fault.message);
    } finally {
      if (this.abort === abort || abort.signal.aborted) this.busy = false;
    }
  }

  async #lines(body, abort) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (abort.signal.aborted) return;
      const lines = (rest + (value ?? "")).split("\n");
      rest = done ? "" : lines.pop();
      for (const line of lines) if (line.startsWith("{")) this.#deliver(line);
      if (done) return;
    }
  }

  #deliver(text) {
    let record;
    try {
      record = JSON.parse(text);
    } catch {
      return;
    }
    const value = record.value;
    if (value && typeof value === "object") this.take({ topic: record.topic, t: record.timestamp, value });
  }
}

function sentenceOf(text) {
  try {
    return JSON.parse(text).message;
  } catch {
    return text;
  }
}
