/** Connects this process to its fleet's Redis: the script client, the subscriber, and the stores that share them. */
import { createHmac, randomUUID } from 'node:crypto';
import type { Config } from '../config/config.ts';
import { hasUnencryptedPassword, redisPassword, redisUrlFault } from '../config/schema/formats/redis-url.ts';
import { Subscriber } from '../fleet/redis/subscriber.ts';
import { RedisScriptClient } from '../fleet/redis/script-client.ts';
import { RedisFault } from '../fleet/redis/redis-fault.ts';
import { openRedisConnection, type RedisConnection } from '../fleet/redis/redis-connection.ts';
import { createRedisQuotaStore } from '../fleet/shared-quota/redis-quota-store.ts';
import { FleetMember } from '../fleet/shared-quota/fleet-member.ts';
import { createRedisTokenStore } from '../fleet/shared-token/redis-token-store.ts';
import type { EventObserver } from '../telemetry/events.ts';
import type { FleetMembership } from '../throttle/fleet-membership.ts';
import type { RateSettings } from '../throttle/throttle.ts';
import { readSecret, type SecretSource } from '../token/client/secret-file.ts';
import type { SidecarContext } from './context.ts';

export type FleetParts = NonNullable<ReturnType<typeof createFleetParts>>;

/** Replicas that have all of this in common share a quota. */
export interface QuotaIdentity {
  readonly upstreamOrigin: string;
  readonly group: string;
  readonly client: SecretSource;
}

/** Per connection, up to its first reply; together with the longest backoff below five seconds. */
const CONNECT_TIMEOUT_MS = 2000;

/** Undefined when no fleet is configured. `client.start()` connects. */
export function createFleetParts(fleet: Config['fleet'], context: SidecarContext) {
  if (fleet === undefined) return undefined;
  const { keyPrefix } = fleet;
  const open = createConnector(fleet, context);
  const subscriber = new Subscriber({ ...context, open });
  const listeners: ConnectionListener[] = [];
  const observe: EventObserver = (event) => {
    context.observe(event);
    if (event.kind === 'fleet-joined') {
      subscriber.start();
      for (const listener of listeners) listener.onConnected();
    } else if (event.kind === 'fleet-lost' || event.kind === 'fleet-degraded')
      for (const listener of listeners) listener.onDisconnected();
  };
  const client = new RedisScriptClient({ ...context, ...fleet, observe, open });
  const replicaId = randomUUID();
  return {
    client,
    tokenStore: createRedisTokenStore(client, keyPrefix),
    /** Makes this process a member of the replicas that share one quota. */
    joinQuota(quota: QuotaIdentity, settings: RateSettings): FleetMembership {
      const key = createQuotaKeyReader(keyPrefix, quota);
      const addConnectionListener = (listener: ConnectionListener) => void listeners.push(listener);
      const store = createRedisQuotaStore(client, subscriber, key, addConnectionListener);
      return new FleetMember({ store, id: replicaId, settings, clock: context.clock });
    },
    /** Waits for the scripts in flight, then closes both connections. */
    async close(): Promise<void> {
      subscriber.close();
      await client.close();
    },
  };
}

type ConnectionListener = Parameters<Parameters<typeof createRedisQuotaStore>[3]>[0];

/** Reads the URL for every connection, so that a new password takes effect without a restart. */
function createConnector(
  { redisUrl, caFile }: NonNullable<Config['fleet']>,
  { secrets, clock, observe }: SidecarContext,
): () => Promise<RedisConnection> {
  let hasWarned = false;
  return async () => {
    const url = await readRedisUrl(redisUrl);
    secrets.add(redisPassword(url) ?? '', 'fleet.redisUrl');
    if (!hasWarned && hasUnencryptedPassword(url)) {
      hasWarned = true;
      const message = 'the password of fleet.redisUrl is sent unencrypted; use rediss: on a shared network';
      observe({ kind: 'warning', message });
    }
    return openRedisConnection({ url, caFile, timeoutMs: CONNECT_TIMEOUT_MS, clock });
  };
}

/**
 * The key does not depend on the client secret: during a rotation, replicas with the old and with the new one share the quota.
 * The client id is read once; undefined while it cannot be read.
 */
function createQuotaKeyReader(
  keyPrefix: string,
  { upstreamOrigin, group, client }: QuotaIdentity,
): () => Promise<string | undefined> {
  let key: string | undefined;
  return async () => {
    if (key !== undefined) return key;
    const reading = await readSecret('auth.clientId', client);
    if (reading.kind === 'unreadable') return undefined;
    const parts = JSON.stringify([upstreamOrigin, group, reading.value]);
    const name = createHmac('sha256', 'bearer-sidecar quota').update(parts).digest('base64url').slice(0, 22);
    key = `${keyPrefix}:quota:${name}`;
    return key;
  };
}

async function readRedisUrl(source: NonNullable<Config['fleet']>['redisUrl']): Promise<string> {
  const reading = await readSecret('fleet.redisUrlFile', source);
  if (reading.kind === 'unreadable') throw new RedisFault(`has no known address: ${reading.detail}`);
  if (redisUrlFault(reading.value) !== undefined)
    throw new RedisFault('has no known address: fleet.redisUrlFile holds no Redis URL');
  return reading.value;
}
