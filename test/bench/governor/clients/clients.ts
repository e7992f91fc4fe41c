/** The clients by name. Peers are imported after the virtual globals are installed. */
import type { CreateClient } from '../client.ts';
import { withWorkerPool } from './worker-pool.ts';

export interface ClientEntry {
  readonly name: string;
  /** For tables and legends. */
  readonly title: string;
  /** How it is set up, for the report. */
  readonly note: string;
  readonly packages: readonly string[];
  /** The client gets the limit as a setting; it is not compared with clients that do not. */
  readonly hasKnownLimit: boolean;
  /** The client reads the global clock and timers. */
  readonly needsVirtualGlobals: boolean;
  load(): Promise<CreateClient>;
}

const WITH_RETRIES = 'up to 10 retries within the callers’ deadline';
const POOLED = 'behind 64 workers and a queue of 30 s';

export const CLIENTS: readonly ClientEntry[] = [
  {
    name: 'ours',
    title: 'bearer-sidecar',
    note: '`throttle.rate: auto` and the other defaults.',
    packages: [],
    hasKnownLimit: false,
    needsVirtualGlobals: false,
    load: async () => (await import('./ours.ts')).createOurs,
  },
  {
    name: 'full-jitter',
    title: 'full-jitter retry',
    note: `the retry of most applications; obeys Retry-After; ${WITH_RETRIES}; ${POOLED}.`,
    packages: [],
    hasKnownLimit: false,
    needsVirtualGlobals: false,
    load: async () => withWorkerPool((await import('./full-jitter.ts')).createFullJitter),
  },
  {
    name: 'aws-adaptive',
    title: 'AWS adaptive',
    note: `the client-side rate limiter of the AWS SDKs; ${WITH_RETRIES}; ${POOLED}.`,
    packages: ['@smithy/util-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./smithy.ts')).createAwsAdaptive),
  },
  {
    name: 'aws-standard',
    title: 'AWS standard',
    note: `the AWS SDKs' other mode; ${WITH_RETRIES}, fewer when its own retry budget is used up; ${POOLED}.`,
    packages: ['@smithy/util-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./smithy.ts')).createAwsStandard),
  },
  {
    name: 'p-retry',
    title: 'p-retry',
    note: `\`randomize\`, otherwise its defaults; ${WITH_RETRIES}; ${POOLED}.`,
    packages: ['p-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./p-throttle.ts')).createPRetry),
  },
  {
    name: 'undici-retry',
    title: 'undici RetryAgent',
    note: `its defaults, with POST; ${WITH_RETRIES}; ${POOLED}.`,
    packages: ['undici'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./undici-retry.ts')).createUndiciRetry),
  },
  {
    name: 'bottleneck-known-limit',
    title: 'bottleneck',
    note: 'knows the limit and uses 0.97 of it, evenly spaced; full-jitter retry in its `failed` hook; its queue holds 29 s.',
    packages: ['bottleneck'],
    hasKnownLimit: true,
    needsVirtualGlobals: true,
    load: async () => (await import('./bottleneck.ts')).createBottleneck,
  },
  {
    name: 'p-throttle-known-limit',
    title: 'p-throttle + p-retry',
    note: 'knows the limit and its window and uses 0.97 of it; its queue holds 29 s.',
    packages: ['p-throttle', 'p-retry'],
    hasKnownLimit: true,
    needsVirtualGlobals: true,
    load: async () => (await import('./p-throttle.ts')).createPThrottle,
  },
];

/** @throws Error that lists the names */
export function findClient(name: string): ClientEntry {
  const client = CLIENTS.find((entry) => entry.name === name);
  if (client === undefined)
    throw new Error(`no client "${name}"; there are ${CLIENTS.map((entry) => entry.name).join(', ')}`);
  return client;
}
