/**
 * Authorization servers that repeat the token request in their refusals, in any member and any encoding: no part of the secret reaches the
 * client, the log or the status.
 */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formEncode } from '../../src/platform/secret-redaction.ts';
import { listSecretEncodings } from '../support/secret-encodings.ts';
import { call } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { registerSecret } from '../support/secrets.ts';
import { startCredentialRoutes } from './credential-routes.ts';
import type { CredentialSettings } from './credential-routes.ts';

interface Client {
  readonly id: string;
  readonly secret: string;
  /** Parts of the secret that no encoding changes. */
  readonly parts: readonly string[];
}

const MEMBERS = [
  'error',
  'error_description',
  'error_uri',
  'errorCode',
  'errorSummary',
  'errorId',
  'trace_id',
  'correlation_id',
  'message',
] as const;

const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => `&#${String(character.codePointAt(0))};`);

/** How servers quote what they received. */
const QUOTATIONS: Readonly<Record<string, (client: Client) => string>> = {
  plain: ({ secret }) => `the secret ${secret} is wrong`,
  'form-encoded': ({ secret }) => `client_secret=${formEncode(secret)}`,
  'percent-encoded': ({ secret }) => encodeURIComponent(secret),
  'percent-encoded in lower case': ({ secret }) =>
    encodeURIComponent(secret).replaceAll(/%../g, (escape) => escape.toLowerCase()),
  HTML: ({ secret }) => `<b>${escapeHtml(secret)}</b>`,
  JSON: ({ secret }) => JSON.stringify({ client_secret: secret }),
  'over two lines': ({ secret }) => `${secret.slice(0, 20)}\r\n${secret.slice(20)}`,
  'with zero bytes': ({ secret }) => Array.from(secret).join('\u0000'),
  'in long text': ({ secret }) => `${'Trace ID: 1 '.repeat(100)}${secret}${' and more'.repeat(100)}`,
  'at the cut of 100': ({ secret }) => `${'x'.repeat(90)}${secret}`,
  'at the cut of 200': ({ secret }) => `${'x'.repeat(190)}${secret}`,
  'at the cut of 500': ({ secret }) => `${'x '.repeat(245)}${secret}`,
  Basic: ({ id, secret }) => `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
  'base64 of more': ({ id, secret }) => Buffer.from(`user ${id}:${secret} unknown`).toString('base64url'),
};

function newClient(special: string): Client {
  const parts = [randomBytes(6).toString('hex'), randomBytes(6).toString('hex')];
  const secret = parts.join(special);
  registerSecret('a client secret', secret);
  return { id: `client-${randomBytes(4).toString('hex')}`, secret, parts };
}

test('no part of a secret is repeated', async () => {
  const unit = fc.constantFrom(...Array.from(`:%+&=/é日本"\\ ~'<>`), '%2B', '%41', 'a', 'Z', '0');
  const specials = fc.string({ unit, minLength: 1, maxLength: 12 });
  const cases = Object.entries(QUOTATIONS).flatMap(([quotation, quote]) =>
    MEMBERS.map((member, index) => {
      const special = fc.sample(specials, 1)[0] ?? '';
      const title = `${quotation} in ${member}, ${JSON.stringify(special)} between the parts`;
      const status = index % 3 === 0 ? 400 : index % 3 === 1 ? 401 : 429;
      return { quote, member, title, status, client: newClient(special) };
    }),
  );
  const byId = new Map(cases.map((each) => [each.client.id, each]));
  await using server = await startRecordingUpstream((request, response) => {
    const found = byId.get(new URLSearchParams(request.body.toString()).get('client_id') ?? '');
    if (found === undefined) throw new Error('an unknown client');
    const { member, quote, client, status } = found;
    const body = { error: 'invalid_client', [member]: quote(client) };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const settings = cases.map(({ client }, index): [string, CredentialSettings] => [
    `client-${String(index)}`,
    { method: 'client_secret_post', clientId: client.id, clientSecret: client.secret },
  ]);
  const top = { url: server.url, scope: 'a', ...settings[0]?.[1] };
  await using routes = await startCredentialRoutes('server-echoes', top, Object.fromEntries(settings));
  const replies = await Promise.all(settings.map(([route]) => routes.call(route)));
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([502, 503]));
  const status = await call(`${routes.sidecar.adminUrl}/status`);
  const outside = [status.text, routes.sidecar.stdout(), routes.sidecar.stderr()].join('\n');
  const repeated = cases.filter(({ client }, index) => {
    const text = `${replies[index]?.text ?? ''}\n${outside}`;
    return [...client.parts, ...listSecretEncodings(client.secret, client.id)].some((part) => text.includes(part));
  });
  expect(repeated.map(({ title }) => title)).toEqual([]);
});
