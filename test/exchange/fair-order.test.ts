/** Who has the next turn over HTTP: x-sidecar-priority and x-sidecar-caller, from the client's field to the upstream's socket. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { createLatch, giveToken, startInProcess, until, type InProcess } from '../composition/in-process.ts';
import { send, type Sent } from '../composition/send.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { echo } from '../support/recording-upstream.ts';

/** One call at a time reaches the upstream; the first is held until `firstResponse` opens, while others queue. */
async function startCrowded(env: Readonly<Record<string, string>> = {}) {
  const firstResponse = createLatch();
  const chain = await startInProcess({
    respond: async (request, response, index) => {
      await firstResponse.opened;
      await echo(request, response, index);
    },
    env: { SIDECAR_MAX_IN_FLIGHT: '1', ...env },
  });
  const first = send(`${chain.url}/first`);
  await until(() => chain.eventsOf('permit-granted').length === 1, 'the first call in flight');
  return { ...chain, firstResponse, first };
}

/** Sends calls one after another and waits until they all stand in the queue. */
async function queueUp(chain: InProcess, calls: readonly (readonly [string, Record<string, string>])[]) {
  const responses: Promise<Sent>[] = [];
  const { queued } = await chain.throttle();
  for (const [index, [path, headers]] of calls.entries()) {
    responses.push(send(`${chain.url}${path}`, { method: 'POST', body: path, headers }));
    let seen = queued;
    while (seen < queued + index + 1) seen = (await chain.throttle()).queued;
  }
  return responses;
}

/** The end of a head and the body. */
const FRAMED = {
  none: '\r\n',
  length: 'Content-Length: 2\r\n\r\nhi',
  chunked: 'Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n',
};

const paths = (chain: InProcess): string[] => chain.api.requests.map(({ path }) => path);

