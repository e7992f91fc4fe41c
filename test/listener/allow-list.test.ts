/** Which requests the allow list allows, in every spelling of their paths, and how others are refused. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAllowList } from '../../src/listener/allow-list.ts';
import { joinTarget } from '../../src/upstream/request-target.ts';
import { startInProcess } from '../composition/in-process.ts';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startProxy } from './proxy.ts';

const refuseUnlisted = createAllowList([
  { methods: ['GET', 'POST'], path: '/quotes' },
  { methods: ['GET'], path: '/policies/v1' },
  { methods: undefined, path: '/any~thing' },
]);

function isAllowed(method: string, target: string): boolean {
  return refuseUnlisted(method, target) === undefined;
}

describe('a request is allowed', () => {
  it.each([
    ['GET', '/quotes'],
    ['POST', '/quotes'],
    ['GET', '/quotes/'],
    ['GET', '/quotes/1/lines'],
    ['GET', '/quotes?x=/admin'],
    ['GET', '/quotes/?x'],
    ['GET', '/%71uotes'],
    ['GET', '/quotes/a%2Fb'],
    ['GET', '/quotes//a'],
    ['GET', '/quotes/a;v=1'],
    ['GET', '/quotes/caf%C3%A9'],
    ['GET', '/policies/v1/7'],
    ['DELETE', '/any~thing'],
    ['PATCH', '/any%7Ething/1'],
    ['PATCH', '/any%7ething/1'],
  ])('%s %s', (method, target) => {
    expect(isAllowed(method, target)).toBe(true);
  });
});

describe('a request is refused', () => {
  it.each([
    ['DELETE', '/quotes'],
    ['HEAD', '/quotes'],
    ['get', '/quotes'],
    ['POST', '/policies/v1'],
    ['GET', '/'],
    ['GET', '/quote'],
    ['GET', '/quotes2'],
    ['GET', '/quotes;v=1/a'],
    ['GET', '/quotes%3Bv'],
    ['GET', '/quotes%2F'],
    ['GET', '/quotes%2Fa'],
    ['GET', '/quotes%5Ca'],
    ['GET', '/quotes%20'],
    ['GET', '/quotes%00/a'],
    ['GET', '/quotes%3Fa'],
    ['GET', '/%2571uotes'],
    ['GET', '/Quotes'],
    ['GET', '/%51uotes'],
    ['GET', '//quotes'],
    ['GET', '/%2Fquotes'],
    ['GET', '/a/quotes'],
    ['GET', '/policies'],
    ['GET', '/policies/v12'],
    ['GET', '/policies%2Fv1'],
    ['GET', '/?/quotes'],
    ['GET', '/quotes/%'],
    ['GET', '/quotes/%zz'],
    ['GET', '/quotes/%c0%ae%c0%ae/a'],
    ['GET', '/quotes/%u0061'],
    ['GET', '/quotes/%ff'],
  ])('%s %s', (method, target) => {
    expect(refuseUnlisted(method, target)?.code).toBe('REQUEST_NOT_ALLOWED');
  });

  it('with a message that names the setting and not the path', () => {
    expect(refuseUnlisted('GET', '/secret')?.message).toMatch(
      /^this path is not .*SIDECAR_LISTEN_ALLOW \(listen\.allow\)$/,
    );
    expect(refuseUnlisted('PUT', '/quotes')?.message).toMatch(/^the method PUT on this path is not allowed/);
  });
});

it('the root allows every path, and an empty list none', () => {
  expect(createAllowList([])('GET', '/')).toHaveProperty('code', 'REQUEST_NOT_ALLOWED');
  const readOnly = createAllowList([{ methods: ['GET'], path: '/' }]);
  expect([readOnly('GET', '/'), readOnly('GET', '/a//b'), readOnly('GET', '/?x')]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
  expect(readOnly('POST', '/a')?.code).toBe('REQUEST_NOT_ALLOWED');
});

it('every allowed path is below a path of the list for each way in which servers decode and resolve it', () => {
  const piece = fc.constantFrom(
    '/',
    '//',
    'quotes',
    '%71uotes',
    '..',
    '.',
    '%2e',
    '%252e',
    '%2f',
    '%5c',
    ';',
    'a',
    '%00',
    '%c0%ae',
  );
  const target = fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join('')}`);
  fc.assert(
    fc.property(
      fc.oneof(
        target,
        target.map((path) => `/quotes${path}`),
      ),
      (path) => {
        if (typeof joinTarget('/', path) !== 'string' || !isAllowed('GET', path)) return;
        let reading = path;
        for (let round = 0; round < 3; round++) {
          const { pathname } = new URL(reading.replaceAll(/\/{2,}/g, '/'), 'http://upstream');
          expect(`${pathname}/`.replaceAll(/%71/g, 'q')).toMatch(/^\/quotes\//);
          reading = reading.replaceAll(/%([0-7][\da-f])/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
        }
      },
    ),
    { numRuns: 2000 },
  );
});

it('the proxy port replies 403 to other requests in every form of target, and sends none upstream', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url, { checkAllowList: refuseUnlisted });
  const ask = (line: string) => sendRaw(proxy.url, `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  for (const line of ['GET /admin', 'DELETE /quotes', `GET ${proxy.url}/admin`, `GET ${proxy.url}?/quotes`]) {
    const reply = await ask(line);
    expect([line, reply.status, (JSON.parse(reply.body.toString()) as { code: string }).code]).toEqual([
      line,
      403,
      'REQUEST_NOT_ALLOWED',
    ]);
  }
  expect(upstream.requests).toEqual([]);
  for (const line of ['GET /quotes', `GET ${proxy.url}/%71uotes?x`]) expect((await ask(line)).status).toBe(200);
  expect(upstream.requests.map(({ path }) => path)).toEqual(['/quotes', '/%71uotes?x']);
});

it('the list applies to upgrades', async () => {
  await using upstream = await startRecordingUpstream();
  await using proxy = await startProxy(upstream.url, {
    checkAllowList: refuseUnlisted,
    serveUpgrade: () => Promise.reject(new Error('not to be asked')),
  });
  const upgrade = 'Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const reply = await sendRaw(proxy.url, `GET /admin HTTP/1.1\r\n${upgrade}`);
  expect(reply.status).toBe(403);
  expect(reply.body.toString()).toContain('REQUEST_NOT_ALLOWED');
});

it('the list is set by SIDECAR_LISTEN_ALLOW', async () => {
  const { url, api } = await startInProcess({ env: { SIDECAR_LISTEN_ALLOW: 'GET,POST /quotes; GET /policies' } });
  const statuses = await Promise.all(
    [
      ['GET', '/quotes/1'],
      ['POST', '/quotes'],
      ['GET', '/policies?x'],
      ['POST', '/policies'],
      ['GET', '/'],
    ].map(async ([method = '', path = '']) => (await fetch(url + path, { method })).status),
  );
  expect(statuses).toEqual([200, 200, 200, 403, 403]);
  expect(api.requests).toHaveLength(3);
});
