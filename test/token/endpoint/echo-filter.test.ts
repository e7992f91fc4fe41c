/** A token endpoint that echoes the client secret or the token, in any field and encoding. Neither is shown. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HeldTokenSource } from '../../../src/token/source/token-source.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { call } from '../../support/calls.ts';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, spawnSidecar, startSidecar } from '../../support/sidecar-process.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { askOnce, buildEndpoint } from './endpoint.ts';

const CLIENT_ID = 'client-1';
const TOKEN = 'an-access-token-0123456789';

const escapeAll = (text: string): string =>
  Buffer.from(text, 'utf8')
    .toString('hex')
    .replaceAll(/../g, (byte) => `%${byte}`);

/** How a server may encode a secret. */
const FORMS: Readonly<Record<string, (secret: string) => string>> = {
  unchanged: (secret) => secret,
  'percent-encoded': (secret) => encodeURIComponent(secret),
  'percent-encoded in every character': escapeAll,
  'percent-encoded in lower case': (secret) =>
    encodeURIComponent(secret).replaceAll(/%../g, (one) => one.toLowerCase()),
  'form-encoded': (secret) => new URLSearchParams([['', secret]]).toString().slice(1),
  'in base64': (secret) => Buffer.from(secret, 'utf8').toString('base64'),
  'in base64url': (secret) => Buffer.from(secret, 'utf8').toString('base64url'),
  'as Basic credentials': (secret) => `Basic ${Buffer.from(`${CLIENT_ID}:${secret}`, 'utf8').toString('base64')}`,
  'in base64 of more': (secret) => Buffer.from(`the secret is ${secret}, is it not?`, 'utf8').toString('base64'),
  'with controls between': (secret) => Array.from(secret).join('\u0001'),
};
const FIELDS = ['access_token', 'token_type', 'expires_in', 'scope', 'error', 'error_description', 'error_uri', 'x'];

/** Whether a text holds the secret in an encoding that can be reversed. */
function holds(text: string, secret: string): boolean {
  const forms = Object.values(FORMS).map((form) => form(secret).replace(/=+$/, ''));
  return [...forms, ...forms.map((form) => JSON.stringify(form).slice(1, -1))].some((form) => text.includes(form));
}

const secrets = fc.oneof(
  fc.stringMatching(/^[\x21-\x7e]{8,40}$/),
  fc
    .string({ unit: 'grapheme', minLength: 8, maxLength: 30 })
    .filter((text) => text.isWellFormed() && text.trim() === text),
);

