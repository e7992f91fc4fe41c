/** The parameters of the token request, in both body formats, as a server parses them. */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientAuthMethod } from '../../../src/token/client/client-authentication.ts';
import type { TokenEndpointOptions } from '../../../src/token/endpoint/token-endpoint.ts';
import { anyCodePoint } from '../../support/code-points.ts';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import type { RecordingUpstream, RespondTo } from '../../support/recording-upstream.ts';
import { askOnce, buildEndpoint, valuesOf } from './endpoint.ts';

let server: RecordingUpstream;
let respond: RespondTo;
const grant: RespondTo = (_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"access_token":"t0ken","expires_in":60}');
};
const refuse =
  (status: number, error: string): RespondTo =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  };
beforeAll(async () => {
  server = await startRecordingUpstream((...args) => respond(...args));
});
afterAll(() => server[Symbol.asyncDispose]());

/** Parses as strictly as the media types allow. */
function readBody(index: number): Record<string, unknown> {
  const { headers, body } = server.requests[index] ?? { headers: {}, body: Buffer.alloc(0) };
  const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  if (headers['content-type'] === 'application/json') return JSON.parse(text) as Record<string, unknown>;
  expect(headers['content-type']).toBe('application/x-www-form-urlencoded');
  const form = new URLSearchParams(text);
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name);
      return [name, values.length === 1 ? values[0] : values];
    }),
  );
}

async function send(options: Partial<TokenEndpointOptions>): Promise<Record<string, unknown>> {
  respond = grant;
  expect(await askOnce(buildEndpoint(new URL(server.url), options))).toMatchObject({ kind: 'ok' });
  return readBody(server.requests.length - 1);
}

const text = fc.string({ unit: anyCodePoint, minLength: 1, maxLength: 30 });
const OWN = ['audience', 'scope', 'resource', 'grant_type', '__proto__'];
const names = fc.stringMatching(/^[\w.-]{1,20}$/).filter((name) => !OWN.includes(name));
const several = fc.uniqueArray(text, { maxLength: 3 });
const one = (values: readonly string[]): unknown => (values.length === 1 ? values[0] : values);

test('generated parameters arrive as given, in a form and in JSON', async () => {
  const requests = fc.record({
    grantType: fc.oneof(fc.constant(''), text),
    audience: several,
    scope: fc.option(text, { nil: undefined }),
    resource: several,
    extra: fc.dictionary(names, text, { maxKeys: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(requests, fc.constantFrom('form', 'json'), async ({ extra, ...options }, bodyFormat) => {
      const { grantType, audience, scope, resource } = options;
      const sent = await send({
        ...{ ...options, bodyFormat, clientId: undefined, method: { name: 'none' } },
        extraParameters: valuesOf(extra),
      });
      expect(sent).toEqual({
        ...(grantType === '' ? {} : { grant_type: grantType }),
        ...(audience.length === 0 ? {} : { audience: one(audience) }),
        ...(scope === undefined ? {} : { scope }),
        ...(resource.length === 0 ? {} : { resource: one(resource) }),
        ...extra,
      });
    }),
    { numRuns: 150 },
  );
});

describe.each(['form', 'json'] as const)('as %s', (bodyFormat) => {
  test('client_secret_post is in the body', async () => {
    const method: ClientAuthMethod = { name: 'client_secret_post', secret: { kind: 'value', value: 'sesame-öffne' } };
    expect(await send({ bodyFormat, method, audience: [] })).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client-1',
      client_secret: 'sesame-öffne',
    });
  });

  test('with method none there is no client authentication but the extra parameters', async () => {
    const extraParameters = valuesOf({ client_id: 'a', client_secret: 'b', account: 'true' });
    const sent = await send({ bodyFormat, grantType: '', method: { name: 'none' }, audience: [], extraParameters });
    expect(sent).toEqual({ client_id: 'a', client_secret: 'b', account: 'true' });
    expect(server.requests.at(-1)?.headers).not.toHaveProperty('authorization');
  });
});

describe('a refusal of a request without audience, scope and resource', () => {
  const nothing = { audience: [], scope: undefined, resource: [] };
  const WORDS = 'none of auth.audience, auth.scope and auth.resource is set';

  test.each([
    [400, 'invalid_scope'],
    [400, 'invalid_request'],
    [400, 'invalid_target'],
    [403, 'access_denied'],
  ])('%i %s says that none is set', async (status, error) => {
    respond = refuse(status, error);
    const result = await askOnce(buildEndpoint(new URL(server.url), nothing));
    expect(result).toMatchObject({ kind: 'rejected', error, detail: expect.stringContaining(WORDS) as unknown });
  });

  test.each<[string, Partial<TokenEndpointOptions>]>([
    ['invalid_client', nothing],
    ['invalid_scope', { ...nothing, scope: 'a' }],
    ['invalid_target', { ...nothing, resource: ['urn:a'] }],
    ['access_denied', { ...nothing, audience: ['a'] }],
  ])('%s is not explained so for %j', async (error, options) => {
    respond = refuse(400, error);
    const result = await askOnce(buildEndpoint(new URL(server.url), options));
    expect(result.kind === 'rejected' && result.detail).not.toContain('none of');
  });
});

describe('a server that echoes an extra parameter', () => {
  test.each(['error_description', 'error'])('in "%s" finds it masked', async (member) => {
    respond = (_request, response) => {
      const body = { error: 'invalid_request', [member]: 'wrong: hunter2-hunter2!' };
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const extraParameters = valuesOf({ api_key: 'hunter2-hunter2!' });
    const result = await askOnce(buildEndpoint(new URL(server.url), { method: { name: 'none' }, extraParameters }));
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  test('as the token is refused when it is a secret by its name', async () => {
    respond = (_request, response) => {
      response.writeHead(200).end('{"access_token":"sesame-of-the-client","expires_in":60}');
    };
    const endpoint = buildEndpoint(new URL(server.url), {
      method: { name: 'none' },
      extraParameters: valuesOf({ client_secret: 'sesame-of-the-client' }),
    });
    expect(await askOnce(endpoint)).toMatchObject({ kind: 'malformed' });
  });
});
