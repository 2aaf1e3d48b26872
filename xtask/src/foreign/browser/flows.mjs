// What a person does in the web app, in a real browser. Every check prints one line of JSON.
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { createHash, randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import { readFileSync } from "node:fs";

const require = createRequire(import.meta.url);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const base = process.env.YORE_URL;
const [program, ...place] = JSON.parse(process.env.YORE_LINE);
const shots = process.env.YORE_SHOTS;

const yore = (...args) => execFileSync(program, [...args, ...place], { encoding: "utf8" }).trim();
const demand = (condition, what) => { if (!condition) throw new Error(what); };

const browser = await chromium.launch({ executablePath: process.env.YORE_CHROMIUM });
const wide = { viewport: { width: 1200, height: 800 } };
const context = await browser.newContext(wide);
const page = await context.newPage();
const complaints = [];
page.on("console", (line) => { if (line.type() === "error") complaints.push(line.text()); });
page.on("pageerror", (error) => complaints.push(String(error)));
let elsewhere = null;
page.on("request", (request) => {
  const known = [base, elsewhere].some((place) => place && request.url().startsWith(place));
  if (!known) complaints.push(`a request elsewhere: ${request.url()}`);
});
page.setDefaultTimeout(15000);

async function check(name, act) {
  const result = { name };
  try {
    await act();
    demand(complaints.length === 0, complaints.join("; "));
  } catch (error) {
    result.error = String(error?.stack ?? error);
    await page.screenshot({ path: join(shots, `failed-${name}.png`), fullPage: true }).catch(() => {});
  }
  complaints.length = 0;
  console.log(JSON.stringify(result));
}

// axe runs inside a page whose policy allows no script of others, so the debugger brings it in.
async function judged(name) {
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
  const session = await context.newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: axe });
  const { result } = await session.send("Runtime.evaluate", {
    expression: "axe.run(document).then((told) => JSON.stringify(told.violations))",
    awaitPromise: true,
    returnByValue: true,
  });
  await session.detach();
  const violations = JSON.parse(result.value);
  const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = serious.map((one) => `${one.id}: ${one.nodes.map((node) => node.target).join(", ")}`);
  demand(serious.length === 0, `axe on ${name}: ${told.join("; ")}`);
}

const settled = () => page.waitForLoadState("networkidle");

await check("strangers_sign_in_by_a_link", async () => {
  await page.goto(`${base}/`);
  demand(page.url().endsWith("/app/login"), page.url());
  await judged("login");
  await page.goto(yore("open", "--print"));
  demand(page.url() === `${base}/app`, page.url());
});

await check("the_first_run_guides", async () => {
  await page.getByRole("heading", { name: "Three steps to a memory that follows you" }).waitFor();
  await judged("first-run");
  await page.getByLabel("What to remember").fill("I am allergic to peanuts");
  await page.getByRole("button", { name: "Remember" }).click();
  await page.getByText("Remembered.").waitFor();
  await judged("home");
});

await check("search_answers_while_typing", async () => {
  yore("remember", "The kettle stands on the blue shelf");
  yore("remember", "Kim lives in Oslo and likes long walks");
  await page.goto(`${base}/app`);
  await page.keyboard.press("/");
  await page.waitForURL(`${base}/app/search`);
  await page.locator("#q").pressSequentially("what food should I avoid", { delay: 20 });
  await page.locator("#results .result", { hasText: "peanuts" }).first().waitFor();
  await page.waitForURL(/q=what/);
  await page.getByText("Why this matched").first().click();
  await judged("search");
  await page.getByLabel("Go back in time").fill("-3");
  await page.getByText("Nothing relevant among").waitFor();
  demand(/as_of=\d{4}-\d\d-\d\d/.test(page.url()), page.url());
  await page.getByLabel("Go back in time").fill("0");
  await page.locator("#results .result", { hasText: "peanuts" }).first().waitFor();
});

