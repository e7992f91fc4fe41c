/** A script client over a real Redis in real time, with its events. It is closed at the end of the test. */
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { RedisScriptClient, type RedisScriptClientOptions } from '../../src/fleet/redis/script-client.ts';
import { openRedisConnection } from '../../src/fleet/redis/redis-connection.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';

export { waitUntil as until } from '../support/until.ts';

export interface OpenClientOptions extends Partial<RedisScriptClientOptions> {
  readonly url: string;
  readonly caFile?: string;
  /** Default: longer than a busy machine takes. */
  readonly connectTimeoutMs?: number;
}

export interface OpenedClient {
  readonly client: RedisScriptClient;
  readonly events: readonly SidecarEvent[];
  /** Events of the connection as text. */
  readonly connectionEvents: () => string[];
}

/** Starts to connect; a test that needs the connection waits for it. */
export function openClient({ url, caFile, connectTimeoutMs = 15_000, ...rest }: OpenClientOptions): OpenedClient {
  const events: SidecarEvent[] = [];
  const client = new RedisScriptClient({
    open: () => openRedisConnection({ url, caFile, timeoutMs: connectTimeoutMs, clock: systemClock }),
    timeoutMs: 5000,
    keyPrefix: 'bearer-sidecar',
    clock: systemClock,
    random: Math.random,
    observe: (event) => events.push(event),
    ...rest,
  });
  onTestFinished(() => client.close());
  client.start();
  const connectionEvents = (): string[] =>
    events.flatMap((event) =>
      event.kind === 'fleet-lost'
        ? [`lost: ${event.detail}`]
        : event.kind === 'fleet-degraded'
          ? [`degraded: ${event.detail}`]
          : event.kind === 'fleet-joined'
            ? ['joined']
            : [],
    );
  return { client, events, connectionEvents };
}
