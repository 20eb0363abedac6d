const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  code, pre { font-family: ui-monospace, monospace; font-size: .9em }
  details { border-top: 1px solid #8884; padding: .4rem 0 }
  summary { cursor: pointer }
  pre { overflow: auto; background: #8881; padding: .8rem; border-radius: .4rem }
  .method { display: inline-block; min-width: 4.5em; font-weight: 600 }
`;

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${STYLE}</style></head><body>${body}</body></html>`;

/** Where the console's files are missing, in a folder that npm did not set up. */
export const noConsolePage = page(
  "Everstep",
  `<h1>Everstep</h1><p>Agents are running here. The console is not built yet: run <code>npm run build</code> in Everstep's folder and load this page again.</p>
<p><a href="/docs">The API</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/health">Health</a></p>`,
);

export const docsPage = page(
  "Everstep API",
  `<h1>Everstep API</h1><p id="about"></p><main id="routes">Loading…</main><script src="/docs.js" type="module"></script>`,
);

/** Shows the OpenAPI document that the server gives. Text only enters the page as text. */
export const docsScript = `
const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
const spec = await (await fetch("/openapi.json")).json();
document.querySelector("#about").textContent = spec.info.description;
const main = document.querySelector("#routes");
main.textContent = "";
for (const [path, methods] of Object.entries(spec.paths)) {
  for (const [method, route] of Object.entries(methods)) {
    const verb = element("span", method.toUpperCase());
    verb.className = "method";
    const details = element("details", "", element("summary", "", verb, element("code", path), " " + (route.summary ?? "")));
    details.append(element("pre", JSON.stringify({ parameters: route.parameters, body: route.requestBody, answers: route.responses }, null, 2)));
    main.append(details);
  }
}
main.append(element("h2", "Schemas"));
for (const [name, schema] of Object.entries(spec.components?.schemas ?? {}))
  main.append(element("details", "", element("summary", "", element("code", name)), element("pre", JSON.stringify(schema, null, 2))));
`;
