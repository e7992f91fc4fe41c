/** A 403 for want of a scope is the upstream's last word: passed on as it is, named, and never tried again. */
import { expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import type { RespondTo } from '../support/recording-upstream.ts';

const CHALLENGE = 'Bearer error="insufficient_scope", scope="urn:example.write"';

it.each([
  ['GET', {}],
  ['POST', {}],
  // As if it were a limit of the rate, which it is not.
  ['POST', { 'retry-after': '1', 'x-ratelimit-remaining': '0' }],
])('%s with it and %j as the response: one attempt, one token, the response unchanged', async (method, fields) => {
  const refuse: RespondTo = (_request, response) => {
    response.writeHead(403, { ...fields, 'www-authenticate': CHALLENGE, 'x-own': 'upstream' }).end('{"no":"scope"}');
  };
  const { url, api, tokens, eventsOf, metric, sidecar } = await startInProcess({ respond: refuse });
  for (let n = 0; n < 3; n++) {
    const response = await send(url, { method, ...(method === 'POST' ? { body: '{}' } : {}) });
    expect(response).toMatchObject({ status: 403, text: '{"no":"scope"}' });
    expect(response.fields).toMatchObject({ 'www-authenticate': CHALLENGE, 'x-own': 'upstream' });
  }
  expect(api.requests).toHaveLength(3);
  expect(tokens.requests).toHaveLength(1);
  expect(eventsOf('retry')).toEqual([]);
  expect(eventsOf('rate-limited')).toEqual([]);
  expect(eventsOf('insufficient-scope')).toEqual(
    Array(3).fill({ kind: 'insufficient-scope', route: 'default', needed: 'urn:example.write' }),
  );
  expect(await metric('bearer_sidecar_insufficient_scope_total{route="default"}')).toBe(3);
  const status = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Record<string, unknown>;
  expect(status).toMatchObject({
    degraded: [expect.stringContaining('urn:example.write')],
    insufficientScope: [{ route: 'default', count: 3, needed: 'urn:example.write' }],
  });
});
