/** Resolving a name and connecting to its addresses, some of which fail or time out. */
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { connectToEach, resolveName } from '../../../src/commands/check/dns-and-tcp.ts';

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => void server.close(resolve)));

const place = (host: string) => ({ host, port, setting: 'BASE_URL', timeoutMs: 5000 });
const { signal } = new AbortController();

/** Every wait is over before the network has had its turn. */
const hasty: Pick<Clock, 'now' | 'after'> = {
  now: () => 0,
  after: (_, run) => {
    queueMicrotask(run);
    return () => undefined;
  },
};

test('does not resolve an address', async () => {
  expect(await resolveName(place('::1'), hasty)).toMatchObject({ outcome: 'ok', value: ['::1'] });
});

test('reports a name server that does not respond', async () => {
  expect(await resolveName(place('localhost'), hasty)).toMatchObject({
    outcome: 'fail',
    detail: 'the name server did not respond for localhost within 5000 ms',
    advice: expect.stringContaining('/etc/resolv.conf') as string,
  });
});

test('warns when one of two addresses refuses, and uses the other', async () => {
  const found = await connectToEach(['127.0.0.2', '127.0.0.1'], place('api.example'), systemClock, signal);
  const used = found.value?.remoteAddress;
  found.value?.destroy();
  expect(found.outcome).toBe('warn');
  expect(found.detail).toMatch(
    /^127\.0\.0\.2:\d+ refused the connection \(ECONNREFUSED\) after \d+ ms; 127\.0\.0\.1:\d+ in /,
  );
  expect(used).toBe('127.0.0.1');
});

test('accepts localhost with one reachable address', async () => {
  const found = await connectToEach(['127.0.0.2', '127.0.0.1'], place('localhost'), systemClock, signal);
  found.value?.destroy();
  expect(found).toMatchObject({ outcome: 'ok', detail: expect.stringContaining('refused') as string });
});

test('advises on the network when an address does not respond in time', async () => {
  const found = await connectToEach(['127.0.0.1'], place('api.example'), hasty, signal);
  expect(found).toMatchObject({
    outcome: 'fail',
    detail: expect.stringMatching(/did not respond \(ETIMEDOUT\)/) as string,
    advice: expect.stringMatching(/firewall.*SIDECAR_EGRESS_PROXY/) as string,
  });
  expect(found.value).toBeUndefined();
});

test('ends at once when interrupted', async () => {
  const found = await connectToEach(['127.0.0.1'], place('api.example'), systemClock, AbortSignal.abort());
  expect(found).toMatchObject({ outcome: 'fail', detail: expect.stringContaining('was interrupted') as string });
});
