/**
 * Sends cases of the corpus to a proxy in front of the witness, one at a time, and says what reached the upstream. After
 * each a good request on a connection of its own must be served: it also proves that nothing of the case is still to come.
 */
import { converse, statusesOf } from './conversation.ts';
import type { Conversation } from './conversation.ts';
import { CLOSE, HOST } from './corpus/case.ts';
import type { Expectation, Forwarded, HostileCase } from './corpus/case.ts';
import { valuesOf } from './strict-request.ts';
import type { WitnessedRequest } from './strict-request.ts';
import type { Sighting, ByteWitness } from './byte-witness.ts';

export interface Outcome {
  readonly hostile: HostileCase;
  readonly conversation: Conversation;
  /** Without the good request that followed. */
  readonly sighting: Sighting;
  /** The good request that followed got a response of the upstream. */
  readonly isAlive: boolean;
}

const QUIET_MS = 25;
const FIRST_BYTE_MS = 3000;
/** How long a request may take that must arrive and was not refused. */
const ARRIVAL_MS = 10_000;
/** The same for the response to the good request that follows, which ends with its connection. */
const FENCE_QUIET_MS = 1000;

let fences = 0;

/** @param splitAt where the second packet begins, if there are to be two */
export async function send(
  url: string,
  witness: ByteWitness,
  hostile: HostileCase,
  splitAt?: number,
): Promise<Outcome> {
  witness.take();
  const before = witness.seen();
  // Forwarded and refused requests get a response; a client that closed its side before that would count as gone.
  const firstByteMs = hostile.expected.kind === 'either' ? undefined : FIRST_BYTE_MS;
  const terms = { sendsFin: hostile.sendsFin, quietMs: QUIET_MS, firstByteMs, splitAt };
  const conversation = await converse(url, Buffer.from(hostile.bytes, 'latin1'), terms);
  // What was refused does not arrive.
  if (statusesOf(conversation).some((status) => status < 400))
    await untilSeen(witness, before + expectedCount(hostile.expected));
  const target = `/fence/${String(++fences)}`;
  const isAlive = await isServed(url, target);
  const { requests, scraps } = witness.take();
  const others = requests.filter((request) => request.target !== target);
  return { hostile, conversation, sighting: { requests: others, scraps }, isAlive };
}

async function isServed(url: string, target: string): Promise<boolean> {
  const bytes = Buffer.from(`GET ${target} HTTP/1.1\r\n${HOST}${CLOSE}\r\n`);
  try {
    const response = await converse(url, bytes, { sendsFin: false, quietMs: FENCE_QUIET_MS });
    return statusesOf(response)[0] === 200;
  } catch {
    // The listener is closed.
    return false;
  }
}

function expectedCount(expected: Expectation): number {
  return expected.kind === 'forward' ? expected.requests.length : 0;
}

async function untilSeen(witness: ByteWitness, count: number): Promise<void> {
  const giveUpAt = performance.now() + ARRIVAL_MS;
  while (witness.seen() < count && performance.now() < giveUpAt) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** Whether anything of the case was seen at the upstream. */
export function reachedUpstream({ sighting }: Outcome): boolean {
  return sighting.requests.length + sighting.scraps.length > 0;
}

/** Whether the upstream saw these requests and bodies and nothing else; targets and fields may have been rewritten. */
export function arrivedAsMeant({ sighting }: Outcome, expected: readonly Forwarded[]): boolean {
  const { requests, scraps } = sighting;
  return (
    scraps.length === 0 &&
    requests.length === expected.length &&
    expected.every(({ method, body }, at) => requests[at]?.method === method && requests[at].body === body)
  );
}

/** Everything that is wrong about what the sidecar has made of a case; empty = nothing. */
export function faultsOf(outcome: Outcome): string[] {
  const { hostile, sighting, conversation, isAlive } = outcome;
  const { expected } = hostile;
  const seen = [...sighting.requests.map(({ method, target }) => `${method} ${target}`), ...sighting.scraps];
  const faults: string[] = [];
  if (!isAlive) faults.push('the next good request was not served');
  if (conversation.end === 'silent') faults.push('neither a response nor a close');
  switch (expected.kind) {
    case 'refuse':
      if (seen.length > 0) faults.push(`reached the upstream: ${seen.join(' | ')}`);
      if (statusesOf(conversation).some((status) => status < 400)) faults.push('was not refused');
      if (expected.status !== undefined && statusesOf(conversation)[0] !== expected.status)
        faults.push(`got ${statusesOf(conversation).join()}`);
      break;
    case 'forward':
      if (!arrivedAsMeant(outcome, expected.requests))
        faults.push(`the upstream saw: ${seen.join(' | ') || 'nothing'}`);
      expected.requests.forEach((meant, at) => faults.push(...differences(meant, sighting.requests[at])));
      break;
    case 'either':
      if (sighting.scraps.length > 0 || sighting.requests.length > 1)
        faults.push(`the upstream saw: ${seen.join(' | ')}`);
  }
  for (const request of sighting.requests) faults.push(...brokenPromises(request));
  return faults;
}

function differences(meant: Forwarded, request: WitnessedRequest | undefined): string[] {
  if (request === undefined) return [];
  const faults: string[] = [];
  if (request.target !== meant.target) faults.push(`target ${request.target}`);
  for (const name of meant.absent) if (valuesOf(request, name).length > 0) faults.push(`${name} was forwarded`);
  for (const [name, value] of Object.entries(meant.present))
    if (valuesOf(request, name).join() !== value) faults.push(`${name} is ${valuesOf(request, name).join()}`);
  return faults;
}

/** What holds for every request of the sidecar's: one bearer, its own; no trailers, nothing of a single connection. */
export function brokenPromises(request: WitnessedRequest): string[] {
  const faults: string[] = [];
  const bearers = valuesOf(request, 'authorization');
  if (bearers.length !== 1 || !bearers[0]?.startsWith('Bearer ')) faults.push(`${bearers.length} bearers`);
  if (request.trailers.length > 0) faults.push(`trailers: ${request.trailers.join()}`);
  if (request.target.includes('fence')) faults.push('a stray fence');
  for (const name of ['te', 'trailer', 'upgrade', 'proxy-connection', 'expect', 'http2-settings', 'origin'])
    if (valuesOf(request, name).length > 0) faults.push(`${name} was forwarded`);
  return faults;
}
