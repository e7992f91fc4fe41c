/**
 * Chaos at byte offsets: exchanges of about 2 kB through a real sidecar, each broken once, at one byte of one direction of
 * one of its two connections. The fault hits a request's first attempt; what follows is the sidecar's.
 */
import { Agent, request } from 'undici';
import { DIRECTIONS, FAULTS, startChaosProxy } from '../support/chaos-proxy.ts';
import type { ChaosProxy, FaultPlan, FaultPlanner } from '../support/chaos-proxy.ts';
import { startSidecarStack } from '../support/chain.ts';
import { OutcomeChecker } from '../support/ledger.ts';
import type { OutcomeReport, ClientOutcome } from '../support/ledger.ts';
import type { RecordedRequest } from '../support/recording-upstream.ts';

const METHODS = ['GET', 'POST'] as const;
type Method = (typeof METHODS)[number];
/** Where the fault is: between client and sidecar, or between sidecar and upstream. */
const HOPS = ['client', 'upstream'] as const;
type Hop = (typeof HOPS)[number];

const DEADLINE_MS = 800;
const SILENCE_MS = 250;
/** An exchange has a deadline for its head, then for silence within its body; the rest is a busy machine's. */
const LONGEST_MS = DEADLINE_MS + SILENCE_MS;
const WITHIN_MS = LONGEST_MS + 10_000;
/** Of a client whose bytes do not arrive, which only it can end. */
const GIVES_UP_AFTER_MS = LONGEST_MS + 500;

const MOST_DRIPPING = 8;

const ENVIRONMENT = {
  SIDECAR_RATE: '100000',
  SIDECAR_BURST: '10000',
  SIDECAR_MAX_IN_FLIGHT: '256',
  SIDECAR_DEADLINE_MS: String(DEADLINE_MS),
  SIDECAR_REQUEST_TIMEOUT_MS: String(SILENCE_MS),
  SIDECAR_BODY_IDLE_TIMEOUT_MS: String(SILENCE_MS),
};

interface Case extends FaultPlan {
  readonly id: string;
  readonly hop: Hop;
  readonly method: Method;
}

