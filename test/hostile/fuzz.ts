/**
 * Sends mutated requests to the sidecar, many at a time, in rounds. After each round the sidecar's own count of attempts
 * must be what the witness saw, to the request (with streamed bodies: at least that); a violated claim throws and names the round's seed, which repeats it.
 * The body of a mutated request is not known in advance: beside them go whole requests that state their bodies (witness.ts).
 */
import fc from 'fast-check';
import { converse, statusesOf } from './conversation.ts';
import { brokenPromises } from './case-run.ts';
import { mutatedRequest } from './mutation.ts';
import type { WitnessedSidecar } from './sidecar-before-witness.ts';
import { valuesOf } from './strict-request.ts';
import type { WitnessedRequest } from './strict-request.ts';
import {
  DIGEST_HEADER,
  contentOf,
  findAlteration,
  formatStatedBody,
  parseStatedBody,
  stateBody,
} from '../support/witness.ts';

export interface FuzzOptions {
  readonly count: number;
  readonly seed: number;
  /** Bodies are streamed, so that those that break have begun to arrive: cut off then, never made whole. Default false. */
  readonly streams?: boolean;
}

export interface FuzzReport {
  readonly sent: number;
  /** Final responses by status. */
  readonly responses: Readonly<Record<string, number>>;
  /** Connections that were closed without a response. */
  readonly closedOnly: number;
  /** Requests at the upstream, and by the sidecar's own metrics. */
  readonly seen: number;
  readonly attempts: number;
  /** Bodies that were stated, arrived, and are what was sent. */
  readonly compared: number;
}

const ROUND = 1000;
const PARALLEL = 48;
const QUIET_MS = 40;
/** One stated request after so many mutated ones. */
const STATED_EVERY = 20;
const STATED_BYTES = 3001;
/** A client that closes its side before the response has left. */
const STATED_TIMEOUT_MS = 20_000;

/** @throws Error when a claim does not hold */
export async function fuzz(
  running: WitnessedSidecar,
  { count, seed, streams = false }: FuzzOptions,
): Promise<FuzzReport> {
  const responses: Record<string, number> = {};
  let closedOnly = 0;
  let compared = 0;
  for (let sent = 0; sent < count; sent += ROUND) {
    const roundSeed = seed + sent / ROUND;
    const requests = fc.sample(mutatedRequest, { seed: roundSeed, numRuns: Math.min(ROUND, count - sent) });
    for (const statuses of await sendAll(running.sidecar.proxyUrl, requests)) {
      if (statuses.length === 0) closedOnly++;
      for (const status of statuses) responses[status] = (responses[status] ?? 0) + 1;
    }
    const { faults, compared: inRound } = await checkRound(running, streams);
    compared += inRound;
    if (faults.length > 0) throw new Error(`round with seed ${roundSeed}: ${faults.join('; ')}`);
  }
  const attempts = await attemptsOf(running);
  return { sent: count, responses, closedOnly, seen: running.witness.seen(), attempts, compared };
}

/** The statuses that each connection brought. */
async function sendAll(url: string, requests: readonly Buffer[]): Promise<number[][]> {
  const statuses: number[][] = [];
  const waiting = requests.entries();
  const work = async (): Promise<void> => {
    for (const [index, bytes] of waiting) {
      if (index % STATED_EVERY === 0) await sendStated(url, index);
      const conversation = await converse(url, bytes, { sendsFin: false, quietMs: QUIET_MS });
      if (conversation.end === 'silent')
        throw new Error(`neither a response nor a close: ${JSON.stringify(bytes.toString('latin1'))}`);
      statuses.push(statusesOf(conversation));
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  return statuses;
}

/** In two packets, the second of which begins within the body. */
async function sendStated(url: string, index: number): Promise<void> {
  const id = `stated-${index}`;
  const body = contentOf(id, STATED_BYTES);
  const stated = `${DIGEST_HEADER}: ${formatStatedBody(stateBody(id, body))}`;
  const head = `POST /stated HTTP/1.1\r\nHost: localhost\r\n${stated}\r\nContent-Length: ${STATED_BYTES}\r\n\r\n`;
  const bytes = Buffer.concat([Buffer.from(head, 'latin1'), body]);
  const splitAt = head.length + 1 + (index % STATED_BYTES);
  const conversation = await converse(url, bytes, {
    sendsFin: false,
    quietMs: QUIET_MS,
    firstByteMs: STATED_TIMEOUT_MS,
    splitAt,
  });
  if (statusesOf(conversation).join() !== '200') throw new Error(`${id}: ${JSON.stringify(conversation)}`);
}

/** What is wrong with the body of a request that states it. */
function alterationOf(request: WitnessedRequest): string | undefined {
  const [value] = valuesOf(request, DIGEST_HEADER);
  const stated = parseStatedBody(value);
  return stated && findAlteration(stated, stateBody(stated.id, Buffer.from(request.body, 'latin1')));
}

interface Checked {
  readonly faults: readonly string[];
  /** Stated bodies among the requests. */
  readonly compared: number;
}

async function checkRound(running: WitnessedSidecar, streams: boolean): Promise<Checked> {
  const { sidecar, witness } = running;
  const attempts = await attemptsOf(running);
  const { requests, scraps } = witness.take();
  const wrong = scraps.filter((scrap) => !streams || !/^(?:broken off|not whole): /.test(scrap));
  const faults = requests.flatMap(brokenPromises);
  faults.push(...requests.map(alterationOf).filter((alteration) => alteration !== undefined));
  if (wrong.length > 0) faults.push(`no whole requests: ${wrong.join(' | ')}`);
  if (streams ? attempts < witness.seen() : attempts !== witness.seen())
    faults.push(`${attempts} attempts recorded, ${witness.seen()} seen`);
  if (sidecar.stderr() !== '') faults.push(`stderr: ${sidecar.stderr()}`);
  const complaint = /^.*"level":(?:"(?:warn|error|fatal)"|[456]0).*$/m.exec(sidecar.stdout());
  if (complaint !== null) faults.push(`log: ${complaint[0]}`);
  const compared = requests.filter((request) => valuesOf(request, DIGEST_HEADER).length > 0).length;
  return { faults, compared };
}

/** All attempts so far, once none is under way. */
async function attemptsOf({ sidecar }: WitnessedSidecar): Promise<number> {
  for (;;) {
    const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
    const sum = (name: string): number =>
      [...text.matchAll(new RegExp(`^bearer_sidecar_${name}\\{[^}]*\\} (\\d+)$`, 'gm'))]
        .map(([, value]) => Number(value))
        .reduce((all, value) => all + value, 0);
    if (sum('in_flight') + sum('queue_depth') === 0) return sum('upstream_attempts_total');
  }
}