await check("a_memory_is_edited_labelled_and_erased", async () => {
  await page.goto(`${base}/app/search`);
  await page.getByRole("link", { name: /Kim lives in Oslo/ }).click();
  await page.getByText("Edit", { exact: true }).click();
  await page.getByLabel("Text").fill("Kim lives in Bergen and likes long walks");
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await page.locator("ins", { hasText: "Bergen" }).waitFor();
  await page.getByText("Who may see it").click();
  await page.getByLabel("Labels, with commas between").fill("people");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("labels: none → people").waitFor();
  await judged("memory");
  await page.getByText("Forget", { exact: true }).first().click();
  await page.getByLabel("I mean it").check();
  await page.getByRole("button", { name: "Erase for good" }).click();
  await page.getByRole("heading", { name: "Erased" }).waitFor();
  await judged("receipt");
});

await check("review_by_keys_with_undo_and_live_updates", async () => {
  const token = yore("token", "issue", "--verbs", "read,write", "--agent", "scheduler");
  const propose = (text) => fetch(`${base}/api/v1/remember`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ draft: {
      body: { text }, kind: "semantic", facet: "fact", scope: {}, lifecycle: {}, provenance: {},
      governance: {}, consent: {},
    }, wish: { approval: true } }),
  }).then(async (reply) => demand(reply.status === 202, `${reply.status} ${await reply.text()}`));
  await page.goto(`${base}/app/review`);
  await page.getByText("Nothing waits for you").waitFor();
  await propose("the stand-up is at nine");
  await page.getByText("wants to remember").waitFor();
  await propose("the raise is planned for May");
  await page.locator(".hold").nth(1).waitFor();
  await judged("review");
  await page.keyboard.press("j");
  await page.keyboard.press("a");
  await page.getByText("Just decided").waitFor();
  await judged("undo");
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Taken back.").waitFor();
  await page.locator(".hold", { hasText: "raise" }).getByRole("button", { name: "Reject" }).click();
  await page.locator(".hold", { hasText: "stand-up" }).getByRole("button", { name: "Approve" }).click();
  await page.getByText("Nothing waits for you").waitFor();
  await page.waitForFunction(() => !document.body.innerText.includes("Just decided"), null, { timeout: 20000 });
  demand(yore("list").includes("the stand-up is at nine"), "what was approved is remembered");
  demand(!yore("list").includes("raise"), "what was rejected is not");
});

await check("rules_are_made_and_switched_off", async () => {
  await page.goto(`${base}/app/rules`);
  await page.getByLabel("Name").fill("ask about money");
  await page.getByLabel("Words in the text").fill("salary");
  await page.getByRole("button", { name: "Add the rule" }).click();
  await page.getByText("The rule is in force.").waitFor();
  await judged("rules");
  await page.getByRole("button", { name: "Switch off" }).click();
  await page.getByText("The rule is switched off.").waitFor();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByText("The rule is gone.").waitFor();
  await page.getByRole("button", { name: "Learn from my decisions" }).click();
  await page.getByText("After 5 decisions").waitFor();
  await page.getByRole("button", { name: "Stop learning" }).click();
});

await check("a_grant_is_previewed_given_and_taken_back", async () => {
  await page.goto(`${base}/app/access`);
  await page.getByLabel("Agent", { exact: true }).fill("claude-code");
  await page.getByRole("button", { name: "Show what it would see" }).click();
  await page.getByRole("heading", { name: "What claude-code would see" }).waitFor();
  await page.getByText("I am allergic to peanuts").waitFor();
  await judged("preview");
  await page.getByRole("button", { name: "Give this grant" }).click();
  const token = await page.locator("#token").innerText();
  const ask = () => fetch(`${base}/api/v1/count`, { method: "POST", headers: { authorization: `Bearer ${token}` } });
  demand((await ask()).status === 200, "the token opens the vault");
  await page.goto(`${base}/app/access`);
  await judged("access");
  await page.getByRole("button", { name: "Take back the grant of claude-code" }).click();
  await page.getByText("It opens nothing any more").waitFor();
  demand((await ask()).status === 401, "the token opens nothing any more");
});

