/** Connections to names with several addresses, some of which do not respond, refuse, or have no route. */
import { createServer, type Server, type Socket } from 'node:net';
import fc from 'fast-check';
import { Client } from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/platform/clock.ts';
import { ConnectFault } from '../../src/platform/connection-faults.ts';
import { selectNoProxy } from '../../src/platform/egress/proxy-selector.ts';
import { buildEgressConnector } from '../../src/platform/egress/connector.ts';
import { openConnection } from '../../src/platform/open-connection.ts';
import type { LookUpName } from '../../src/platform/open-connection.ts';
import { classifyConnectError } from '../../src/upstream/failure.ts';
import { startBlackHole, type BlackHole } from '../support/black-hole.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { roundsOf } from '../support/rounds.ts';

const HOLES = ['127.0.3.1', '127.0.3.2'];
const ACCEPTING = ['127.0.2.1', '127.0.2.2', '127.0.2.3'];
const REFUSING = ['127.0.4.1', '127.0.4.2', '127.0.4.3'];
/** There is no route to it anywhere: a connection to it fails at once. */
const UNROUTABLE = '255.255.255.255';
const { signal: NEVER } = new AbortController();

const opened = new Set<Socket>();
const servers: Server[] = [];
let holes: BlackHole[] = [];
let port = 0;

beforeAll(async () => {
  const [first = '', second = ''] = HOLES;
  const hole = await startBlackHole(first);
  port = hole.port;
  holes = [hole, await startBlackHole(second, port)];
  for (const host of ACCEPTING) {
    const server = createServer((socket) => {
      opened.add(socket.on('error', () => socket.destroy()).on('close', () => opened.delete(socket)));
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnear'));
    });
    await new Promise<void>((resolve) => server.listen(port, host, resolve));
    servers.push(server);
  }
});
afterAll(async () => {
  for (const server of servers) server.close();
  for (const hole of holes) await hole[Symbol.asyncDispose]();
});

const resolveTo =
  (...addresses: readonly string[]): LookUpName =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

/**
 * Opens a connection on a clock of its own, which is moved until it ends.
 * @param canHang it may not end: the clock stops when all addresses have been tried. Default false
 */
async function openTo(addresses: readonly string[], canHang = false) {
  const clock = new ManualClock();
  const tried: { address: string; outcome: string }[] = [];
  const lookUp = resolveTo(...addresses);
  const opening = openConnection({ host: 'api.test', port, signal: NEVER, clock, tried, lookUp });
  let result: Socket | ConnectFault | undefined;
  void opening.then(
    (socket) => (result = socket),
    (fault: unknown) => (result = fault as ConnectFault),
  );
  while (result === undefined) {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(250);
    if (canHang && clock.now() > 250 * (addresses.length + 2)) break;
  }
  return { result, tried, clock };
}

/** What an upstream's connector makes of it: the body of a response, or the sentence of the fault. */
async function get(lookUp: LookUpName, timeoutMs: number, protocol = 'http:'): Promise<string> {
  const destination = new URL(`${protocol}//api.test:${String(port)}`);
  const connect = buildEgressConnector({
    ...{ destination, egress: selectNoProxy, secureContext: undefined, timeoutMs, clock: systemClock },
    lookUp,
  });
  const client = new Client(destination.origin, { connect });
  try {
    return await (await client.request({ method: 'GET', path: '/' })).body.text();
  } catch (error) {
    return classifyConnectError(error).detail;
  } finally {
    await client.destroy();
  }
}