describe('calls that queue', () => {
  it('without these fields go out in the order in which they came', async () => {
    const chain = await startCrowded();
    const responses = await queueUp(chain, [
      ['/1', {}],
      ['/2', {}],
      ['/3', {}],
    ]);
    chain.firstResponse.open();
    await Promise.all([chain.first, ...responses]);
    expect(paths(chain)).toEqual(['/first', '/1', '/2', '/3']);
  });

  it('keep their order when their bodies come while they wait', async () => {
    const chain = await startCrowded();
    const open = async (path: string, begin: string) => {
      const before = (await chain.throttle()).queued;
      const socket = await openSocket(chain.url);
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nx-sidecar-caller: ${path.slice(1)}\r\nConnection: close\r\n`;
      const response = readToEnd(socket);
      socket.write(`${head}Content-Length: 4\r\n\r\n${begin}`);
      await until(async () => (await chain.throttle()).queued === before + 1, `${path} in the queue`);
      return { socket, response };
    };
    const reader = await open('/reader', '1');
    const early = await open('/early', '12');
    const later = [await open('/later-1', '1234'), await open('/later-2', '1234')];
    early.socket.write('34');
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    chain.firstResponse.open();
    for (const { response } of [early, ...later]) expect((await response).status).toBe(200);
    expect(paths(chain)).toEqual(['/first', '/early', '/later-1', '/later-2']);
    reader.socket.destroy();
    await chain.first;
  });

  it('let a slow body be read while those wait whose bodies came with their heads', async () => {
    const chain = await startCrowded();
    const responses = await queueUp(chain, [
      ['/whole-1', {}],
      ['/whole-2', {}],
    ]);
    const socket = await openSocket(chain.url);
    const response = readToEnd(socket);
    socket.write(
      'POST /slow HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: 2\r\n\r\n',
    );
    const [interim] = (await once(socket, 'data')) as [Buffer];
    expect(interim.toString()).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    expect(paths(chain)).toEqual(['/first']);
    socket.write('hi');
    chain.firstResponse.open();
    await Promise.all([chain.first, ...responses, response]);
    expect(paths(chain)).toEqual(['/first', '/whole-1', '/whole-2', '/slow']);
  });

  it('go out in the order in which they came, with and without a body, also when they waited for a token', async () => {
    const token = createLatch();
    const chain = await startInProcess({
      respondToTokenRequest: async (...given) => {
        await token.opened;
        await giveToken(...given);
      },
      env: { SIDECAR_MAX_IN_FLIGHT: '1' },
    });
    const kinds = ['length', 'none', 'chunked', 'none', 'length', 'chunked', 'none', 'chunked', 'length'] as const;
    const responses = [];
    for (const [index, kind] of kinds.entries()) {
      const socket = await openSocket(chain.url);
      responses.push(readToEnd(socket));
      const method = kind === 'none' ? 'GET' : 'POST';
      socket.write(`${method} /${String(index)} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${FRAMED[kind]}`);
      await until(async () => (await chain.listener()).requests === index + 1, `request ${String(index)} is received`);
    }
    token.open();
    for (const response of responses) expect((await response).status).toBe(200);
    expect(paths(chain)).toEqual(kinds.map((_, index) => `/${String(index)}`));
  });

  it('are granted to their callers in round-robin', async () => {
    const chain = await startCrowded();
    const batch = { 'x-sidecar-caller': 'batch' };
    const responses = await queueUp(chain, [
      ['/batch-1', batch],
      ['/batch-2', batch],
      ['/batch-3', batch],
      ['/single', { 'X-Sidecar-Caller': 'single' }],
    ]);
    chain.firstResponse.open();
    await Promise.all([chain.first, ...responses]);
    expect(paths(chain)).toEqual(['/first', '/batch-1', '/single', '/batch-2', '/batch-3']);
  });

  it('go out by priority, and the fields stay here', async () => {
    const chain = await startCrowded();
    const responses = await queueUp(chain, [
      ['/batch-1', { 'x-sidecar-priority': 'low' }],
      ['/batch-2', { 'x-sidecar-priority': 'low' }],
      ['/page-1', { 'x-sidecar-caller': 'page' }],
      ['/page-2', { 'x-sidecar-caller': 'page' }],
      ['/alarm', { 'x-sidecar-priority': 'HIGH', 'x-sidecar-caller': 'alarm' }],
    ]);
    chain.firstResponse.open();
    const all = await Promise.all([chain.first, ...responses]);
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
    // Their bodies came with their heads: none of them took the one place for reading before the others came.
    expect(paths(chain)).toEqual(['/first', '/alarm', '/page-1', '/page-2', '/batch-1', '/batch-2']);
    const names = chain.api.requests.flatMap(({ headers }) => Object.keys(headers));
    expect(names.filter((name) => name.startsWith('x-sidecar'))).toEqual([]);
  });

  it('are refused when a higher class needs their places, and /status shows who waits', async () => {
    const chain = await startCrowded({ SIDECAR_QUEUE_MAX: '3' });
    const low = { 'x-sidecar-priority': 'low' };
    const [first, second, third] = await queueUp(chain, [
      ['/1', low],
      ['/2', low],
      ['/3', low],
    ]);
    const urgent = send(`${chain.url}/urgent`, { headers: { 'x-sidecar-priority': 'high' } });
    const refused = await third;
    expect(refused).toMatchObject({ status: 503, code: 'QUEUE_FULL' });
    expect(Number(refused?.fields['retry-after'])).toBeGreaterThanOrEqual(0);
    const status = (await (await fetch(`${chain.sidecar.adminUrl}/status`)).json()) as { throttle: object };
    expect(status.throttle).toMatchObject({ queued: 3, queuedByPriority: { high: 1, normal: 0, low: 2 } });
    chain.firstResponse.open();
    for (const call of [chain.first, first, second, urgent]) expect((await call)?.status).toBe(200);
    expect(paths(chain)).toEqual(['/first', '/urgent', '/1', '/2']);
  });
});

describe('a wish that cannot be read', () => {
  it.each([
    ['x-sidecar-priority', 'urgent', 'x-sidecar-priority is not one of high, normal and low'],
    ['x-sidecar-caller', 'two words', 'x-sidecar-caller is not a name of 1 to 64 visible ASCII characters'],
  ])('in %s is refused and not forwarded', async (name, value, detail) => {
    const { url, api } = await startInProcess();
    const response = await send(url, { headers: { [name]: value } });
    expect(response).toMatchObject({ status: 400, code: 'BAD_REQUEST' });
    expect(JSON.parse(response.text)).toMatchObject({ detail });
    expect(api.requests).toHaveLength(0);
  });
});