await check("an_agent_is_connected_by_consent", async () => {
  const ask = async (place, body, type = "application/json") => {
    const reply = await fetch(place, { method: "POST", headers: { "content-type": type }, body });
    return reply.json();
  };
  const told = new Promise((resolve) => {
    const server = createServer((request, response) => {
      response.end("connected");
      if (request.url.startsWith("/callback")) {
        resolve(new URL(request.url, elsewhere).searchParams);
        server.close();
      }
    }).listen(0, "127.0.0.1", () => { elsewhere = `http://127.0.0.1:${server.address().port}`; });
  });
  while (!elsewhere) await new Promise((resolve) => setTimeout(resolve, 10));
  const described = await (await fetch(`${base}/.well-known/oauth-authorization-server`)).json();
  const redirect = `${elsewhere}/callback`;
  const { client_id } = await ask(described.registration_endpoint,
    JSON.stringify({ client_name: "A scripted host", redirect_uris: [redirect] }));
  const verifier = randomBytes(40).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  const query = new URLSearchParams({
    response_type: "code", client_id, redirect_uri: redirect, code_challenge: challenge,
    code_challenge_method: "S256", scope: "read", state: "a state", resource: `${base}/mcp`,
  });
  await page.goto(`${described.authorization_endpoint}?${query}`);
  await page.getByRole("heading", { name: "Let A scripted host in?" }).waitFor();
  await judged("consent");
  await page.getByRole("button", { name: "Let it in" }).click();
  const answer = await told;
  demand(answer.get("state") === "a state", "the state comes back");
  const { access_token } = await ask(described.token_endpoint, new URLSearchParams({
    grant_type: "authorization_code", code: answer.get("code"), client_id,
    redirect_uri: redirect, code_verifier: verifier,
  }), "application/x-www-form-urlencoded");
  const counted = await fetch(`${base}/api/v1/count`, {
    method: "POST", headers: { authorization: `Bearer ${access_token}` },
  });
  demand(counted.status === 200, "the token opens the vault");
});

