/** The script client before a server with late replies, in virtual time: what an idle client finds out, and how long commands wait. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RedisConnection } from '../../../src/fleet/redis/redis-connection.ts';
import { defineScript } from '../../../src/fleet/redis/script.ts';
import { RedisScriptClient } from '../../../src/fleet/redis/script-client.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ECHO = defineScript(`return {ARGV[1]}`);

/** A client in virtual time whose server replies to each command after the present latency. */
async function openInVirtualTime(timeoutMs: number) {
  const clock = new ManualClock();
  const server = { latencyMs: 1, connections: 0 };
  const kinds: string[] = [];
  const open = (): Promise<RedisConnection> => {
    server.connections++;
    const send = (command: readonly string[]): Promise<unknown> =>
      new Promise((resolve) => clock.after(server.latencyMs, () => resolve(command[0] === 'INFO' ? '' : ['a'])));
    const ended = new Promise<never>(() => undefined);
    return Promise.resolve({ send, subscribe: () => Promise.resolve(), ended, destroy: () => undefined });
  };
  const observe = ({ kind }: SidecarEvent): void => {
    if (kind !== 'fleet-command') kinds.push(kind);
  };
  const options = { open, timeoutMs, keyPrefix: 'p', clock, random: () => 0.5, observe };
  const client = new RedisScriptClient(options);
  client.start();
  await clock.advance(100);
  expect(client.state().state).toBe('connected');
  return { clock, client, server, kinds };
}

describe('an idle client', () => {
  test('finds late replies within 40 s, and replies in time within 6 s', async () => {
    const { clock, client, server, kinds } = await openInVirtualTime(50);
    await clock.advance(60_000);
    server.latencyMs = 200;
    await clock.advance(40_000);
    expect(client.state().state).toBe('degraded');
    await clock.advance(600_000);
    server.latencyMs = 1;
    await clock.advance(6_000);
    expect(client.state().state).toBe('connected');
    expect(kinds).toEqual(['fleet-joined', 'fleet-degraded', 'fleet-joined']);
    expect(server.connections).toBe(1);
  });

  test('takes a single late reply for no slow server', async () => {
    const { clock, client, server, kinds } = await openInVirtualTime(50);
    for (let times = 0; times < 20; times++) {
      server.latencyMs = 300;
      void client.run(ECHO, 'k', []);
      await clock.advance(299);
      server.latencyMs = 1;
      await clock.advance(3000);
    }
    expect(kinds).toEqual(['fleet-joined']);
  });
});

test('no command is awaited for longer than fleet.timeoutMs, and none at all while replies are too late', async () => {
  const phases = fc.array(
    fc.record({ latencyMs: fc.integer({ min: 0, max: 900 }), commands: fc.integer({ min: 1, max: 20 }) }),
    {
      minLength: 1,
      maxLength: 8,
    },
  );
  await fc.assert(
    fc.asyncProperty(phases, async (all) => {
      const { clock, client, server } = await openInVirtualTime(50);
      for (const { latencyMs, commands } of all) {
        server.latencyMs = latencyMs;
        for (let count = 0; count < commands; count++) {
          const wasDegraded = client.state().state === 'degraded';
          const startedAt = clock.now();
          let waitedMs: number | undefined;
          void client.run(ECHO, 'k', []).then(() => (waitedMs = clock.now() - startedAt));
          await clock.advance(150);
          expect(waitedMs).toBeLessThanOrEqual(wasDegraded ? 0 : 50);
        }
      }
    }),
    { numRuns: 20 },
  );
});
