/**
 * An API that honours idempotency keys as real ones do (draft-ietf-httpapi-idempotency-key-header): the first call of a key is carried out
 * and its result kept; a second one gets that result, 409 while the first is under way, and 422 with another body. Its connections break
 * before a call is carried out, meanwhile, afterwards and within the response.
 */
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/platform/clock.ts';
import { closeServer, listenOnLoopback } from '../support/loopback.ts';

const FAULTS = ['before', 'meanwhile', 'afterwards', 'within the response'] as const;
export type Fault = (typeof FAULTS)[number];

export interface KeyedUpstreamOptions {
  /** The field of the key, in lower case. */
  readonly keyHeader: string;
  readonly random: Random;
  /** How many attempts have a fault, each kind alike: 0 to 1. */
  readonly faultShare: number;
  /** How long it takes to carry out a call, milliseconds. */
  readonly workMs: (random: Random) => number;
}

export interface KeyedUpstream extends AsyncDisposable {
  readonly url: string;
  /** How often each call was carried out, by the `id` in its body. */
  readonly executions: ReadonlyMap<string, number>;
  readonly counts: Readonly<Record<'attempts' | 'keyless' | 'conflicts' | 'replayed' | 'mismatched' | Fault, number>>;
}

interface KeptCall {
  readonly body: string;
  /** Undefined while the call is under way. */
  result: string | undefined;
}

export async function startKeyedUpstream(options: KeyedUpstreamOptions): Promise<KeyedUpstream> {
  const { keyHeader, random, faultShare, workMs } = options;
  const executions = new Map<string, number>();
  const kept = new Map<string, KeptCall>();
  const counts: Record<keyof KeyedUpstream['counts'], number> = {
    ...{ attempts: 0, keyless: 0, conflicts: 0, replayed: 0, mismatched: 0 },
    ...{ before: 0, meanwhile: 0, afterwards: 0, 'within the response': 0 },
  };

  const execute = async (body: string): Promise<string> => {
    await sleep(workMs(random));
    const { id } = JSON.parse(body) as { id: string };
    executions.set(id, (executions.get(id) ?? 0) + 1);
    return `done ${id}`;
  };

  const perform = async (key: string | undefined, body: string): Promise<readonly [status: number, text: string]> => {
    if (key === undefined) {
      counts.keyless++;
      return [200, await execute(body)];
    }
    const earlier = kept.get(key);
    if (earlier === undefined) {
      const call: KeptCall = { body, result: undefined };
      kept.set(key, call);
      return [200, (call.result = await execute(body))];
    }
    if (earlier.body !== body) {
      counts.mismatched++;
      return [422, 'another body with the same key'];
    }
    if (earlier.result === undefined) {
      counts.conflicts++;
      return [409, 'under way'];
    }
    counts.replayed++;
    return [200, earlier.result];
  };

  const server = createServer((request, response) => {
    const { socket } = request;
    const serve = async (): Promise<void> => {
      const body = (await buffer(request)).toString();
      counts.attempts++;
      const fault = random() < faultShare ? FAULTS[Math.floor(FAULTS.length * random())] : undefined;
      if (fault !== undefined) counts[fault]++;
      if (fault === 'before' || fault === 'meanwhile') socket.resetAndDestroy();
      if (fault === 'before') return;
      const [status, text] = await perform(request.headers[keyHeader] as string | undefined, body);
      if (fault === undefined) response.writeHead(status, { 'content-length': text.length }).end(text);
      else if (fault === 'afterwards') socket.resetAndDestroy();
      else if (fault === 'within the response') {
        response.writeHead(status, { 'content-length': text.length });
        response.write(text.slice(0, 3), () => socket.resetAndDestroy());
      }
    };
    serve().catch(() => socket.destroy());
  });
  const url = await listenOnLoopback(server);
  return { url, executions, counts, [Symbol.asyncDispose]: () => closeServer(server) };
}
