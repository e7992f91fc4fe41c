/**
 * One request of which each attempt does what a plan says, by a clock of the test: what its client gets, and what the upstream knows.
 */
import fc from 'fast-check';
import type { RouteContext } from '../../src/exchange/exchange.ts';
import { startProxy, type Proxy } from '../listener/proxy.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openSocket, readToEnd, type RawResponse } from '../support/raw-client.ts';
import { ScriptedUpstream, STEPS, type BegunAttempt, type Step } from './scripted-upstream.ts';

const ATTEMPTS = 3;
const DEADLINE_MS = 600_000;
const REQUEST_TIMEOUT_MS = 30_000;
/** Less than any wait of these requests. */
const CLOCK_STEP_MS = 40;

/** What happens when every attempt of the script has been made. In a wait no attempt is under way. */
const ENDS = ['success', 'time-out', 'deadline', 'drain', 'drain in a wait'] as const;

export interface Plan {
  readonly method: 'POST' | 'PATCH' | 'PUT';
  readonly steps: readonly Step[];
  readonly end: (typeof ENDS)[number];
  readonly isTokenReplaced: boolean;
  /** It has an Idempotency-Key, which `retry.trustIdempotencyKey` trusts. */
  readonly isTrusted: boolean;
}

export const plans: fc.Arbitrary<Plan> = fc
  .record({
    method: fc.constantFrom('POST', 'PATCH', 'PUT'),
    steps: fc.array(fc.constantFrom(...STEPS), { maxLength: 5 }),
    end: fc.constantFrom(...ENDS),
    isTokenReplaced: fc.boolean(),
    isTrusted: fc.boolean(),
  })
  // A replay does not wait, and neither does the first attempt.
  .filter(({ steps, end }) => end !== 'drain in a wait' || steps.at(-1)?.endsWith('401') === false);

export type Reply = number | string;

/** The rule: the status of a response of the upstream, or the code of a local reply. */
export function predict({ method, steps, end, isTokenReplaced, isTrusted }: Plan): Reply {
  const isRepeatable = method === 'PUT' || isTrusted;
  let last: Reply | undefined;
  let counted = 0;
  let hasReplayed = false;
  for (const step of steps) {
    const status = Number(/\d+/.exec(step)?.[0] ?? 0);
    if (step !== 'refused') last = status === 0 ? 'UPSTREAM_RESET' : status;
    if (status === 429) continue;
    counted++;
    if (status === 401) {
      if (hasReplayed || !isTokenReplaced) return status;
      hasReplayed = true;
    } else if ((step !== 'refused' && !isRepeatable) || counted >= ATTEMPTS) return last ?? 'UPSTREAM_UNREACHABLE';
  }
  if (end === 'success') return 200;
  return end === 'drain in a wait' ? (last ?? 'DRAINING') : 'UPSTREAM_TIMEOUT';
}

export function countEvents({ events }: Proxy, kind: string, outcome?: string): number {
  return events.filter(
    (event) => event.kind === kind && (!outcome || ('outcome' in event && event.outcome === outcome)),
  ).length;
}

function endAttempt(end: Plan['end'], proxy: Proxy, clock: ManualClock): Promise<void> | void {
  if (end === 'time-out') return clock.advance(REQUEST_TIMEOUT_MS);
  if (end === 'deadline') return clock.advance(DEADLINE_MS);
  if (end !== 'success') cutByDrain(proxy);
}

/** As composition/drain does. */
function cutByDrain({ throttle, server }: Proxy): void {
  throttle.shutDown();
  server.abortAll();
}

export interface Played {
  /** The status of a response of the upstream, or the code of a local reply; undefined when the client left. */
  readonly reply: Reply | undefined;
  /** The problem document of a local reply. */
  readonly problem: Readonly<Record<string, unknown>> | undefined;
  readonly proxy: Proxy;
  readonly begun: readonly BegunAttempt[];
}

/**
 * @param leaves whether the client leaves where the plan ends
 * @param unknownCalls records the call. Default: it is not recorded
 */
export async function play(plan: Plan, leaves = false, unknownCalls?: RouteContext['unknownCalls']): Promise<Played> {
  const { method, steps, end, isTokenReplaced, isTrusted } = plan;
  const clock = new ManualClock();
  await using upstream = await ScriptedUpstream.start(steps, end === 'success' && !leaves);
  const requestTimeoutMs = end === 'deadline' ? 2 * DEADLINE_MS : REQUEST_TIMEOUT_MS;
  const options = {
    clock,
    attempts: ATTEMPTS,
    deadlineMs: DEADLINE_MS,
    requestTimeoutMs,
    trustIdempotencyKey: isTrusted,
    unknownCalls,
  };
  await using proxy = await startProxy(upstream.url, options);
  proxy.tokens.isReplaced = isTokenReplaced;
  const reachesEnd = predict({ ...plan, end: 'success' }) === 200;
  const client = await openSocket(proxy.url);
  const key = isTrusted ? 'Idempotency-Key: "k"\r\n' : '';
  client.write(`${method} / HTTP/1.1\r\nHost: 127.0.0.1\r\n${key}Connection: close\r\nContent-Length: 4\r\n\r\nbody`);
  let response: RawResponse | undefined;
  void readToEnd(client).then((received) => (response = received));
  let refused = 0;
  while (response === undefined) {
    await new Promise(setImmediate);
    for (; refused < countEvents(proxy, 'attempt-ended', 'unreachable'); refused++) await upstream.advance();
    const isWaiting = countEvents(proxy, 'permit-granted') === countEvents(proxy, 'attempt-ended');
    const isAtEnd = isWaiting ? end === 'drain in a wait' && reachesEnd && upstream.isOver : upstream.hasLast;
    if (leaves && isAtEnd) client.destroy();
    else if (isAtEnd && isWaiting) {
      cutByDrain(proxy);
      // A response that breaks off ends its connection after a while.
      await clock.advance(CLOCK_STEP_MS);
    } else if (isAtEnd) await endAttempt(end, proxy, clock);
    else if (isWaiting) await clock.advance(CLOCK_STEP_MS);
  }
  await proxy.server.activeRequests.whenIdle();
  return { ...readReply(response), proxy, begun: upstream.begun };
}

function readReply({ status, headers, bytes, body }: RawResponse): Pick<Played, 'reply' | 'problem'> {
  if (bytes.length === 0) return { reply: undefined, problem: undefined };
  if (headers['proxy-status'] === undefined) return { reply: status, problem: undefined };
  const problem = JSON.parse(body.toString()) as Record<string, unknown> & { readonly code: string };
  return { reply: problem.code, problem };
}
