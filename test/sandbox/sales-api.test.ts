/** The simulated Sales API over HTTP. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { Response } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { RequestRejection } from '../../src/sandbox/loopback-server.ts';
import { SalesService } from '../../src/sandbox/sales-api.ts';
import { roundsOf } from '../support/rounds.ts';
import { Partner, closeStarted } from './partner.ts';

const QUOTE = {
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
};
const HOLDER = { name: 'A. Traveller', email: 'a@traveller.example' };

afterEach(closeStarted);

async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  return (await response.json()) as Record<string, unknown>;
}

describe('selling', () => {
  test('creates a quote and its policy, and returns the policy', async () => {
    const partner = await Partner.start();
    const quoted = await partner.post('/quotes-requests', QUOTE);
    const quote = await jsonOf(quoted);
    expect(quoted.status).toBe(201);
    expect(quote).toEqual({
      quoteRequestId: expect.any(String) as string,
      premium: { amount: 48.86, currency: 'EUR' },
      simulated: true,
    });

    const { quoteRequestId, premium } = quote;
    const sold = await partner.post('/policies', { quoteRequestId, policyholder: HOLDER });
    const policy = await jsonOf(sold);
    expect(sold.status).toBe(201);
    expect(policy).toMatchObject({ quoteRequestId, premium, status: 'issued', simulated: true });
    const id = String(policy.policyId);
    expect(sold.headers.get('location')).toBe(`${partner.api.baseUrl.href}/policies/${id}`);

    const read = await partner.get(`/policies/${id}`);
    expect(read.status).toBe(200);
    expect(await read.json()).toEqual(policy);
  });

  test('accepts a charset on the JSON type and an empty query', async () => {
    const partner = await Partner.start();
    const type = { 'content-type': 'application/json; charset=utf-8' };
    expect((await partner.post('/quotes-requests?', QUOTE, type)).status).toBe(201);
  });

  test('keeps only the newest thousand quotes and policies', () => {
    const service = new SalesService();
    const quotes = Array.from({ length: 1001 }, () => service.createQuote({ days: 1, travellers: 1 }).quoteRequestId);
    const buy = (index: number): string => service.issuePolicy({ quoteRequestId: quotes[index] ?? '' }).policyId;
    expect(() => buy(0)).toThrow(RequestRejection);
    const policies = Array.from({ length: 1001 }, () => buy(1));
    expect(policies.map((id) => service.policy(id) === undefined).indexOf(false)).toBe(1);
  });

  test('sends three events and ends the stream', async () => {
    const partner = await Partner.start();
    const response = await partner.get('/events');
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const text = response.text();
    await partner.clock.advance(600);
    expect((await text).match(/^id: \d$/gm)).toEqual(['id: 1', 'id: 2', 'id: 3']);
    expect(partner.clock.pendingTimers).toBe(0);
  });

  test('a client that leaves an event stream leaves no timer behind', async () => {
    const partner = await Partner.start();
    const response = await partner.get('/events');
    const reader = response.body?.getReader();
    await reader?.read();
    expect(partner.clock.pendingTimers).toBe(1);
    await reader?.cancel();
    await expect.poll(() => partner.clock.pendingTimers).toBe(0);
  });
});

describe('input', () => {
  test.each<[string, unknown, Record<string, string>, number]>([
    ['a form', 'destination=ES', { 'content-type': 'application/x-www-form-urlencoded' }, 415],
    ['a type that only begins alike', '{}', { 'content-type': 'application/jsonp' }, 415],
    ['no JSON', '{"destination":', {}, 400],
    ['an array', '[]', {}, 400],
    ['null', 'null', {}, 400],
    ['nothing', '', {}, 400],
    ['no UTF-8', new Uint8Array([0x7b, 0xff, 0x7d]), {}, 400],
    ['too much', JSON.stringify({ ...QUOTE, pad: 'x'.repeat(65 * 1024) }), {}, 413],
    ['far too much', JSON.stringify({ ...QUOTE, pad: 'x'.repeat(1024 * 1024) }), {}, 413],
  ])('%s is refused', async (_name, body, fields, status) => {
    const partner = await Partner.start();
    const response = await partner.post('/quotes-requests', body, fields);
    expect(response.status).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(await response.json()).toMatchObject({ status, simulated: true });
  });

  const UNKNOWN_ID = randomUUID();

  test.each<[string, string, unknown, string[]]>([
    ['an empty quote', '/quotes-requests', {}, ['destination', 'startDate', 'endDate', 'travellers']],
    ['a day that does not exist', '/quotes-requests', { ...QUOTE, startDate: '2027-02-30' }, ['startDate']],
    ['an end before its start', '/quotes-requests', { ...QUOTE, endDate: '2027-06-30' }, ['endDate']],
    ['no travellers', '/quotes-requests', { ...QUOTE, travellers: [] }, ['travellers']],
    [
      'ten travellers',
      '/quotes-requests',
      { ...QUOTE, travellers: Array(10).fill(QUOTE.travellers[0]) },
      ['travellers'],
    ],
    [
      'odd travellers',
      '/quotes-requests',
      { ...QUOTE, travellers: [{}, 'x'] },
      ['travellers[0].birthDate', 'travellers[1]'],
    ],
    ['a destination of the wrong type', '/quotes-requests', { ...QUOTE, destination: 7 }, ['destination']],
    ['an endless destination', '/quotes-requests', { ...QUOTE, destination: 'x'.repeat(201) }, ['destination']],
    ['an empty policy', '/policies', {}, ['quoteRequestId', 'policyholder']],
    [
      'a nameless holder',
      '/policies',
      { quoteRequestId: UNKNOWN_ID, policyholder: { email: 'a@b' } },
      ['policyholder.name'],
    ],
    ['an unknown quote', '/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['quoteRequestId']],
    ['a quote without an id', '/policies', { quoteRequestId: 'x', policyholder: HOLDER }, ['quoteRequestId']],
    ['an unknown query parameter', '/quotes-requests?channel=web&x', QUOTE, ['?channel', '?x']],
  ])('%s: 400 that names the fields', async (_name, path, body, fields) => {
    const partner = await Partner.start();
    const response = await partner.post(path, body);
    expect(response.status).toBe(400);
    const { errors } = (await response.json()) as { errors: { field: string; message: string }[] };
    expect(errors.map(({ field }) => field)).toEqual(fields);
    expect(errors.every(({ message }) => message.length > 0)).toBe(true);
  });

  test('another method: 405 with Allow', async () => {
    const partner = await Partner.start();
    const response = await partner.get('/policies');
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('POST');
  });

  test('an unknown policy or path: 404; an id that is none: 400', async () => {
    const partner = await Partner.start();
    for (const path of [`/policies/${UNKNOWN_ID}`, '/', '/policy', '/policies/', `/policies/${UNKNOWN_ID}/x`])
      expect((await partner.get(path)).status).toBe(404);
    for (const id of ['unknown', `${UNKNOWN_ID}x`, UNKNOWN_ID.replace('-', '%2d'), '%00'])
      expect((await partner.get(`/policies/${id}`)).status).toBe(400);
  });

  const members = [
    ['/quotes-requests', QUOTE, ['destination']],
    ['/quotes-requests', QUOTE, ['startDate']],
    ['/quotes-requests', QUOTE, ['endDate']],
    ['/quotes-requests', QUOTE, ['travellers']],
    ['/quotes-requests', QUOTE, ['travellers', 0, 'birthDate']],
    ['/quotes-requests', QUOTE, ['travellers', 0, 'other']],
    ['/quotes-requests', QUOTE, ['other']],
    ['/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['quoteRequestId']],
    ['/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['policyholder']],
    ['/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['policyholder', 'name']],
    ['/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['policyholder', 'email']],
    ['/policies', { quoteRequestId: UNKNOWN_ID, policyholder: HOLDER }, ['policyholder', 'other']],
  ] as const;
  const wrongText = fc
    .tuple(
      fc.string(),
      fc.constantFrom('<script>', '<', '>', '\0', '\n', '\u001b', '\u007f', '\u0085', '\ud800'),
      fc.string(),
    )
    .map((parts) => parts.join(''));
  const wrongValue = fc.oneof(
    wrongText,
    fc.constant(''),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constant([]),
  );

  test('any wrong value in any field: 400 that names the field', async () => {
    const partner = await Partner.start();
    const check = fc.asyncProperty(fc.constantFrom(...members), wrongValue, async ([path, valid, keys], value) => {
      const body: unknown = structuredClone(valid);
      let parent = body as Record<string | number, unknown>;
      for (const key of keys.slice(0, -1)) parent = parent[key] as typeof parent;
      parent[keys.at(-1) ?? ''] = value;
      const response = await partner.post(path, body);
      const { errors } = (await response.json()) as { errors: { field: string }[] };
      expect(response.status).toBe(400);
      expect(errors.map(({ field }) => field)).toContain(keys.join('.').replace('.0', '[0]'));
    });
    await fc.assert(check, { numRuns: roundsOf({ check: 200, soak: 5000 }) });
  });

  test('a role that may only read sells nothing: 403 with the reason', async () => {
    const partner = await Partner.start();
    const authorization = `Bearer ${partner.token(undefined, undefined, 'reader')}`;
    const response = await partner.post('/quotes-requests', QUOTE, { authorization });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ detail: 'The role reader of this client may read only.' });
    expect((await partner.get(`/policies/${UNKNOWN_ID}`, authorization)).status).toBe(404);
  });
});

describe('closing', () => {
  test('concurrent closes end together and cut an open stream', async () => {
    const partner = await Partner.start();
    const response = await partner.get('/events');
    const text = response.text();
    const cut = expect(text).rejects.toThrow();
    await Promise.all([partner.api.close(), partner.api.close()]);
    await cut;
    await expect.poll(() => partner.clock.pendingTimers).toBe(0);
  });
});