export interface ChaosReport extends OutcomeReport {
  /** Bytes of the longest exchange on one connection, both directions together. */
  readonly exchangeBytes: number;
  /** Per place and kind of fault, how often each outcome came about. */
  readonly table: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** @param every takes each n-th offset only */
export async function runByteOffsets(every: number, concurrency: number): Promise<ChaosReport> {
  const ledger = new OutcomeChecker();
  const planned = new Map<string, Case>();
  await using proxies = {
    client: await startChaosProxy(plannerOf(planned, 'client')),
    upstream: await startChaosProxy(plannerOf(planned, 'upstream')),
    async [Symbol.asyncDispose]() {
      await this.client[Symbol.asyncDispose]();
      await this.upstream[Symbol.asyncDispose]();
    },
  };
  await using chain = await startSidecarStack({
    name: 'chaos',
    env: { ...ENVIRONMENT, SIDECAR_BASE_URL: proxies.upstream.url },
    respond: (seen, response) => {
      const id = idOf(seen);
      ledger.recordReceived(id, seen.bodySha256);
      const body = responseTo(id, seen.method);
      if (seen.method === 'POST') response.writeHead(200, { 'content-length': body.length }).end(body);
      else response.writeHead(200).write(body.slice(0, 900), () => response.end(body.slice(900)));
    },
  });
  proxies.upstream.target = chain.upstream.url;
  proxies.client.target = chain.sidecar.proxyUrl;
  const agent = new Agent({ pipelining: 0 });
  const send = (id: string, method: Method, mayGiveUp: boolean): Promise<string> =>
    sendOne(ledger, agent, proxies.client.url, { id, method, mayGiveUp });

  const lengths = await measure(proxies, send);
  const cases = allCases(lengths, every);
  const table: Record<string, Record<string, number>> = {};
  const run = async (each: Case): Promise<void> => {
    planned.set(each.id, each);
    const outcome = await send(each.id, each.method, each.hop === 'client' && each.fault === 'stall');
    const row = (table[`${each.hop} ${each.direction} ${each.fault}`] ??= {});
    row[outcome] = (row[outcome] ?? 0) + 1;
  };
  // A dripping connection keeps three processes busy with every byte: with many at a time, only time-outs would be seen.
  const [dripping, others] = [
    cases.filter(({ fault }) => fault === 'drip'),
    cases.filter(({ fault }) => fault !== 'drip'),
  ];
  await runAll(others, run, concurrency);
  await runAll(dripping, run, Math.min(concurrency, MOST_DRIPPING));
  await agent.destroy();
  const sums = [...lengths.values()].map(({ request: up, response: down }) => up + down);
  return { ...ledger.report(), exchangeBytes: Math.max(...sums), table };
}

async function runAll(cases: readonly Case[], run: (each: Case) => Promise<void>, concurrency: number): Promise<void> {
  const next = cases.values();
  const worker = async (): Promise<void> => {
    for (const each of next) await run(each);
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

function plannerOf(planned: Map<string, Case>, hop: Hop): FaultPlanner {
  return (head) => {
    const id = /^x-request-id: (\S+)/im.exec(head)?.[1] ?? '';
    const plan = planned.get(id);
    if (plan?.hop !== hop) return undefined;
    planned.delete(id);
    return plan;
  };
}

type Lengths = ReadonlyMap<string, ChaosProxy['lastExchangeBytes']>;

/** How long each exchange is on each connection, when nothing breaks it. */
async function measure(
  proxies: Readonly<Record<Hop, ChaosProxy>>,
  send: (id: string, method: Method, mayGiveUp: boolean) => Promise<string>,
): Promise<Lengths> {
  const lengths = new Map<string, ChaosProxy['lastExchangeBytes']>();
  for (const [index, method] of METHODS.entries()) {
    await send(`whole-${String(index)}`, method, false);
    for (const hop of HOPS) lengths.set(hop + method, proxies[hop].lastExchangeBytes);
  }
  return lengths;
}

/** The last offset is past the last byte: a fault that comes too late to matter. */
function allCases(lengths: Lengths, every: number): Case[] {
  const cases: Case[] = [];
  for (const hop of HOPS) {
    for (const method of METHODS) {
      for (const direction of DIRECTIONS) {
        const length = lengths.get(hop + method)?.[direction] ?? 0;
        for (let offset = 0; offset <= length; offset += every) {
          for (const fault of FAULTS)
            cases.push({ id: `case-${String(cases.length).padStart(6, '0')}`, hop, method, direction, offset, fault });
        }
      }
    }
  }
  return cases;
}

async function sendOne(
  ledger: OutcomeChecker,
  agent: Agent,
  url: string,
  { id, method, mayGiveUp }: { id: string; method: Method; mayGiveUp: boolean },
): Promise<string> {
  const sent = method === 'POST' ? JSON.stringify({ id, pad: 'p'.repeat(800) }) : '';
  ledger.recordSent(id, { method, sent, expected: responseTo(id, method), withinMs: WITHIN_MS, mayGiveUp });
  return ledger.recordOutcome(id, await outcomeOf(agent, url, { id, method, sent, mayGiveUp }));
}

async function outcomeOf(
  agent: Agent,
  url: string,
  { id, method, sent, mayGiveUp }: { id: string; method: Method; sent: string; mayGiveUp: boolean },
): Promise<ClientOutcome> {
  const signal = AbortSignal.timeout(mayGiveUp ? GIVES_UP_AFTER_MS : 2 * WITHIN_MS);
  try {
    const headers = { 'x-request-id': id, ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) };
    const body = method === 'POST' ? sent : null;
    const response = await request(`${url}/chaos`, { dispatcher: agent, method, headers, body, signal });
    return { kind: 'responded', status: response.statusCode, body: await response.body.text() };
  } catch {
    return { kind: signal.aborted ? 'gave-up' : 'cut' };
  }
}

function idOf({ headers }: RecordedRequest): string {
  return String(headers['x-request-id']);
}

function responseTo(id: string, method: string): string {
  return `${id} `.repeat(250).slice(0, method === 'POST' ? 850 : 1700);
}
