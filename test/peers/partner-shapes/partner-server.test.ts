/** The stub of the partners is strict: it refuses a token request or a call that differs from the shape in one thing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { request } from 'undici';
import { createCustomer, makeKeys } from './customer.ts';
import type { Customer } from './customer.ts';
import { OAUTH_PARTNERS } from './oauth-partners.ts';
import { CALLS_PATH, CLIENT_QUERY, startPartnerServer } from './partner-server.ts';

/** A token request with a JSON body; the calls have a header field of the customer's own. */
const SHAPE = OAUTH_PARTNERS.find(({ key }) => key === 'personio');

interface Sent {
  readonly method: 'POST' | 'PUT';
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const started = new AsyncDisposableStack();
let customer: Customer;
let url: string;

beforeAll(async () => {
  if (SHAPE === undefined) throw new Error('the shape is missing');
  const keys = started.use(makeKeys());
  customer = createCustomer(SHAPE, keys);
  url = started.use(await startPartnerServer([customer], keys)).urlOf(customer);
});
afterAll(() => started.disposeAsync());

function rightParameters(): Readonly<Record<string, unknown>> {
  return { client_id: customer.clientId, client_secret: customer.clientSecret };
}

async function requestToken(given: Partial<Sent> = {}): Promise<{ readonly status: number; readonly token: string }> {
  const { method = 'POST', target = '/v1/auth', headers = {}, body = JSON.stringify(rightParameters()) } = given;
  const response = await request(url + target, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const reply = (await response.body.json()) as { readonly data?: { readonly token: string } };
  return { status: response.statusCode, token: reply.data?.token ?? '' };
}

async function callWith(headers: readonly string[], query = CLIENT_QUERY): Promise<number> {
  const { statusCode, body } = await request(`${url}${CALLS_PATH}/call?${query}`, { headers: [...headers] });
  await body.dump();
  return statusCode;
}

describe('a token request', () => {
  test('as the shape says gets a token', async () => {
    expect(await requestToken()).toMatchObject({ status: 200, token: expect.stringMatching(/^token-/) as string });
  });

  test.each<[string, () => Partial<Sent>]>([
    ['another method', () => ({ method: 'PUT' })],
    ['another path', () => ({ target: '/v1/auth/' })],
    ['a query', () => ({ target: '/v1/auth?a=b' })],
    ['another Content-Type', () => ({ headers: { 'content-type': 'text/plain' } })],
    ['HTTP Basic besides', () => ({ headers: { authorization: 'Basic YTpi' } })],
    ['a form', () => ({ body: new URLSearchParams(rightParameters() as Record<string, string>).toString() })],
    [
      'an additional parameter',
      () => ({ body: JSON.stringify({ ...rightParameters(), grant_type: 'client_credentials' }) }),
    ],
    ['a missing parameter', () => ({ body: JSON.stringify({ client_id: customer.clientId }) })],
    ['a number for a text', () => ({ body: JSON.stringify({ ...rightParameters(), client_secret: 1 }) })],
    ['a wrong secret', () => ({ body: JSON.stringify({ ...rightParameters(), client_secret: 'wrong' }) })],
  ])('with %s gets none', async (_, change) => {
    const { status, token } = await requestToken(change());
    expect([400, 401]).toContain(status);
    expect(token).toBe('');
  });
});

describe('a call', () => {
  const rightFields = async (): Promise<string[]> => {
    const fields = Object.entries(customer.shape.call.fields).flatMap(([name, text]) => [name, customer.fill(text)]);
    return ['authorization', `Bearer ${(await requestToken()).token}`, ...fields];
  };

  test('as the shape says is taken', async () => {
    expect(await callWith(await rightFields())).toBe(200);
  });

  test.each<[string, (fields: readonly string[]) => readonly string[]]>([
    ['no token', (fields) => fields.slice(2)],
    ['a token of another', ([name = '', , ...rest]) => [name, 'Bearer token-of-another', ...rest]],
    ['another prefix', ([name = '', value = '', ...rest]) => [name, value.replace('Bearer', 'bearer'), ...rest]],
    ['two Authorization fields', (fields) => [...fields, 'Authorization', 'Basic YTpi']],
    ['the token in another field', ([, value = '', ...rest]) => ['x-token', value, ...rest]],
    ['a missing field', (fields) => fields.slice(0, -2)],
    ['another value of a field', (fields) => [...fields.slice(0, -1), 'wrong']],
    ['a field twice', (fields) => [...fields, ...fields.slice(-2)]],
    ['the token in a further field', (fields) => [...fields, 'x-token', (fields[1] ?? '').replace('Bearer ', '')]],
  ])('with %s is refused', async (_, change) => {
    expect(await callWith(change(await rightFields()))).toBe(401);
  });

  test.each(['', 'page=2', `${CLIENT_QUERY}&page=2`, `${CLIENT_QUERY}&key=a`])(
    'with the query %j is refused',
    async (query) => {
      expect(await callWith(await rightFields(), query)).toBe(401);
    },
  );
});
