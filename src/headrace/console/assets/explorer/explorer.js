// The API explorer: reads /openapi, shows one operation at a time, tries it, and says it as curl and Python.

import { commandFor } from "./commands.js";

const SHOWN_BYTES = 200_000;
const CLUSTER = "/v3/clusters/{cluster_id}";
const METHODS = ["get", "post", "put", "patch", "delete"];

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
};

// What cannot be taken back is asked for twice.
const isDestructive = ({ method, url, body }) =>
  method === "DELETE" || /[/:]abort(-hanging)?$/.test(url) || (/:reset$/.test(url) && /"execute":\s*true/.test(body ?? ""));

class Explorer {
  constructor(root, document_, known) {
    this.root = root;
    this.known = known; // values that a person need not look up
    this.document = document_;
    this.base = root.dataset.base || location.origin;
    this.bootstrap = root.dataset.bootstrap;
    this.operations = operationsOf(document_);
    const query = new URLSearchParams(location.search);
    this.search = query.get("q") ?? "";
    this.values = Object.fromEntries([...query].filter(([name]) => name.startsWith("p.")).map(([n, v]) => [n.slice(2), v]));
    const wanted = this.operations.find((one) => one.id === query.get("op"));
    this.#build();
    this.#list();
    this.choose(wanted ?? this.operations[0], wanted ? this.values : {});
  }

