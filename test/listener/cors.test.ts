/** CORS: pages of allowed origins can read responses and local replies, other pages nothing. */
import { describe, expect, it } from 'vitest';
import { call } from '../support/calls.ts';
import { sendRaw } from '../support/raw-client.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { startProxy } from './proxy.ts';

const ORIGIN = 'http://localhost:3000';
const GUARD = { allowedOrigins: [ORIGIN], requiredHeader: { name: 'x-key', value: 'sesame' } };

function preflight(origin: string): string {
  const asks = 'Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: content-type, x-key\r\n';
  return `OPTIONS /a HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nOrigin: ${origin}\r\n${asks}\r\n`;
}

describe('a preflight', () => {
  it('of an allowed page gets 204 from the sidecar and is recorded once', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { guard: GUARD });
    const { status, headers: fields, body } = await sendRaw(proxy.url, preflight(ORIGIN));
    expect(status).toBe(204);
    expect(fields).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'PUT',
      'access-control-allow-headers': 'content-type, x-key',
      vary: 'Origin',
    });
    expect(fields).not.toHaveProperty('access-control-allow-credentials');
    expect(body).toHaveLength(0);
    expect(upstream.requests).toEqual([]);
    expect(await proxy.requestRecords(1)).toMatchObject([
      { method: 'OPTIONS', code: 204, source: 'sidecar', attempts: 0 },
    ]);
    expect(proxy.events.filter(({ kind }) => kind === 'local-reply')).toEqual([]);
  });

  it('of another page is refused without CORS fields', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { guard: GUARD });
    const { status, headers: fields } = await sendRaw(proxy.url, preflight('https://evil.example'));
    expect(status).toBe(403);
    expect(Object.keys(fields).filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(await proxy.requestRecords(1)).toMatchObject([{ code: 403, localReply: 'ORIGIN_NOT_ALLOWED' }]);
  });
});

describe('an allowed page', () => {
  const headers = { host: '127.0.0.1', origin: ORIGIN, 'x-key': 'sesame' };

  it('may read the upstream response, with the sidecar’s CORS fields instead of the upstream’s', async () => {
    await using upstream = await startRecordingUpstream((_, response) => {
      response.writeHead(200, { 'access-control-allow-origin': '*', 'x-seen': 'yes' }).end('read me');
    });
    await using proxy = await startProxy(upstream.url, { guard: GUARD });
    const { status, headers: fields, text } = await call(`${proxy.url}/a`, { headers });
    expect([status, text]).toEqual([200, 'read me']);
    expect(fields).toMatchObject({ 'access-control-allow-origin': ORIGIN, 'x-seen': 'yes' });
    expect(upstream.requests[0]?.headers).not.toHaveProperty('x-key');
  });

  it('may read local replies with Retry-After', async () => {
    await using upstream = await startRecordingUpstream();
    await using proxy = await startProxy(upstream.url, { guard: GUARD });
    proxy.tokens.stop();
    const { status, headers: fields } = await call(`${proxy.url}/a`, { headers });
    expect(status).toBe(503);
    expect(fields).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-expose-headers': '*',
      'retry-after': '2',
    });
  });
});
