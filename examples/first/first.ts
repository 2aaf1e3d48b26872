// Remembers by UMP, recalls by memorywire, tags by OAMP and erases: one memory, one vault.
// Run as it is by Node 22.6 or newer: node --experimental-strip-types first.ts

const url: string = process.env.YORE_URL ?? "http://127.0.0.1:7070";
const token: string | undefined = process.env.YORE_TOKEN;

interface Hit {
  id: string;
  content: string;
}

async function call(method: string, path: string, body?: unknown): Promise<any> {
  const answer = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

const record = {
  kind: "semantic",
  body: { text: "The typescript example keeps its keys in a green jar" },
  scope: { owner: "owner", agent: "example" },
};
console.log("remembered:", (await call("POST", "/ump/remember", { record })).result);

const question = { agent_id: "example", query: "where are the keys of the typescript example?" };
const hit: Hit = (await call("POST", "/memorywire/v0/recall", question)).results[0];
console.log("recalled:", hit.content);

// memorywire spells the id of a memory in hexadecimal digits, OAMP as a UUID.
const entry = `/v1/knowledge/${hit.id}?user_id=owner`;
console.log("tags:", (await call("PATCH", entry, { tags: ["keys"] })).tags);

await call("DELETE", entry);
const left: Hit[] = (await call("POST", "/memorywire/v0/recall", question)).results;
console.log("left:", left.filter((one) => one.id === hit.id));