  #build() {
    this.box = make("input", {
      type: "search", class: "ex-search", placeholder: "Search operations", "aria-label": "Search operations",
      value: this.search,
      oninput: (event) => {
        this.search = event.target.value;
        this.#list();
        this.#remember();
      },
    });
    this.list = make("nav", { class: "ex-list", "aria-label": "Operations" });
    this.main = make("section", { class: "ex-main", "aria-live": "polite" });
    this.root.replaceChildren(make("div", { class: "ex-side" }, this.box, this.list), this.main);
  }

  #list() {
    const wanted = this.search.toLowerCase();
    const fits = (one) => `${one.method} ${one.path} ${one.summary} ${one.tag}`.toLowerCase().includes(wanted);
    const tags = new Map();
    for (const one of this.operations.filter(fits)) tags.set(one.tag, [...(tags.get(one.tag) ?? []), one]);
    this.list.replaceChildren(
      ...[...tags].flatMap(([tag, operations]) => [
        make("h3", {}, tag),
        ...operations.map((one) =>
          make(
            "button",
            {
              type: "button", class: one === this.chosen ? "is-here" : "", title: one.summary,
              "aria-current": one === this.chosen ? "true" : null, onclick: () => this.choose(one),
            },
            make("i", { class: `ex-method is-${one.method}` }, one.method.toUpperCase()),
            make("span", {}, one.path.startsWith(CLUSTER) && one.path !== CLUSTER ? make("em", {}, "…") : "", shortened(one.path)),
          ),
        ),
      ]),
    );
    if (!tags.size) this.list.replaceChildren(make("p", { class: "ex-note" }, "Nothing fits."));
  }

  choose(operation, values = {}) {
    this.stop?.();
    this.chosen = operation;
    const wanted = operation.parameters.map((one) => one.name).filter((name) => name in this.known);
    this.values = { ...Object.fromEntries(wanted.map((name) => [name, this.known[name]])), ...values };
    this.body = operation.body ? JSON.stringify(example(operation.body.schema, this.document), null, 2) : "";
    this.media = operation.body?.media[0] ?? null;
    this.#list();
    this.#show();
    this.#remember();
  }

  #show() {
    const { chosen } = this;
    this.codes = make("div", { class: "ex-codes" });
    this.answer = make("div", { class: "ex-answer" });
    this.button = make("button", { type: "submit", class: "ex-send" }, "Send");
    const form = make(
      "form",
      { onsubmit: (event) => (event.preventDefault(), this.send()) },
      ...chosen.parameters.map((one) => this.#field(one)),
      chosen.body ? this.#editor() : null,
      make("div", { class: "ex-row" }, this.button),
    );
    this.main.replaceChildren(
      make("header", {},
        make("i", { class: `ex-method is-${chosen.method}` }, chosen.method.toUpperCase()),
        make("code", {}, chosen.path)),
      make("p", { class: "ex-summary" }, chosen.summary),
      chosen.description ? make("p", { class: "ex-note" }, chosen.description) : "",
      form, this.answer, make("h4", {}, "The same elsewhere"), this.codes, this.#answers(),
    );
    this.#code();
  }

  #field(parameter) {
    const choices = parameter.schema.enum;
    const change = (event) => {
      this.values[parameter.name] = event.target.value;
      this.#code();
      this.#remember();
    };
    const common = { id: `ex-${parameter.name}`, required: parameter.required, oninput: change, autocomplete: "off" };
    const value = this.values[parameter.name] ?? "";
    const input = choices
      ? make("select", common, ...["", ...choices].map((one) => make("option", { selected: one === value }, one)))
      : make("input", { ...common, value, placeholder: hint(parameter.schema), inputmode: isNumber(parameter.schema) ? "numeric" : null });
    return make("div", { class: "ex-field" },
      make("label", { for: `ex-${parameter.name}` }, parameter.name, parameter.required ? make("sup", {}, "*") : "", make("small", {}, parameter.in)),
      input,
      parameter.description ? make("p", { class: "ex-note" }, parameter.description) : null);
  }

  #editor() {
    const { media } = this.chosen.body;
    const area = make("textarea", {
      id: "ex-body", spellcheck: "false", rows: Math.min(Math.max(this.body.split("\n").length, 4), 18),
      oninput: (event) => {
        this.body = event.target.value;
        this.#code();
      },
    });
    area.value = this.body;
    const kind = make("select", { "aria-label": "Content type", oninput: (event) => { this.media = event.target.value; this.#code(); } },
      ...media.map((one) => make("option", {}, one)));
    return make("div", { class: "ex-field" },
      make("label", { for: "ex-body" }, "body", make("small", {}, "request")), media.length > 1 ? kind : null, area);
  }

  // --- the request

  request() {
    let path = this.chosen.path;
    const query = new URLSearchParams();
    for (const one of this.chosen.parameters) {
      const value = this.values[one.name] ?? "";
      if (one.in === "path") path = path.replace(`{${one.name}}`, encodeURIComponent(value) || `{${one.name}}`);
      else if (one.in === "query" && value !== "") query.append(one.name, value);
    }
    const tail = String(query);
    return {
      method: this.chosen.method.toUpperCase(),
      url: `${this.base}${path}${tail ? `?${tail}` : ""}`,
      body: this.chosen.body ? this.body : null,
      media: this.media,
    };
  }

  #code() {
    const request = this.request();
    const texts = { "Command line": commandFor(this.chosen, this.values, this.bootstrap), curl: curl(request), Python: python(request) };
    this.codes.replaceChildren(
      ...Object.entries(texts).filter(([, text]) => text).map(([name, text]) =>
        make("div", { class: "hr-code" },
          make("div", { class: "hr-code-head" }, name, make("span", { style: "flex: 1" }),
            make("button", { type: "button", class: "ex-copy", "aria-label": `Copy as ${name}`, onclick: (event) => hrCopy(text, event.currentTarget) }, "Copy")),
          make("pre", { tabindex: "0" }, text))),
    );
  }

  async send() {
    if (this.stop) return this.stop();
    const request = this.request();
    if (isDestructive(request) && !confirm(`Really do this? ${request.method} ${request.url}`)) return;
    const abort = new AbortController();
    this.stop = () => abort.abort();
    this.button.textContent = "Stop";
    const begun = performance.now();
    try {
      const answer = await fetch(request.url, {
        method: request.method, body: request.body, signal: abort.signal,
        headers: request.body === null ? {} : { "Content-Type": request.media },
      });
      await this.#read(answer, begun);
    } catch (fault) {
      if (!abort.signal.aborted) this.answer.replaceChildren(make("p", { class: "ex-problem" }, `It could not be sent: ${fault.message}.`));
    }
    this.stop = null;
    this.button.textContent = "Send";
  }

  // As it comes: a stream shows what has arrived, and is stopped with the button.
  async #read(answer, begun) {
    const status = make("b", { class: answer.ok ? "is-good" : "is-bad" }, `${answer.status} ${answer.statusText}`);
    const note = make("span", { class: "ex-note" });
    const text = make("pre", { tabindex: "0" });
    this.answer.replaceChildren(make("div", { class: "ex-status", role: "status" }, status, note), text);
    const media = answer.headers.get("content-type") ?? "";
    const told = (size) => (note.textContent = `${(performance.now() - begun).toFixed(0)} ms · ${size.toLocaleString()} characters · ${media || "no content"}`);
    let all = "";
    told(0);
    if (answer.body) {
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        all += part.value;
        told(all.length);
        text.textContent = all.slice(-SHOWN_BYTES);
        if (all.length > 4 * SHOWN_BYTES) all = all.slice(-SHOWN_BYTES);
      }
    }
    if (media.includes("json") && !media.includes("ndjson")) text.textContent = pretty(all).slice(0, SHOWN_BYTES);
  }

  #answers() {
    return make("details", { class: "ex-answers" }, make("summary", {}, "Answers"),
      make("dl", {}, ...Object.entries(this.chosen.responses).flatMap(([status, one]) => [
        make("dt", { class: status < 400 ? "is-good" : "" }, status),
        make("dd", {}, one.description ?? "", status < 400 && one.content
          ? make("pre", {}, pretty(JSON.stringify(example(Object.values(one.content)[0].schema, this.document)))) : ""),
      ])));
  }

  #remember() {
    const query = new URLSearchParams({ op: this.chosen.id });
    if (this.search) query.set("q", this.search);
    for (const [name, value] of Object.entries(this.values)) if (value && value !== this.known[name]) query.set(`p.${name}`, value);
    history.replaceState(history.state, "", `${location.pathname}?${query}`);
  }
}

