/** The clients by name. Peers are loaded when they are asked for, after the virtual globals are in place. */
import type { CreateClient } from '../client.ts';
import { withWorkerPool } from './worker-pool.ts';

export interface ClientEntry {
  readonly name: string;
  /** For tables and legends. */
  readonly title: string;
  /** How it is set up, for the report. */
  readonly note: string;
  readonly packages: readonly string[];
  /** It was told the limit, and is not to be compared with those that were not. */
  readonly hasKnownLimit: boolean;
  /** It knows no other time than the process's. */
  readonly needsVirtualGlobals: boolean;
  load(): Promise<CreateClient>;
}

const RETRIED = 'up to 10 retries within the callers’ patience';
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
    note: `what most applications have; obeys Retry-After; ${RETRIED}; ${POOLED}.`,
    packages: [],
    hasKnownLimit: false,
    needsVirtualGlobals: false,
    load: async () => withWorkerPool((await import('./full-jitter.ts')).createFullJitter),
  },
  {
    name: 'aws-adaptive',
    title: 'AWS adaptive',
    note: `the client-side rate limiter of the AWS SDKs; ${RETRIED}; ${POOLED}.`,
    packages: ['@smithy/util-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./smithy.ts')).createAwsAdaptive),
  },
  {
    name: 'aws-standard',
    title: 'AWS standard',
    note: `the AWS SDKs' other mode; ${RETRIED}, less when its own budget of retries is used up; ${POOLED}.`,
    packages: ['@smithy/util-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./smithy.ts')).createAwsStandard),
  },
  {
    name: 'p-retry',
    title: 'p-retry',
    note: `\`randomize\`, otherwise its defaults; ${RETRIED}; ${POOLED}.`,
    packages: ['p-retry'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./p-throttle.ts')).createPRetry),
  },
  {
    name: 'undici-retry',
    title: 'undici RetryAgent',
    note: `its defaults, with POST; ${RETRIED}; ${POOLED}.`,
    packages: ['undici'],
    hasKnownLimit: false,
    needsVirtualGlobals: true,
    load: async () => withWorkerPool((await import('./undici-retry.ts')).createUndiciRetry),
  },
  {
    name: 'bottleneck-told',
    title: 'bottleneck',
    note: 'told 0.97 of the limit, spaced evenly; full-jitter retry in its `failed` hook; its queue holds 29 s.',
    packages: ['bottleneck'],
    hasKnownLimit: true,
    needsVirtualGlobals: true,
    load: async () => (await import('./bottleneck.ts')).createBottleneck,
  },
  {
    name: 'p-throttle-told',
    title: 'p-throttle + p-retry',
    note: 'told 0.97 of the limit and its window; its queue holds 29 s.',
    packages: ['p-throttle', 'p-retry'],
    hasKnownLimit: true,
    needsVirtualGlobals: true,
    load: async () => (await import('./p-throttle.ts')).createPThrottle,
  },
];

/** @throws Error that names those there are */
export function findClient(name: string): ClientEntry {
  const client = CLIENTS.find((entry) => entry.name === name);
  if (client === undefined)
    throw new Error(`no client "${name}"; there are ${CLIENTS.map((entry) => entry.name).join(', ')}`);
  return client;
}