await check("an_mcp_host_connects_by_oauth_alone", async () => {
  const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
  let answered;
  const code = new Promise((resolve) => { answered = resolve; });
  const server = createServer((request, response) => {
    response.end("connected");
    const told = new URL(request.url, elsewhere).searchParams.get("code");
    if (told) answered(told);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  elsewhere = `http://127.0.0.1:${server.address().port}`;
  const kept = {};
  // What a host keeps; how it asks, and where, is all the client library's.
  const provider = {
    redirectUrl: `${elsewhere}/callback`,
    clientMetadata: { client_name: "An MCP host", redirect_uris: [`${elsewhere}/callback`] },
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    codeVerifier: () => kept.verifier,
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    redirectToAuthorization: async (url) => { await page.goto(String(url)); },
  };
  const place = new URL(`${base}/mcp`);
  const first = new StreamableHTTPClientTransport(place, { authProvider: provider });
  await new Client({ name: "host", version: "1" }).connect(first).then(
    () => { throw new Error("it came in without being asked about"); },
    (error) => demand(error.constructor.name === "UnauthorizedError", String(error)),
  );
  await page.getByRole("heading", { name: "Let An MCP host in?" }).waitFor();
  await page.getByRole("button", { name: "Let it in" }).click();
  await first.finishAuth(await code);
  const host = new Client({ name: "host", version: "1" });
  await host.connect(new StreamableHTTPClientTransport(place, { authProvider: provider }));
  const { tools } = await host.listTools();
  demand(tools.length > 0, "the host sees tools");
  const renews = kept.tokens.refresh_token;
  demand(renews, "the host can renew its token");
  await host.close();
  // A token that is no longer good is renewed by the library itself.
  kept.tokens = { ...kept.tokens, access_token: `${kept.tokens.access_token.slice(0, -4)}0000` };
  const again = new Client({ name: "host", version: "1" });
  await again.connect(new StreamableHTTPClientTransport(place, { authProvider: provider }));
  demand((await again.listTools()).tools.length === tools.length, "the host is back");
  demand(kept.tokens.refresh_token !== renews, "what renews is a new one each time");
  await again.close();
  server.close();
});

await check("a_conversation_is_read", async () => {
  const said = (role, text, more = {}) => ({
    id: crypto.randomUUID(), role, content: text, text, at: Date.now() * 1000, ...more,
  });
  const id = crypto.randomUUID();
  const now = Date.now() * 1000;
  const reply = await fetch(`${base}/api/v1/converse`, {
    method: "POST",
    headers: { authorization: `Bearer ${yore("token", "owner")}`, "content-type": "application/json" },
    body: JSON.stringify({
      conversation: { id, title: "Soup for a cold day", platform: "claude", created: now, updated: now },
      messages: [
        said("user", "What *warm* soup is quick?"),
        said("assistant", "# Lentils\n\n1. Fry an onion\n2. Add lentils\n\n> 20 minutes\n\n```sh\nboil --until soft\n```"),
        said("tool", "temperature: -4"),
        said("assistant", "An answer that was left", { off_path: true }),
      ],
    }),
  });
  demand(reply.status === 200, `${reply.status} ${await reply.text()}`);
  await page.goto(`${base}/app/conversations`);
  await page.getByRole("link", { name: "Soup for a cold day" }).click();
  await page.getByText("Fry an onion").waitFor();
  await judged("conversation");
  await page.goto(`${base}/app/conversations?view=statistics`);
  await judged("statistics");
});

await check("branches_are_switched", async () => {
  const said = (role, text, parent, off_path = false) => ({
    id: crypto.randomUUID(), role, content: text, text, at: Date.now() * 1000, off_path,
    ...(parent ? { parent: parent.id } : {}),
  });
  const now = Date.now() * 1000;
  const question = said("user", "Which soup shall it be?");
  const [lentils, leek] = [said("assistant", "Lentils.", question), said("assistant", "Leek.", question, true)];
  const messages = [question, lentils, said("user", "With cumin?", lentils), leek, said("user", "With cream?", leek, true)];
  const reply = await fetch(`${base}/api/v1/converse`, {
    method: "POST",
    headers: { authorization: `Bearer ${yore("token", "owner")}`, "content-type": "application/json" },
    body: JSON.stringify({
      conversation: { id: crypto.randomUUID(), title: "Two soups", platform: "chatgpt", created: now, updated: now },
      messages,
    }),
  });
  demand(reply.status === 200, `${reply.status} ${await reply.text()}`);
  await page.goto(`${base}/app/conversations`);
  await page.getByRole("link", { name: "Two soups" }).click();
  await page.getByText("With cumin?").waitFor();
  demand(await page.getByText("With cream?").count() === 0, "one branch at a time");
  await page.getByRole("link", { name: "Next branch" }).click();
  await page.getByText("With cream?").waitFor();
  demand(await page.getByText("With cumin?").count() === 0, "one branch at a time");
  await judged("branches");
  await page.getByRole("link", { name: "Branch before" }).click();
  await page.getByText("With cumin?").waitFor();
});

await check("an_export_is_dropped_and_read", async () => {
  const said = (id, parent, children, role, text) => ({ id, parent, children, message: {
    id, author: { role }, create_time: 1700000000, content: { content_type: "text", parts: [text] },
  } });
  const talk = (number) => ({
    id: `c${number}`, conversation_id: `c${number}`, title: `Trip number ${number}`, create_time: 1700000000 + number * 3000000,
    update_time: 1700000100 + number * 3000000, current_node: "n2", mapping: {
      n1: said("n1", null, ["n2"], "user", `Remember that I booked train ${number} to Bergen.`),
      n2: said("n2", "n1", [], "assistant", `Train ${number} leaves at nine.`),
    },
  });
  const file = JSON.stringify(Array.from({ length: 30 }, (_, number) => talk(number)));
  await page.goto(`${base}/app/import`);
  await judged("import");
  const dropped = await page.evaluateHandle((text) => {
    const moved = new DataTransfer();
    moved.items.add(new File([text], "conversations.json", { type: "application/json" }));
    return moved;
  }, file);
  await page.dispatchEvent(".drop", "drop", { dataTransfer: dropped });
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText("Done.").waitFor();
  await page.getByText("chatgpt 30").waitFor();
  await judged("imported");
  await page.getByRole("link", { name: "Decide what is remembered" }).click();
  await page.getByText("I booked train").first().waitFor();
  await judged("proposals");
});

await check("a_copy_is_made_and_downloaded", async () => {
  await page.goto(`${base}/app/backup`);
  await page.getByRole("button", { name: "Make a copy now" }).click();
  await page.getByText("A copy was made.").waitFor();
  await judged("backup");
  const coming = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  const file = await (await coming).path();
  demand(readFileSync(file).length > 4096, "the copy has bytes");
});

await check("the_schedule_of_copies_is_changed", async () => {
  await page.goto(`${base}/app/backup`);
  await page.getByLabel("How often").selectOption("weekly");
  await page.getByLabel("How many are kept").fill("3");
  await page.getByRole("button", { name: "Save the schedule" }).click();
  await page.getByText("A copy is made weekly; 3 are kept.").waitFor();
});

await check("an_archive_is_taken_away_and_restored_after_a_preview", async () => {
  await page.goto(`${base}/app/backup`);
  await page.getByLabel("Password, if it shall have one").fill("between us");
  await page.getByLabel("The same password again").fill("between us");
  const coming = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download the archive" }).click();
  const archive = await coming;
  demand(archive.suggestedFilename().endsWith(".omp.zip.enc"), archive.suggestedFilename());
  await page.goto(`${base}/app/import`);
  await page.locator("#export").setInputFiles({
    name: "all.omp.zip.enc", mimeType: "application/octet-stream", buffer: readFileSync(await archive.path()),
  });
  await page.getByText("The archive has a password").click();
  await page.getByLabel("Password", { exact: true }).fill("between us");
  await page.getByLabel("Only say what would come in").check();
  await page.getByRole("button", { name: "Import", exact: true }).click();
  await page.getByText("Nothing was changed. This would come in:").waitFor();
  await judged("archive-preview");
  await page.getByRole("button", { name: "Bring it in" }).click();
  await page.getByText("Done.").waitFor();
  await page.getByText("known already").waitFor();
});

await check("a_vault_goes_back_to_a_copy", async () => {
  yore("remember", "This came after the copy");
  await page.goto(`${base}/app/backup`);
  await page.getByRole("link", { name: "Go back to it" }).first().click();
  await page.getByRole("heading", { name: /Back to the copy of/ }).waitFor();
  await judged("restore");
  await page.getByLabel("I mean it").check();
  await page.getByRole("button", { name: "Go back to this copy" }).click();
  await page.getByText("The vault is back at that copy.").waitFor();
  demand(!yore("list").includes("This came after the copy"), "what came after the copy is gone");
  demand(yore("list").includes("peanuts"), "what was in the copy is there");
});

await check("everything_is_checked", async () => {
  await page.goto(`${base}/app/health`);
  await page.getByRole("button", { name: "Check everything" }).click();
  await page.getByText("audit entries are sound").waitFor();
  await judged("checked");
});

await check("other_pages_are_sound", async () => {
  for (const name of ["audit", "health", "conversations", "api"]) {
    await page.goto(`${base}/app/${name}`);
    await settled();
    await judged(name);
  }
  await page.goto(`${base}/app/audit`);
  await page.getByRole("button", { name: "Check the chain" }).click();
  await page.getByText("The chain is whole").waitFor();
});

await check("the_console_asks_the_api", async () => {
  const token = yore("token", "issue", "--verbs", "read", "--agent", "console");
  await page.goto(`${base}/app/api`);
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("#answer", { hasText: "peanuts" }).waitFor();
});

await check("the_api_is_described_and_every_surface_shown", async () => {
  const { Validator } = await import("@seriousme/openapi-schema-validator");
  const described = await (await fetch(`${base}/openapi.json`)).json();
  const validator = new Validator();
  const told = await validator.validate(described);
  demand(told.valid, JSON.stringify(told.errors)?.slice(0, 2000));
  demand(validator.version === "3.1", validator.version);
  for (const name of ["omp", "oamp", "ump", "memorywire", "uamp", "oauth"]) {
    await page.goto(`${base}/app/api`);
    await page.getByRole("link", { name, exact: true }).click();
    await page.locator("tbody tr").first().waitFor();
  }
  await judged("api-surface");
  const token = yore("token", "owner");
  await page.goto(`${base}/app/api?of=oamp`);
  await page.locator("select[name=operation]").selectOption("GET /v1/capabilities");
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator("#answer", { hasText: "oamp_version" }).waitFor();
});

await check("a_passkey_signs_in", async () => {
  // Browsers know no passkeys for bare addresses.
  const named = base.replace("127.0.0.1", "localhost");
  elsewhere = named;
  await page.goto(yore("open", "--print").replace("127.0.0.1", "localhost"));
  await page.goto(`${named}/app/access`);
  await judged("passkeys");
  // Nothing is judged while the authenticator is there: it goes with any session of the debugger.
  const authenticator = await context.newCDPSession(page);
  await authenticator.send("WebAuthn.enable");
  const { authenticatorId } = await authenticator.send("WebAuthn.addVirtualAuthenticator", { options: {
    protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true,
  } });
  await page.getByLabel("Its name").fill("a laptop");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await page.getByText("The passkey is added.").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.waitForURL(`${named}/app`);
  const { credentials } = await authenticator.send("WebAuthn.getCredentials", { authenticatorId });
  demand(credentials.length === 1 && credentials[0].signCount > 0, JSON.stringify(credentials));
  await page.goto(`${named}/app/access`);
  await page.getByRole("button", { name: "Take back the passkey a laptop" }).click();
  await page.getByText("The passkey is taken back.").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText("This passkey opens nothing here").waitFor();
  await authenticator.send("WebAuthn.removeVirtualAuthenticator", { authenticatorId });
  await authenticator.detach();
  await judged("login-passkey");
  complaints.length = 0;
});

await check("operators_come_through_their_provider", async () => {
  const { default: Provider } = await import("oidc-provider");
  const issuer = `http://127.0.0.1:${process.env.YORE_PROVIDER}`;
  const people = { kim: ["admins"], lee: ["desk"], max: ["cooks"] };
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "yore", token_endpoint_auth_method: "none", redirect_uris: [`${base}/app/operators/return`],
      grant_types: ["authorization_code"], response_types: ["code"],
    }],
    pkce: { required: () => true },
    scopes: ["openid", "profile", "email", "groups"],
    claims: { openid: ["sub"], profile: ["preferred_username"], email: ["email"], groups: ["groups"] },
    conformIdTokenClaims: false,
    findAccount: (_, id) => ({
      accountId: id, claims: () => ({ sub: id, preferred_username: id, groups: people[id] ?? [] }),
    }),
    cookies: { keys: ["a key of the test"] },
  });
  const listening = provider.listen(Number(process.env.YORE_PROVIDER), "127.0.0.1");
  const through = async (name) => {
    const visitor = await browser.newContext(wide);
    const there = await visitor.newPage();
    await there.goto(`${base}/app/login`);
    await there.getByRole("link", { name: "Sign in with Example Corp" }).click();
    await there.locator("input[name=login]").fill(name);
    await there.locator("input[name=password]").fill("any");
    await there.locator("button[type=submit]").click();
    await there.locator("button[type=submit]", { hasText: "Continue" }).click();
    await there.waitForURL(/\/app\//);
    return { there, visitor };
  };
  const kim = await through("kim");
  await kim.there.getByRole("heading", { name: "Users of the whole server" }).waitFor();
  await kim.there.screenshot({ path: join(shots, "admin.png"), fullPage: true });
  await kim.there.locator("tbody a").first().click();
  await kim.there.getByRole("heading", { name: "Legal holds" }).waitFor();
  await kim.there.screenshot({ path: join(shots, "admin-user.png"), fullPage: true });
  await kim.there.goto(`${base}/app/access`);
  await kim.there.getByRole("heading", { name: "Not allowed" }).waitFor();
  await kim.visitor.close();
  const lee = await through("lee");
  await lee.there.waitForURL(`${base}/app/search`);
  await lee.there.getByText("peanuts").first().waitFor();
  await lee.visitor.close();
  const max = await through("max");
  await max.there.getByText("None of your groups has a role here.").waitFor();
  await max.visitor.close();
  listening.close();
});

