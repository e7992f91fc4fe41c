/** What `check` reports of a name, its addresses and a tunnel, some of which fail or do not respond. */
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkConnection } from '../../../src/commands/check/connection.ts';
import { Secrets } from '../../../src/platform/secrets.ts';
import { StepRunner } from '../../../src/commands/check/step-runner.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import type { LookUpName } from '../../../src/platform/open-connection.ts';
import { freePort, listenOnLoopback, closeServer } from '../../support/loopback.ts';

let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => new Promise((resolve) => void server.close(resolve)));

const names = { address: 'BASE_URL', ca: 'CA_FILE', certificate: 'CERTIFICATE_FILE' };
const { signal: never } = new AbortController();

/** Every wait is over before the network has had its turn. */
const hasty: Clock = {
  ...systemClock,
  after: (_, run) => {
    queueMicrotask(run);
    return () => undefined;
  },
};

interface Circumstances {
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  readonly proxy?: URL;
  readonly caFile?: string;
}

async function stepsOf(url: string, addresses: readonly string[], circumstances: Circumstances = {}) {
  const { clock = systemClock, signal = never, proxy, caFile } = circumstances;
  const lookUp: LookUpName = (name) => {
    if (name === 'silent.example') return new Promise(() => undefined);
    if (addresses.length > 0) return Promise.resolve(addresses.map((address) => ({ address, family: 4 })));
    const code = name === 'later.example' ? 'EAI_AGAIN' : 'ENOTFOUND';
    return Promise.reject(Object.assign(new Error(name), { code }));
  };
  const context = {
    clock,
    signal,
    stop: signal,
    lookUp,
    secrets: new Secrets(clock),
    sharedCaFile: undefined,
    egress: () => proxy && { url: proxy, tlsContext: undefined },
  };
  const runner = new StepRunner('upstream', context);
  const server = { names, caFile, clientCertificate: undefined, tlsGroups: undefined };
  const isReached = await checkConnection(runner, { ...server, url: new URL(url), timeoutMs: 5000 }, context);
  return { isReached, steps: runner.steps, outcomes: runner.steps.map(({ step, outcome }) => `${step} ${outcome}`) };
}

test('an address is shown with what came of it', async () => {
  const { isReached, steps, outcomes } = await stepsOf(`http://127.0.0.1:${port}`, []);
  expect(outcomes).toEqual(['connect ok']);
  expect(steps[0]?.detail).toBe(`127.0.0.1:${port} (connected)`);
  expect(isReached).toBe(true);
});

test.each([
  ['gone.example', /^gone\.example:\d+ has a host name that cannot be resolved \(ENOTFOUND\)$/, /name in BASE_URL/],
  ['later.example', /cannot be resolved now \(EAI_AGAIN\)$/, /resolv\.conf/],
])('%s has no address', async (host, detail, advice) => {
  const { steps, outcomes, isReached } = await stepsOf(`http://${host}:${port}`, []);
  expect(outcomes).toEqual(['connect fail']);
  expect(steps[0]?.detail).toMatch(detail);
  expect(steps[0]?.advice).toMatch(advice);
  expect(isReached).toBe(false);
});

test('a name server that does not respond in time is named', async () => {
  const { steps } = await stepsOf('http://silent.example', [], { clock: hasty });
  expect(steps[0]).toMatchObject({
    step: 'connect',
    outcome: 'fail',
    detail: 'silent.example:80 cannot be reached: its name was not resolved within 5000 ms',
    advice: expect.stringContaining('/etc/resolv.conf') as string,
  });
});

test('one of two addresses that refuses is a warning, and the other is used', async () => {
  const { steps, isReached } = await stepsOf(`http://api.example:${port}`, ['127.0.0.2', '127.0.0.1']);
  expect(steps[0]).toMatchObject({
    outcome: 'warn',
    detail: `127.0.0.2:${port} (ECONNREFUSED), 127.0.0.1:${port} (connected)`,
    advice: expect.stringContaining('operator of api.example') as string,
  });
  expect(isReached).toBe(true);
});

