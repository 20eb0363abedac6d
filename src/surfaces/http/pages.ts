const STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  code { font-family: ui-monospace, monospace; font-size: .9em }
`;
const DOCS_STYLE = `
  :root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
  body { margin: 0 }
  #gate { max-width: 40rem; margin: 2rem auto; padding: 0 1rem }
`;

const page = (title: string, body: string, style = STYLE): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title><style>${style}</style></head><body>${body}</body></html>`;

/** Shown if the console's files are missing, in a folder that npm did not set up. */
export const noConsolePage = page(
  "Everstep",
  `<h1>Everstep</h1><p>Agents are running here. The console is not built yet: run <code>npm run build</code> in Everstep's folder and load this page again.</p>
<p><a href="/docs">The API</a> · <a href="/openapi.json">OpenAPI</a> · <a href="/health">Health</a></p>`,
);

/** The API reference. Scripts and styles come from this server only; its content needs the token, if there is one. */
export const docsPage = page(
  "Everstep API",
  `<div id="reference"></div>
<form id="gate" hidden><h1>Everstep API</h1><p>This server needs a token: the value of EVERSTEP_TOKEN on its machine.</p>
<p id="wrong" role="alert" hidden>The token is wrong.</p>
<p><label>Token <input name="token" type="password" autocomplete="current-password" required></label> <button>Continue</button></p></form>
<noscript>This page needs JavaScript; <a href="/openapi.json">openapi.json</a> has the same content.</noscript>
<script src="/docs/reference.js" defer></script><script src="/docs.js" type="module"></script>`,
  DOCS_STYLE,
);

/**
 * Reads the API's description and shows it, with the token that the console stored in this browser or that the reader enters.
 * Everything that would call another host is off.
 */
export const docsScript = `
const KEY = "everstep.token";
const token = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY);
const answer = await fetch("/openapi.json", token ? { headers: { authorization: "Bearer " + token } } : {});
if (answer.status === 401) askForToken();
else if (!answer.ok) document.querySelector("#reference").textContent = (await answer.json()).detail;
else show(await answer.json());

function askForToken() {
  const gate = document.querySelector("#gate");
  gate.hidden = false;
  document.querySelector("#wrong").hidden = !token;
  gate.addEventListener("submit", (event) => {
    event.preventDefault();
    localStorage.removeItem(KEY);
    sessionStorage.setItem(KEY, new FormData(gate).get("token").trim());
    location.reload();
  });
}

function show(content) {
  globalThis.Scalar.createApiReference("#reference", {
    content,
    ...(token && { authentication: { preferredSecurityScheme: "token", securitySchemes: { token: { token } } } }),
    documentDownloadType: "json",
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
    showOperationId: true,
    orderSchemaPropertiesBy: "preserve",
    hideClientButton: true,
    withDefaultFonts: false,
    telemetry: false,
    showDeveloperTools: "never",
    agent: { disabled: true },
    mcp: { disabled: true },
    persistAuth: false,
  });
}
`;