describe('a token endpoint that echoes the client secret', () => {
  it('shows it in no event, state or fault', async () => {
    let reply = { status: 200, body: '{}' };
    const server = await startRecordingUpstream((_request, response) => {
      response.writeHead(reply.status, { 'content-type': 'application/json' }).end(reply.body);
    });
    onTestFinished(() => server[Symbol.asyncDispose]());
    const run = async (secret: string, status: number, fields: Readonly<Record<string, string>>): Promise<string> => {
      const events: SidecarEvent[] = [];
      const observe = (event: SidecarEvent): void => void events.push(event);
      const method = {
        name: 'client_secret_basic',
        secret: { kind: 'value', value: secret },
        encoding: 'raw',
      } as const;
      reply = {
        status,
        body: JSON.stringify({ access_token: TOKEN, token_type: 'Bearer', expires_in: 60, ...fields }),
      };
      const endpoint = buildEndpoint(new URL(`${server.url}/oauth/token`), { method, observe });
      const result = await askOnce(endpoint);
      const clock = new ManualClock();
      const fetcher = { fetch: () => Promise.resolve(result) };
      const common = {
        credentialWatch: undefined,
        credential: 'default',
        scope: 'urn:a',
        invalidationCooldownMs: 5000,
        settleMs: 2000,
        clock,
        observe,
      };
      const source = new HeldTokenSource({ ...common, fetcher, random: () => 0 });
      source.start();
      await clock.advance(1);
      const fault = await source.waitForToken(AbortSignal.abort(new Error('left'))).catch(String);
      source.stop();
      const shown = result.kind === 'ok' ? { ...result, value: '' } : result;
      return JSON.stringify([shown, events, source.state(), typeof fault === 'string' ? fault : '']);
    };
    await fc.assert(
      fc.asyncProperty(
        secrets,
        fc.constantFrom(200, 200, 200, 201, 400, 401, 403, 404, 500),
        fc.dictionary(fc.constantFrom(...FIELDS), fc.constantFrom(...Object.keys(FORMS)), { minKeys: 1, maxKeys: 2 }),
        fc.constantFrom('', 'urn:a ', 'x='),
        async (secret, status, echoes, before) => {
          const fields = Object.fromEntries(
            Object.entries(echoes).map(([field, form]) => [field, `${before}${FORMS[form]?.(secret) ?? ''}`]),
          );
          expect(holds(await run(secret, status, fields), secret)).toBe(false);
        },
      ),
      { numRuns: 500 },
    );
  });

  it.each([
    ['unchanged', 'a-secret-of-the-client', 'a-secret-of-the-client'],
    ['percent-encoded in UTF-8', 'ein-schlüssel', 'ein-schl%c3%bcssel'],
    ['percent-encoded in ISO 8859-1', 'ein-schlüssel', 'ein-schl%FCssel'],
  ])('as the access token, %s, is refused, because the upstream would receive it', async (_form, secret, token) => {
    const body = JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 60 });
    const server = await startRecordingUpstream((_request, response) => void response.end(body));
    onTestFinished(() => server[Symbol.asyncDispose]());
    const method = { name: 'client_secret_post', secret: { kind: 'value', value: secret } } as const;
    const result = await askOnce(buildEndpoint(new URL(server.url), { method }));
    expect(result).toMatchObject({
      kind: 'malformed',
      detail: expect.stringContaining('credential of the client') as string,
    });
  });

  it('keeps a requested scope, though it contains the secret', async () => {
    const body = JSON.stringify({ access_token: TOKEN, token_type: 'Bearer', expires_in: 60, scope: 'urn:sales' });
    const server = await startRecordingUpstream((_request, response) => void response.end(body));
    onTestFinished(() => server[Symbol.asyncDispose]());
    const method = { name: 'client_secret_post', secret: { kind: 'value', value: 'sales' } } as const;
    const endpoint = buildEndpoint(new URL(server.url), { method, scope: 'urn:write urn:sales' });
    expect(await askOnce(endpoint)).toMatchObject({ kind: 'ok', scope: 'urn:sales' });
  });
});

describe('a real process', () => {
  it.each(['200', '400'])('shows neither the secret nor the token in any output, status %s', async (status) => {
    const credential = newCredential();
    const tokens = await startRecordingUpstream((_request, response) => {
      const echo = Object.values(FORMS).map((form) => form(credential.secret));
      const all = [...echo, Buffer.from(`${credential.id}:${credential.secret}`).toString('base64'), TOKEN].join(' ');
      const grant = { access_token: TOKEN, token_type: 'Bearer', expires_in: 60, scope: all };
      response.writeHead(Number(status), { 'content-type': 'application/json', 'x-echo': 'all' });
      response.end(JSON.stringify({ ...grant, error: all, error_description: all, error_uri: all }));
    });
    const upstream = await startRecordingUpstream((_request, response) => void response.end('{}'));
    onTestFinished(() => tokens[Symbol.asyncDispose]());
    onTestFinished(() => upstream[Symbol.asyncDispose]());
    const env = {
      ...baseSettings(upstream.url, tokens.url, credential),
      SIDECAR_SCOPE: 'urn:a',
      SIDECAR_LOG_LEVEL: 'trace',
    };
    await using sidecar = await startSidecar({ name: `echo-${status}`, env });
    await sidecar.waitForLine(/"msg":"token (request failed|obtained)/);
    const texts = [(await call(sidecar.proxyUrl)).text];
    for (const path of ['/', '/status', '/metrics', '/readyz']) texts.push((await call(sidecar.adminUrl + path)).text);
    for (const args of [['check'], ['check', '--json'], ['config']]) {
      const command = spawnSidecar({ name: `echo-${status}-${args.join('')}`, args, env });
      await command.exit;
      texts.push(command.stdout(), command.stderr());
    }
    await sidecar.stop('SIGTERM');
    const all = [...texts, sidecar.stdout(), sidecar.stderr()].join('\n');
    expect(holds(all, credential.secret)).toBe(false);
    expect(all).not.toContain(
      Buffer.from(`${credential.id}:${credential.secret}`).toString('base64').replace(/=+$/, ''),
    );
    expect(all).not.toContain(TOKEN);
  });
});