test('localhost may have one address that refuses', async () => {
  const { steps } = await stepsOf(`http://localhost:${port}`, ['127.0.0.2', '127.0.0.1']);
  expect(steps[0]).toMatchObject({ outcome: 'ok', detail: expect.stringContaining('(ECONNREFUSED)') as string });
});

test('every address that refuses is named, with advice', async () => {
  const closed = await freePort();
  const { steps, outcomes } = await stepsOf(`https://api.example:${closed}`, ['127.0.0.2', '127.0.0.1']);
  expect(outcomes).toEqual(['connect fail']);
  const tried = `tried 127.0.0.2:${closed} (ECONNREFUSED), 127.0.0.1:${closed} (ECONNREFUSED)`;
  expect(steps[0]?.detail).toBe(`api.example:${closed} refused the connection (ECONNREFUSED); ${tried}`);
  expect(steps[0]?.advice).toMatch(/nothing listens there.*BASE_URL/);
});

test('an address that does not respond in time leads to advice on the network', async () => {
  const { steps } = await stepsOf(`http://127.0.0.1:${port}`, [], { clock: hasty });
  expect(steps[0]).toMatchObject({
    step: 'connect',
    outcome: 'fail',
    detail: `127.0.0.1:${port} cannot be reached: no connection was opened within 5000 ms`,
    advice: expect.stringMatching(/firewall.*SIDECAR_EGRESS_PROXY/) as string,
  });
});

test.each([
  [200, 'connect ok', /^through the egress proxy 127\.0\.0\.1:\d+ to api\.example:80$/],
  [403, 'connect fail', /does not allow a connection to api\.example:80 \(403\)$/],
  [405, 'connect fail', /the egress proxy 127\.0\.0\.1:\d+ opens no tunnels \(405\)$/],
  [407, 'connect fail', /the egress proxy 127\.0\.0\.1:\d+ asks for credentials \(407\)$/],
])('a proxy that responds with %i to CONNECT', async (status, outcome, detail) => {
  const proxy = createHttpServer().on('connect', (_, socket) => socket.end(`HTTP/1.1 ${status} It\r\n\r\n`));
  const url = new URL(await listenOnLoopback(proxy));
  const found = await stepsOf('http://api.example', [], { proxy: url });
  await closeServer(proxy);
  expect(found.outcomes).toEqual([outcome]);
  expect(found.steps[0]?.detail).toMatch(detail);
});

test('a proxy that is not there is named, with its setting', async () => {
  const { steps, outcomes } = await stepsOf('https://api.example', [], { proxy: new URL('http://127.0.0.1:1') });
  expect(outcomes).toEqual(['connect fail']);
  expect(steps[0]?.detail).toBe(
    'api.example:443 cannot be reached: the egress proxy 127.0.0.1:1 refused the connection (ECONNREFUSED)',
  );
  expect(steps[0]?.advice).toContain('SIDECAR_EGRESS_PROXY');
});

test('an interrupted check ends at once', async () => {
  const { outcomes, steps } = await stepsOf(`http://127.0.0.1:${port}`, [], { signal: AbortSignal.abort() });
  expect(outcomes).toEqual(['connect skip']);
  expect(steps[0]?.detail).toBe('interrupted');
});

test('files for TLS that cannot be used are a fault of the TLS step', async () => {
  const { steps, isReached } = await stepsOf('https://127.0.0.1:1', [], { caFile: '/nowhere/ca.pem' });
  expect(isReached).toBe(false);
  expect(steps).toMatchObject([
    {
      step: 'tls',
      outcome: 'fail',
      detail: 'the files for TLS cannot be used (ENOENT)',
      advice: expect.stringContaining('CA_FILE') as string,
    },
  ]);
});
