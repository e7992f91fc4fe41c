/**
 * Many bodies in pieces through the sidecar as a child process, while requests have to wait: for a slow first token, for one of two
 * places in flight, and for their replay after a 401 or a 429. Both ends compare every byte.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import { seeded } from '../throttle/simulation.ts';
import { freePort } from '../support/loopback.ts';
import { MAIN } from '../support/main-file.ts';
import { waitUntilAccepted } from '../support/raw-client.ts';
import { headerOf } from '../support/raw-response.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { findResponseAlteration } from '../support/witness-client.ts';
import { startVerifyingUpstream } from '../support/witness-upstream.ts';
import type { RefusalResponse, VerifiedAttempt } from '../support/witness-upstream.ts';
import { IncrementalDigest, DIGEST_HEADER } from '../support/witness.ts';
import { PacketClient, encodeRequest } from './packets.ts';
import type { SentRequest } from './packets.ts';

export interface BodiesOptions {
  readonly count: number;
  readonly seed: number;
  /** The program that runs the sidecar. */
  readonly node: string;
  /** Names the copy of the sidecar's output. */
  readonly name: string;
}

export interface BodiesReport {
  readonly bodies: number;
  /** What passed for complete and is not what was sent, on either side. */
  readonly altered: readonly string[];
  /** Messages that ended before they were complete, noticeably for the receiver, on either side. */
  readonly brokenOff: number;
  /** How many responses had each status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Bodies that were sent to the upstream again. */
  readonly replayed: number;
  /** Bytes of all bodies that reached the upstream whole. */
  readonly bytes: number;
  readonly seconds: number;
}

const CLIENTS = 150;
const LARGEST_BYTES = 3_000_000;
const LARGEST_REPLY_BYTES = 65_536;
const MOST_PIECES = 6;
const FIRST_TOKEN_MS = 1000;
const NEXT_TOKEN_MS = 30;
const ROOT = join(import.meta.dirname, '..', '..');

const ENVIRONMENT = {
  SIDECAR_MAX_IN_FLIGHT: '2',
  SIDECAR_RATE: '100000',
  SIDECAR_BURST: '10000',
  SIDECAR_QUEUE_TIMEOUT_MS: '120000',
  SIDECAR_DEADLINE_MS: '120000',
  SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS: '1',
  SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
  // Lines of all these requests would be kept by the test.
  SIDECAR_LOG_LEVEL: 'error',
};

export async function runBodies({ count, seed, node, name }: BodiesOptions): Promise<BodiesReport> {
  await using upstream = await startVerifyingUpstream({ refuse: refusals() });
  const { promise: held, resolve: giveFirstToken } = Promise.withResolvers<undefined>();
  await using tokens = await startTokenServer({ delayMs: NEXT_TOKEN_MS, waitsFor: held });
  const address = `127.0.0.1:${String(await freePort())}`;
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), ...ENVIRONMENT, SIDECAR_LISTEN: address };
  await using sidecar = spawnSidecar({ name, env, program: [node, join(ROOT, MAIN)] });
  const url = `http://${address}`;
  await Promise.race([waitUntilAccepted(url), sidecar.exit.then(({ code }) => failedStart(code, sidecar.stderr()))]);
  setTimeout(giveFirstToken, FIRST_TOKEN_MS, undefined);
  const startedAt = performance.now();
  const altered: string[] = [];
  const statuses: Record<string, number> = {};
  let next = 0;
  let cut = 0;
  const client = async (): Promise<void> => {
    let connection: PacketClient | undefined;
    while (next < count) {
      const index = next++;
      const random = seeded(seed * 1_000_003 + index);
      connection ??= await PacketClient.connect(url);
      const { status, alteration, isReusable } = await exchange(connection, planRequest(index, random), random);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (alteration !== undefined) altered.push(alteration);
      if (status === 'cut') cut++;
      if (isReusable) continue;
      connection[Symbol.dispose]();
      connection = undefined;
    }
    connection?.[Symbol.dispose]();
  };
  await Promise.all(Array.from({ length: Math.min(CLIENTS, count) }, client));
  const { stats } = upstream;
  return {
    bodies: count,
    altered: [...altered, ...stats.altered],
    brokenOff: cut + stats.brokenOff.length,
    statuses,
    replayed: stats.replayed,
    bytes: stats.wholeBytes,
    seconds: (performance.now() - startedAt) / 1000,
  };
}