await check("an_administrator_and_a_guardian_have_their_pages", async () => {
  const asked = await fetch(`${base}/omp/v2/admin/guardianship`, {
    method: "POST",
    headers: { authorization: `Bearer ${yore("token", "owner")}`, "content-type": "application/json" },
    body: JSON.stringify({ child: true, parental_consent_id: "consent-17", guardian: "parents-app" }),
  });
  demand(asked.status === 200, `${asked.status}`);
  const { token } = await asked.json();
  const enter = async (secret) => {
    await page.context().clearCookies();
    await page.goto(`${base}/app/login`);
    await page.getByLabel("Owner token").fill(secret);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
  };
  await enter(token);
  await page.waitForURL(`${base}/app/guardian`);
  await page.getByText("consent-17").waitFor();
  await judged("guardian");
  await page.getByRole("button", { name: "Stop storing" }).click();
  await page.getByText("Stopped: nothing more is stored.").waitFor();
  await page.getByRole("button", { name: "Let it go on" }).click();
  await page.getByText("Storing goes on.").waitFor();
  await page.getByRole("link", { name: "Two soups" }).click();
  await page.getByText("Erase this conversation").click();
  await page.getByLabel("I mean it").check();
  await page.getByRole("button", { name: "Erase for good" }).click();
  await page.getByText("Erased for good.").waitFor();
  await enter(yore("token", "admin"));
  await page.waitForURL(`${base}/app/admin`);
  await page.getByLabel("Name").fill("a newcomer");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByText("The user has an empty vault now.").waitFor();
  await judged("tenant");
  await page.getByRole("link", { name: "a newcomer" }).click();
  await page.getByLabel("Days for conversations").fill("90");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved how long things are kept.").waitFor();
  await judged("user");
  await page.getByRole("button", { name: "Remove a newcomer" }).click();
  await page.getByText("The user is gone.").waitFor();
  await page.context().clearCookies();
  await page.goto(yore("open", "--print"));
});

