/**
 * A sidecar in this process in front of a witness, in which requests wait where the test wants them to: for the first token, in a full
 * queue, for a place to read a body, or for their replay. Each stage ends when the test releases it.
 */
import type { Socket } from 'node:net';
import { createLatch, giveToken, startInProcess } from '../composition/in-process.ts';
import type { InProcess } from '../composition/in-process.ts';
import { openSocket } from '../support/raw-client.ts';
import { waitUntil } from '../support/until.ts';
import { startVerifyingUpstream } from '../support/witness-upstream.ts';
import type { RefusalResponse, VerifyingUpstream, VerifiedAttempt } from '../support/witness-upstream.ts';
import { verificationHeaders } from '../support/witness-client.ts';

/** Where a request waits; those that start with `replay` wait for their second attempt. */
export const STAGES = [
  'none',
  'token',
  'permit',
  'queue',
  'body-place',
  'replay-401',
  'replay-429',
  'replay-reset',
] as const;
export type Stage = (typeof STAGES)[number];

const IN_FLIGHT = 2;

export interface Staged {
  readonly url: string;
  readonly sidecar: InProcess;
  readonly upstream: VerifyingUpstream;
  /** Makes the requests that come wait; returns what ends their wait. */
  enter(stage: Exclude<Stage, 'token'>): Promise<() => void>;
}

/** @param firstToken is waited for before any token is given */
export async function startStaged(firstToken?: Promise<void>): Promise<Staged> {
  let blocking: Promise<void> | undefined;
  const upstream = await startVerifyingUpstream({
    refuse,
    hold: ({ stated: { id } }) => (id.startsWith('block-') ? blocking : undefined),
  });
  const sidecar = await startInProcess({
    apiUrl: upstream.url,
    keepsEvents: false,
    respondToTokenRequest: async (request, response, index) => {
      await firstToken;
      await giveToken(request, response, index);
    },
    env: {
      SIDECAR_MAX_IN_FLIGHT: String(IN_FLIGHT),
      SIDECAR_AUTH_INVALIDATION_COOLDOWN_MS: '1',
    },
  });
  let blocks = 0;
  const open = async (requestBytes: number, sentBytes: number): Promise<Socket> => {
    const id = `block-${String(++blocks)}`;
    const socket = await openSocket(sidecar.url);
    socket.on('error', () => socket.destroy()).resume();
    const fields = Object.entries(verificationHeaders({ id, requestBytes: 0 })).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    const length = `Content-Length: ${String(requestBytes)}\r\n`;
    socket.write(`PUT /block HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields.join('')}${length}\r\n${'x'.repeat(sentBytes)}`);
    return socket;
  };
  /** @param waiting of which so many wait for a permit: each of them has a place to read its body */
  const fillQueue = async (waiting: number): Promise<() => void> => {
    const { opened, open: release } = createLatch();
    blocking = opened;
    const sockets = await Promise.all(Array.from({ length: IN_FLIGHT + waiting }, () => open(0, 0)));
    await waitUntil(async () => {
      const { queued, inFlight } = await sidecar.throttle();
      return queued === waiting && inFlight === IN_FLIGHT;
    }, 'all places in flight are taken');
    return () => {
      release();
      for (const socket of sockets) socket.destroy();
    };
  };
  const fillPlaces = async (): Promise<() => void> => {
    const sockets = await Promise.all(Array.from({ length: IN_FLIGHT }, () => open(10, 5)));
    await waitUntil(async () => (await sidecar.throttle()).queued === IN_FLIGHT, 'both places for bodies are taken');
    return () => sockets.forEach((socket) => socket.destroy());
  };
  const enter = (stage: Stage): Promise<() => void> => {
    if (stage === 'permit') return fillQueue(0);
    if (stage === 'queue') return fillQueue(IN_FLIGHT);
    return stage === 'body-place' ? fillPlaces() : Promise.resolve(() => undefined);
  };
  return {
    url: sidecar.url,
    sidecar,
    upstream,
    enter,
  };
}

/** The id of a request names its stage. */
function refuse({ stated: { id }, attempt }: VerifiedAttempt): RefusalResponse | 'reset' | undefined {
  const [, kind] = /replay-(\d+|reset)/.exec(id) ?? [];
  if (kind === undefined || attempt > 1) return undefined;
  return kind === 'reset' ? 'reset' : { status: Number(kind), headers: kind === '429' ? { 'retry-after': '0' } : {} };
}