describe('the addresses of a name', () => {
  it('are tried until one accepts, each once, whatever the others do', async () => {
    const kind = fc.constantFrom(...HOLES, ...ACCEPTING, ...REFUSING, UNROUTABLE);
    const property = fc.asyncProperty(fc.uniqueArray(kind, { maxLength: 8 }), async (addresses) => {
      const canConnect = addresses.some((address) => ACCEPTING.includes(address));
      const hasHole = addresses.some((address) => HOLES.includes(address));
      const { result, tried, clock } = await openTo(addresses, hasHole && !canConnect);
      const names = tried.map(({ address }) => address);
      expect(names).toEqual(addresses.slice(0, names.length).map((address) => `${address}:${String(port)}`));
      if (canConnect) {
        expect(result).toHaveProperty('remotePort', port);
        (result as Socket).destroy();
      } else if (hasHole) {
        // Nothing is given up before the caller's time is over.
        expect(result).toBeUndefined();
        expect(names).toHaveLength(addresses.length);
      } else {
        expect(result).toBeInstanceOf(ConnectFault);
        const hasRoute = addresses.some((address) => REFUSING.includes(address));
        if (hasRoute) expect(result).toHaveProperty('code', 'ECONNREFUSED');
        for (const name of names) expect((result as ConnectFault).addresses).toContain(name);
      }
      if (result !== undefined) expect(clock.pendingTimers).toBe(0);
    });
    await fc.assert(property, { numRuns: roundsOf({ check: 40, soak: 1000 }) });
  });

  it('cost 250 ms when the first does not respond, and nothing when it refuses', async () => {
    const [hole = ''] = HOLES;
    const [near = ''] = ACCEPTING;
    const clock = new ManualClock();
    const tried: { address: string; outcome: string }[] = [];
    const options = { host: 'api.test', port, signal: NEVER, clock, tried };
    const opening = openConnection({ ...options, lookUp: resolveTo(hole, near) });
    await clock.advance(249);
    expect(tried).toHaveLength(1);
    await clock.advance(1);
    (await opening).destroy();
    const [refusing = ''] = REFUSING;
    const atOnce = await openConnection({ ...options, tried: [], lookUp: resolveTo(refusing, near) });
    expect(clock.now()).toBe(250);
    atOnce.destroy();
  });

  it('of both families take turns, the family of the first one first', async () => {
    const { tried } = await openTo(['::ffff:127.0.4.1', '127.0.4.1', '127.0.4.2', '127.0.4.3', '::ffff:127.0.4.2']);
    const order = tried.map(({ address }) => address.replace(`:${String(port)}`, ''));
    expect(order).toEqual(['[::ffff:127.0.4.1]', '127.0.4.1', '[::ffff:127.0.4.2]', '127.0.4.2', '127.0.4.3']);
  });

  it('are none: the name is not found', async () => {
    expect((await openTo([])).result).toMatchObject({ code: 'ENOTFOUND', addresses: '' });
  });
});

describe('a server that is far', () => {
  const OTHERS: readonly (readonly [string, string])[] = [
    ['one without a route', UNROUTABLE],
    ['one that refuses', '127.0.4.1'],
    ['one that does not respond', '127.0.3.1'],
  ];
  it.each(OTHERS)('is reached beside %s, before and after it', async (_, other) => {
    for (const place of [0, 1]) {
      await using far = await startBlackHole('127.0.5.1', port);
      const addresses = place === 0 ? ['127.0.5.1', other] : [other, '127.0.5.1'];
      const asking = get(resolveTo(...addresses), 15_000);
      // After the 250 ms that each address has to itself.
      setTimeout(() => far.release(), 600);
      expect(await asking).toBe('far');
    }
  });
});

describe('the message names what was not over in time', () => {
  const LIMIT = 'within 300 ms: upstream.connectTimeoutMs (SIDECAR_UPSTREAM_CONNECT_TIMEOUT_MS)';

  it('the look-up of the name', async () => {
    const never: LookUpName = () => new Promise(() => undefined);
    expect(await get(never, 300)).toBe(`the upstream cannot be reached: its name was not resolved ${LIMIT}`);
  });

  it('the connection, with the addresses and what came of each', async () => {
    const detail = await get(resolveTo('127.0.4.1', UNROUTABLE, '127.0.3.1'), 300);
    expect(detail).toContain(`no connection was opened ${LIMIT}; tried 127.0.4.1:${String(port)} (ECONNREFUSED), `);
    expect(detail).toContain(`127.0.3.1:${String(port)} (no answer)`);
  });

  it('the TLS handshake', async () => {
    const silent = createServer((socket) => socket.on('error', () => socket.destroy()).resume());
    await new Promise<void>((resolve) => silent.listen(port, '127.0.6.1', resolve));
    onTestFinished(() => void silent.close());
    const detail = await get(resolveTo('127.0.6.1'), 300, 'https:');
    expect(detail).toContain(
      `the TLS handshake was not complete ${LIMIT}; tried 127.0.6.1:${String(port)} (connected)`,
    );
  });
});

describe('an abort', () => {
  it('ends the wait for a look-up that never returns, and the next one that waits for it is its own master', async () => {
    const found = Promise.withResolvers<{ address: string; family: number }[]>();
    const lookUp: LookUpName = () => found.promise;
    const [left, stays] = [new AbortController(), new AbortController()];
    const ends = [left, stays].map(({ signal }) => openConnection({ host: 'api.test', port, signal, lookUp }));
    left.abort(new Error('the client has left'));
    await expect(ends[0]).rejects.toThrow('the client has left');
    found.resolve([{ address: '127.0.2.1', family: 4 }]);
    (await ends[1])?.destroy();
  });

  it('closes every connection that is being opened, and stops the clock', async () => {
    const clock = new ManualClock();
    const aborter = new AbortController();
    const options = { host: 'api.test', port, signal: aborter.signal, clock, lookUp: resolveTo(...HOLES, '127.0.2.1') };
    const opening = openConnection(options);
    await clock.advance(250);
    aborter.abort(new Error('over'));
    await expect(opening).rejects.toThrow('over');
    expect(clock.pendingTimers).toBe(0);
    await clock.advance(1000);
    expect(opened.size).toBe(0);
  });
});