await check("dark_colours_and_a_phone", async () => {
  await page.goto(`${base}/app/access`);
  await page.getByRole("button", { name: "Dark colours" }).click();
  await page.locator("html[data-theme=dark]").waitFor();
  await judged("access-dark");
  await page.setViewportSize({ width: 390, height: 844 });
  for (const name of ["", "search?q=peanuts", "access", "audit", "review", "import", "backup", "health", "conversations"]) {
    await page.goto(`${base}/app/${name}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    demand(over <= 0, `/app/${name} is ${over} pixels too wide for a phone`);
    await judged(`phone-${name.split("?")[0] || "home"}`);
  }
  await page.getByRole("button", { name: "Colours of the system" }).click();
  await page.setViewportSize(wide.viewport);
});

await check("pages_work_without_scripts", async () => {
  const plain = await browser.newContext({ ...wide, javaScriptEnabled: false });
  const still = await plain.newPage();
  await still.goto(yore("open", "--print"));
  await still.getByLabel("What to remember").fill("no scripts were needed");
  await still.getByRole("button", { name: "Remember" }).click();
  await still.getByText("Remembered.").waitFor();
  await still.goto(`${base}/app/search?q=which+scripts+were+needed`);
  await still.getByText("no scripts were needed").waitFor();
  await plain.close();
});

await check("who_signs_out_or_is_thrown_out_signs_in_again", async () => {
  await page.goto(`${base}/app/search`);
  const rows = [JSON.parse(yore("token", "list", "--json"))].flat();
  for (const row of rows.filter((row) => row.note === "signed in to the web app")) {
    yore("token", "revoke", row.id);
  }
  await page.locator("#q").fill("a search after the end");
  await page.waitForURL(/\/app\/login\?next=/);
  await page.getByLabel("Owner token").fill(yore("token", "owner"));
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.waitForURL(/\/app\/search/);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(`${base}/app/login`);
  await page.goto(`${base}/app/access`);
  demand(page.url().includes("/app/login"), page.url());
  complaints.length = 0;
});

await browser.close();
