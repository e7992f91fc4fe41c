/** Joins this process to the fleet that is configured: where its Redis is, read anew for every connection, and what it is trusted by. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Clock, Random } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import { carriesPasswordInTheClear, redisUrlFault } from '../config/schema/formats/redis-url.ts';
import { Ear } from '../fleet/ear.ts';
import { createFleet } from '../fleet/fleet.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { RedisFault } from '../fleet/fault.ts';
import { openLink } from '../fleet/link.ts';
import { createQuotaBoard } from '../fleet/quota-board.ts';
import type { QuotaBoard } from '../fleet/quota-board.ts';
import { createTokenBoard } from '../fleet/token-board.ts';
import type { TokenBoard } from '../fleet/token-board.ts';
import type { Observe } from '../telemetry/events.ts';
import { readSecret } from '../token/client/secret-file.ts';

export interface FleetParts {
  readonly fleet: Fleet;
  readonly tokenBoard: TokenBoard;
  /** Tells this process from the other replicas. */
  readonly id: string;
  /** Where the replicas share the quota of one throttle. */
  quotaBoard(quota: SharedQuota): QuotaBoard;
}

/** Whose quota it is: whoever has all of this in common shares it. */
export interface SharedQuota {
  /** Origin of the upstream. */
  readonly upstream: string;
  /** The throttle's configured name. */
  readonly group: string;
  readonly clientId: Config['credentials'][number]['auth']['clientId'];
}

export interface Surroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: Observe;
}

/** For one connection, its first answer included: with the longest backoff still below five seconds. */
const CONNECT_TIMEOUT_MS = 2000;

/** What shares over Redis; undefined without one. It has not begun to connect. */
export function createFleetParts(config: Config['fleet'], surroundings: Surroundings): FleetParts | undefined {
  if (config === undefined) return undefined;
  const { timeoutMs, keyPrefix, caFile } = config;
  const { clock, observe } = surroundings;
  let hasWarned = false;
  const open = async () => {
    const url = await readUrl(config.redisUrl);
    if (!hasWarned && carriesPasswordInTheClear(url)) {
      hasWarned = true;
      const message =
        'the password of fleet.redisUrl crosses the network readable; use rediss: where others can listen';
      observe({ kind: 'warning', message });
    }
    return openLink({ url, caFile, timeoutMs: CONNECT_TIMEOUT_MS, clock });
  };
  const ear = new Ear({ ...surroundings, open });
  const followers: Follower[] = [];
  const heed: Observe = (event) => {
    observe(event);
    if (event.kind === 'fleet-joined') {
      ear.start();
      for (const follower of followers) follower.joined();
    } else if (event.kind === 'fleet-lost') for (const follower of followers) follower.lost();
  };
  const inner = createFleet({ ...surroundings, observe: heed, open, timeoutMs });
  const fleet = withEar(inner, ear);
  return {
    fleet,
    tokenBoard: createTokenBoard(fleet, keyPrefix),
    id: randomUUID(),
    quotaBoard(quota) {
      const key = nameQuota(keyPrefix, quota);
      return createQuotaBoard({ fleet, ear, key, follow: (follower) => void followers.push(follower) });
    },
  };
}

type Follower = Parameters<Parameters<typeof createQuotaBoard>[0]['follow']>[0];

/** Both connections end together. */
function withEar(fleet: Fleet, ear: Ear): Fleet {
  return {
    start: () => fleet.start(),
    run: (script, key, args) => fleet.run(script, key, args),
    runPatiently: (script, key, args) => fleet.runPatiently(script, key, args),
    whenReady: () => fleet.whenReady(),
    state: () => fleet.state(),
    close: async () => {
      ear.close();
      await fleet.close();
    },
  };
}

/**
 * The secret has no part in it: while it is being changed, replicas with the old one and with the new one share the quota all the same.
 * The client id is read once; undefined while it cannot be.
 */
function nameQuota(keyPrefix: string, { upstream, group, clientId }: SharedQuota): () => Promise<string | undefined> {
  let known: string | undefined;
  return async () => {
    if (known !== undefined) return known;
    const reading = await readSecret('auth.clientId', clientId);
    if (reading.kind === 'unreadable') return undefined;
    const parts = JSON.stringify([upstream, group, reading.value]);
    const name = createHmac('sha256', 'bearer-sidecar quota').update(parts).digest('base64url').slice(0, 22);
    known = `${keyPrefix}:quota:${name}`;
    return known;
  };
}

async function readUrl(source: NonNullable<Config['fleet']>['redisUrl']): Promise<string> {
  const reading = await readSecret('fleet.redisUrlFile', source);
  if (reading.kind === 'unreadable') throw new RedisFault(`is not known: ${reading.detail}`);
  if (redisUrlFault(reading.value) !== undefined)
    throw new RedisFault('is not known: fleet.redisUrlFile holds no URL of one');
  return reading.value;
}
