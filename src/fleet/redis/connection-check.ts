/**
 * Tries a new connection before it is used: scripts run, and for all keys. A server in cluster mode would run them for a part of
 * the keys only. script-client.ts measures the replies.
 */
import { createClusterFault, RedisFault } from './redis-fault.ts';
import type { RedisConnection } from './redis-connection.ts';
import { defineScript, runScript } from './script.ts';
import type { Clock } from '../../platform/clock.ts';

/** Changes nothing. */
export const CHECK_SCRIPT = defineScript('return {}');

/** So many keys lie with practical certainty on more than one node of a cluster. */
const CHECK_KEYS = 12;

export function checkKey(keyPrefix: string, index = 0): string {
  return `${keyPrefix}:check:${index}`;
}

/** On keys of all nodes, by source and by hash. @throws RedisFault that names the command which is missing or forbidden */
export async function checkScripts(connection: RedisConnection, keyPrefix: string): Promise<void> {
  const { source, sha1 } = CHECK_SCRIPT;
  const keys = Array.from({ length: CHECK_KEYS }, (_, index) => checkKey(keyPrefix, index));
  const runs = [
    ...keys.map((key) => connection.send(['EVAL', source, '1', key])),
    connection.send(['EVALSHA', sha1, '1', checkKey(keyPrefix)]).catch((error: unknown) => {
      // Behind a proxy the hash may be known to other servers only.
      if (!(error instanceof RedisFault && error.replyCode === 'NOSCRIPT')) throw error;
    }),
  ];
  const results = await Promise.allSettled(runs);
  const faults = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as RedisFault] : []));
  const fault = faults.find(({ isLasting }) => isLasting) ?? faults[0];
  if (fault !== undefined) throw fault;
}

/** Undefined also when the server does not permit INFO. @throws RedisFault when the connection ended */
export async function findModeFault(connection: RedisConnection): Promise<RedisFault | undefined> {
  const reply = await connection.send(['INFO', 'server']).catch((error: unknown) => {
    if (error instanceof RedisFault && error.replyCode !== undefined) return '';
    throw error;
  });
  const mode = typeof reply === 'string' ? /^(?:redis|server)_mode:(\w+)/m.exec(reply)?.[1] : undefined;
  if (mode === 'cluster') return createClusterFault();
  if (mode === 'sentinel')
    return new RedisFault('is a Sentinel, which holds no keys: name the server itself in fleet.redisUrl', {
      isLasting: true,
    });
  return undefined;
}

const MEASURED_RUNS = 5;

/** The median time until the reply to a script, milliseconds. @throws RedisFault */
export async function measureLatency(
  connection: RedisConnection,
  keyPrefix: string,
  clock: Pick<Clock, 'now'>,
): Promise<number> {
  const latencies: number[] = [];
  // The first run may also send the source, and is not measured.
  for (let run = 0; run <= MEASURED_RUNS; run++) {
    const sentAt = clock.now();
    await runScript(connection, CHECK_SCRIPT, checkKey(keyPrefix), []);
    if (run > 0) latencies.push(clock.now() - sentAt);
  }
  return latencies.sort((a, b) => a - b)[Math.floor(MEASURED_RUNS / 2)] ?? 0;
}