const shortened = (path) => (path.startsWith(CLUSTER) && path !== CLUSTER ? path.slice(CLUSTER.length) : path);

function operationsOf(document_) {
  const found = [];
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const method of METHODS) {
      const one = methods[method];
      if (!one) continue;
      const content = one.requestBody?.content;
      found.push({
        id: one.operationId, method, path, summary: one.summary ?? "", description: one.description ?? "",
        tag: one.tags?.[0] ?? "other", parameters: one.parameters ?? [], responses: one.responses ?? {},
        body: content ? { media: Object.keys(content), schema: Object.values(content)[0].schema } : null,
      });
    }
  }
  return found;
}

const isNumber = (schema) => ["integer", "number"].includes(schema.type);
const hint = (schema) => schema.examples?.[0] ?? schema.type ?? "";

// A value that fits a schema: its example where it has one, else something of its type.
function example(schema, document_, depth = 0) {
  if (!schema || depth > 6) return null;
  if (schema.$ref) return example(document_.components.schemas[schema.$ref.split("/").at(-1)], document_, depth + 1);
  if (schema.examples?.length) return schema.examples[0];
  if (schema.example !== undefined) return schema.example;
  if ("default" in schema) return schema.default;
  if (schema.enum) return schema.enum[0];
  const some = schema.anyOf ?? schema.oneOf;
  if (some) return example(some.find((one) => one.type !== "null") ?? some[0], document_, depth + 1);
  if (schema.type === "array") return schema.items ? [example(schema.items, document_, depth + 1)] : [];
  if (schema.type === "object" || schema.properties) {
    const wanted = Object.entries(schema.properties ?? {}).filter(([name]) => depth < 2 || (schema.required ?? []).includes(name));
    return Object.fromEntries(wanted.map(([name, one]) => [name, example(one, document_, depth + 1)]));
  }
  return { string: "", integer: 0, number: 0, boolean: false }[schema.type] ?? null;
}

const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};

const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

function curl({ method, url, body, media }) {
  const parts = ["curl"];
  if (url.includes("/stream/")) parts.push("-N");
  if (method !== (body === null ? "GET" : "POST")) parts.push("-X", method);
  if (body !== null) parts.push("-H", quoted(`Content-Type: ${media}`), "-d", quoted(compact(body)));
  return [...parts, quoted(url)].join(" ");
}

function python({ method, url, body, media }) {
  const lines = ["import httpx", ""];
  if (body !== null) lines.push(`body = ${JSON.stringify(compact(body))}`);
  const rest = body === null ? "" : `, content=body, headers={"Content-Type": ${JSON.stringify(media)}}`;
  if (url.includes("/stream/"))
    lines.push(`with httpx.stream(${JSON.stringify(method)}, ${JSON.stringify(url)}, timeout=None) as answer:`, "    for line in answer.iter_lines():", "        print(line)");
  else lines.push(`answer = httpx.request(${JSON.stringify(method)}, ${JSON.stringify(url)}${rest})`, "print(answer.status_code, answer.text)");
  return lines.join("\n");
}

const compact = (text) => {
  try {
    return JSON.stringify(JSON.parse(text));
  } catch {
    return text;
  }
};

// The cluster's id, which stands in most paths.
async function knownValues(base, document_) {
  if (!document_.paths["/v3/clusters"]) return {};
  try {
    const answer = await fetch(`${base}/v3/clusters`);
    return answer.ok ? { cluster_id: (await answer.json()).data[0].cluster_id } : {};
  } catch {
    return {};
  }
}

async function begin(root) {
  root.dataset.begun = "yes";
  try {
    const answer = await fetch(`${root.dataset.base}/openapi`);
    if (!answer.ok) throw new Error(`the gateway answered ${answer.status}`);
    const document_ = await answer.json();
    window.apiExplorer = new Explorer(root, document_, await knownValues(root.dataset.base, document_));
  } catch (fault) {
    root.replaceChildren(make("p", { class: "ex-problem" }, `The description of the API could not be read: ${fault.message}.`));
  }
}

const waiting = setInterval(() => {
  const root = document.querySelector(".explorer:not([data-begun])");
  if (root) {
    clearInterval(waiting);
    begin(root);
  }
}, 30);
