/** Joins this process to the fleet that is configured: where its Redis is, read anew for every connection, and what it is trusted by. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Clock, Random } from '../platform/clock.ts';
import type { Config } from '../config/config.ts';
import { hasUnencryptedPassword, redisUrlFault } from '../config/schema/formats/redis-url.ts';
import { Subscriber } from '../fleet/redis/subscriber.ts';
import { createRedisScriptClient } from '../fleet/redis/script-client.ts';
import type { RedisScriptClient } from '../fleet/redis/script-client.ts';
import { RedisFault } from '../fleet/redis/redis-fault.ts';
import { openRedisConnection } from '../fleet/redis/redis-connection.ts';
import { createRedisQuotaStore } from '../fleet/shared-quota/redis-quota-store.ts';
import type { RedisQuotaStore } from '../fleet/shared-quota/redis-quota-store.ts';
import { createRedisTokenStore } from '../fleet/shared-token/redis-token-store.ts';
import type { EventObserver } from '../telemetry/events.ts';
import { readSecret } from '../token/client/secret-file.ts';
import type { SharedTokenStore } from '../token/store/shared-token-store.ts';

export interface FleetParts {
  readonly client: RedisScriptClient;
  readonly tokenStore: SharedTokenStore;
  /** Tells this process from the other replicas. */
  readonly replicaId: string;
  /** Where the replicas share the quota of one throttle. */
  createQuotaStore(quota: QuotaIdentity): RedisQuotaStore;
}

/** Whose quota it is: whoever has all of this in common shares it. */
export interface QuotaIdentity {
  /** Origin of the upstream. */
  readonly upstreamOrigin: string;
  /** The throttle's configured name. */
  readonly group: string;
  readonly clientId: Config['credentials'][number]['auth']['clientId'];
}

export interface FleetDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly observe: EventObserver;
}

/** For one connection, its first answer included: with the longest backoff still below five seconds. */
const CONNECT_TIMEOUT_MS = 2000;

/** What shares over Redis; undefined without one. It has not begun to connect. */
export function createFleetParts(config: Config['fleet'], surroundings: FleetDependencies): FleetParts | undefined {
  if (config === undefined) return undefined;
  const { timeoutMs, keyPrefix, caFile } = config;
  const { clock, observe } = surroundings;
  let hasWarned = false;
  const open = async () => {
    const url = await readRedisUrl(config.redisUrl);
    if (!hasWarned && hasUnencryptedPassword(url)) {
      hasWarned = true;
      const message = 'the password of fleet.redisUrl is sent unencrypted; use rediss: on a shared network';
      observe({ kind: 'warning', message });
    }
    return openRedisConnection({ url, caFile, timeoutMs: CONNECT_TIMEOUT_MS, clock });
  };
  const ear = new Subscriber({ ...surroundings, open });
  const followers: ConnectionListener[] = [];
  const heed: EventObserver = (event) => {
    observe(event);
    if (event.kind === 'fleet-joined') {
      ear.start();
      for (const follower of followers) follower.onConnected();
    } else if (event.kind === 'fleet-lost') for (const follower of followers) follower.onDisconnected();
  };
  const inner = createRedisScriptClient({ ...surroundings, observe: heed, open, timeoutMs });
  const fleet = withSubscriber(inner, ear);
  return {
    client: fleet,
    tokenStore: createRedisTokenStore(fleet, keyPrefix),
    replicaId: randomUUID(),
    createQuotaStore(quota) {
      const key = createQuotaKeyReader(keyPrefix, quota);
      return createRedisQuotaStore({
        client: fleet,
        subscriber: ear,
        key,
        addConnectionListener: (follower) => void followers.push(follower),
      });
    },
  };
}

type ConnectionListener = Parameters<Parameters<typeof createRedisQuotaStore>[0]['addConnectionListener']>[0];

/** Both connections end together. */
function withSubscriber(fleet: RedisScriptClient, ear: Subscriber): RedisScriptClient {
  return {
    start: () => fleet.start(),
    run: (script, key, args) => fleet.run(script, key, args),
    runWithLongerTimeout: (script, key, args) => fleet.runWithLongerTimeout(script, key, args),
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
function createQuotaKeyReader(
  keyPrefix: string,
  { upstreamOrigin, group, clientId }: QuotaIdentity,
): () => Promise<string | undefined> {
  let known: string | undefined;
  return async () => {
    if (known !== undefined) return known;
    const reading = await readSecret('auth.clientId', clientId);
    if (reading.kind === 'unreadable') return undefined;
    const parts = JSON.stringify([upstreamOrigin, group, reading.value]);
    const name = createHmac('sha256', 'bearer-sidecar quota').update(parts).digest('base64url').slice(0, 22);
    known = `${keyPrefix}:quota:${name}`;
    return known;
  };
}

async function readRedisUrl(source: NonNullable<Config['fleet']>['redisUrl']): Promise<string> {
  const reading = await readSecret('fleet.redisUrlFile', source);
  if (reading.kind === 'unreadable') throw new RedisFault(`is not known: ${reading.detail}`);
  if (redisUrlFault(reading.value) !== undefined)
    throw new RedisFault('is not known: fleet.redisUrlFile holds no URL of one');
  return reading.value;
}
