// The main job, through a client that is generated from the OpenAPI document:
// push a snapshot, share it with a group and another organization, pull it
// there, end every share. It fails at the first response that does not
// match the document.
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { env: Record<string, string | undefined> };

function as(who: string) {
  const key = process.env[who + "_KEY"] ?? "";
  return createClient<paths>({ baseUrl: process.env.BASE, headers: { "X-API-Key": key } });
}

function must<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  if (answer.error !== undefined || answer.data === undefined) {
    throw new Error(`${answer.response.url}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  }
  return answer.data;
}

function equal(got: unknown, want: unknown, what: string) {
  if (got !== want) throw new Error(`${what}: ${got}, want ${want}`);
}

async function sha256(bytes: BufferSource) {
  const sum = await crypto.subtle.digest("SHA-256", bytes);
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

// crc64nvme returns the checksum of a part: base64 of the big-endian CRC-64/NVME.
function crc64nvme(bytes: Uint8Array) {
  const ones = 0xffffffffffffffffn;
  let crc = ones;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ 0x9a6c9329ac4bc9b5n : crc >> 1n;
  }
  crc ^= ones;
  const out = Array.from({ length: 8 }, (_, i) => String.fromCharCode(Number((crc >> BigInt(56 - 8 * i)) & 0xffn)));
  return btoa(out.join(""));
}

const owner = as("OWNER");
const member = as("MEMBER");
const recipient = as("RECIPIENT");
const bytes = new TextEncoder().encode("a snapshot pushed by a generated client");

const plan = must(await owner.POST("/api/v1/agents/snapshots", {
  body: {
    target: "shop", name: "shop-20261122T211134Z", type: "sanitized", engine: "postgres",
    size: bytes.length, sha256: await sha256(bytes),
  },
}));
const id = { path: { id: plan.id } };
const parts = must(await owner.POST("/api/v1/agents/snapshots/{id}/parts", {
  params: id, body: { parts: [{ number: 1, crc64nvme: crc64nvme(bytes) }] },
}));
for (const url of parts.urls ?? []) {
  const sent = await fetch(url.url, { method: url.method, headers: url.headers, body: bytes });
  equal(sent.ok, true, "upload " + sent.status);
}
must(await owner.POST("/api/v1/agents/snapshots/{id}/complete", { params: id }));

const hidden = await member.GET("/api/v1/agents/snapshots/{id}", { params: id });
equal(hidden.error?.code, "not_found", "before the share");
must(await owner.POST("/api/v1/agents/snapshots/{id}/share-group", { params: id, body: { group_id: "eng" } }));
const shared = must(await owner.POST("/api/v1/agents/snapshots/{id}/share-org", {
  params: id, body: { org_slug: "globex", expires_in: 3600 },
}));
equal(typeof shared.expires_at, "string", "the recorded end");
equal(must(await member.GET("/api/v1/agents/snapshots", { params: {} })).items?.length, 1, "the member's listing");

const pull = must(await recipient.POST("/api/v1/agents/snapshots/{id}/pull", { params: id }));
const got = await (await fetch(pull.url)).arrayBuffer();
equal(await sha256(got), pull.snapshot.sha256, "the pulled bytes");

const ended = must(await owner.POST("/api/v1/agents/snapshots/{id}/unshare", { params: id, body: { all: true } }));
equal(ended.changes?.length, 2, "ended shares");
const gone = await recipient.GET("/api/v1/agents/snapshots/{id}", { params: id });
equal(gone.error?.code, "not_found", "after the end");
console.log("done");