function failedStart(code: number | null, stderr: string): never {
  throw new Error(`the sidecar ended with ${String(code)}: ${stderr}`);
}

/** As one line. */
export function describeBodies({
  bodies,
  altered,
  brokenOff,
  statuses,
  replayed,
  bytes,
  seconds,
}: BodiesReport): string {
  const all = Object.entries(statuses).map(([status, times]) => `${status} × ${String(times)}`);
  return (
    `bodies ${String(bodies)}, altered ${String(altered.length)}, broken off ${String(brokenOff)}, statuses ${all.join(' ')}, ` +
    `replayed ${String(replayed)}, ${(bytes / 1e6).toFixed(0)} MB in ${seconds.toFixed(0)} s`
  );
}

/** One call in so many revokes its access token, and one is refused for its rate. */
function refusals(): (attempt: VerifiedAttempt) => RefusalResponse | undefined {
  const revoked = new Set<string>();
  return ({ stated: { id }, token, attempt }) => {
    const lot = attempt === 1 ? crc32(id) % 100 : -1;
    if (lot === 0) revoked.add(token);
    if (revoked.has(token)) return { status: 401 };
    return lot === 1 ? { status: 429, headers: { 'retry-after': '0' } } : undefined;
  };
}

function planRequest(index: number, random: () => number): SentRequest {
  const chunks = { chunkSizes: [logUniform(100_000, random), logUniform(100_000, random)] };
  return {
    id: `body-${String(index)}`,
    method: random() < 0.5 ? 'POST' : 'PUT',
    requestBytes: logUniform(LARGEST_BYTES, random),
    responseBytes: logUniform(LARGEST_REPLY_BYTES, random),
    responseFraming: random() < 0.5 ? 'length' : 'chunked',
    ...(random() < 0.25 ? chunks : {}),
  };
}

interface Exchanged {
  readonly status: string;
  readonly alteration: string | undefined;
  readonly isReusable: boolean;
}

async function exchange(client: PacketClient, sent: SentRequest, random: () => number): Promise<Exchanged> {
  const index = client.reader.responses.length;
  client.reader.expect(sent.method);
  const { head, body } = encodeRequest(sent);
  await writeInPieces(client, Buffer.concat([head, body]), index, random);
  const isWhole = client.reader.responses.length === index;
  const response = await client.response(index);
  if (response === undefined) return { status: 'cut', alteration: undefined, isReusable: false };
  const isReusable = isWhole && headerOf(response, 'connection') !== 'close';
  const received = new IncrementalDigest().add(response.body);
  const alteration =
    response.status === 200 ? findResponseAlteration(sent, headerOf(response, DIGEST_HEADER), received) : undefined;
  // Kept responses of thousands of calls would be the test's memory, not the sidecar's.
  client.reader.responses.length = 0;
  return { status: String(response.status), alteration, isReusable };
}

async function writeInPieces(client: PacketClient, bytes: Buffer, index: number, random: () => number): Promise<void> {
  const cuts = Array.from({ length: Math.floor(random() * MOST_PIECES) }, () => Math.floor(random() * bytes.length));
  const ends = [...cuts.sort((a, b) => a - b), bytes.length];
  let at = 0;
  for (const end of ends) {
    // The response came before its end: the rest is not read.
    if (client.isClosed || client.reader.responses.length > index) return;
    await client.write(bytes.subarray(at, end));
    at = end;
    if (end < bytes.length) await pause(random);
  }
}

function pause(random: () => number): Promise<unknown> {
  return random() < 0.5 ? new Promise(setImmediate) : sleep(random() * 4);
}

/** From 1 to `largest`, as many below its square root as above. */
function logUniform(largest: number, random: () => number): number {
  return Math.ceil(largest ** random());
}
