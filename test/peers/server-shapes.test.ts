/**
 * The sidecar as users run it, with the settings that docs/authorization-servers.md gives for each product, against a stub of the product's
 * published shape: which bearer the upstream receives, and what the client reads when the server refuses.
 */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { listSecretEncodings } from '../../src/platform/secret-redaction.ts';
import { call } from '../support/calls.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { startCredentialRoutes, TOP_LEVEL } from './credential-routes.ts';
import type { CredentialRoutes, CredentialSettings } from './credential-routes.ts';
import { SERVER_SHAPES } from './server-shapes.ts';
import type { SecretMethod, ServerShape } from './server-shapes.ts';
import { clientIdFor, startShapeServer } from './shape-server.ts';
import type { ShapeServer } from './shape-server.ts';

/** What encodings change, and what a generated secret of these products may hold. */
const SPECIAL = `:%+&=/é日本"\\ ~%2B%41'`;

function newSpecialSecret(): string {
  const secret = `${randomBytes(6).toString('hex')}${SPECIAL}${randomBytes(6).toString('hex')}`;
  registerSecret('a client secret', secret);
  return secret;
}

interface AuthSettings {
  readonly method: SecretMethod;
  readonly basicEncoding?: string;
}

interface Case extends AsyncDisposable {
  /** Of all routes. */
  readonly clients: readonly Credential[];
  readonly server: ShapeServer;
  readonly routes: CredentialRoutes;
}

const routeOf = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** One sidecar with a route and a credential for each further method and each refusal. */
async function start(shape: ServerShape): Promise<Case> {
  await using starting = new AsyncDisposableStack();
  const registered = { id: `client-${randomBytes(4).toString('hex')}`, secret: newSpecialSecret() };
  const server = starting.use(await startShapeServer(shape, registered));
  const auth = { ...(parse(shape.auth) as AuthSettings), url: server.url };
  const [grantName = '', grant = ''] = Object.entries(shape.request.form)[0] ?? [];
  const clients: Credential[] = [registered];
  const credentials: Record<string, CredentialSettings> = {};
  for (const method of shape.request.methods.slice(1))
    credentials[routeOf(method)] = { method, clientId: registered.id, clientSecret: registered.secret };
  for (const { cause } of shape.refusals) {
    const isRegistered = cause === 'wrong secret' || cause === 'wrong grant';
    const client = {
      id: isRegistered ? registered.id : clientIdFor(cause),
      secret: cause === 'wrong grant' ? registered.secret : newSpecialSecret(),
    };
    clients.push(client);
    credentials[routeOf(cause)] = {
      method: auth.method,
      clientId: client.id,
      clientSecret: client.secret,
      ...(auth.basicEncoding === undefined ? {} : { basicEncoding: auth.basicEncoding }),
      ...(cause === 'wrong grant' ? { [grantName]: `${grant}2` } : {}),
    };
  }
  const top = { ...auth, clientId: registered.id, clientSecret: registered.secret };
  const routes = starting.use(await startCredentialRoutes(`shape-${routeOf(shape.name)}`, top, credentials));
  const running = starting.move();
  return { clients, server, routes, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** Everything that a person or a program may read. */
async function readAll({ sidecar }: CredentialRoutes): Promise<string> {
  const pages = await Promise.all(['/status', '/metrics', '/readyz'].map((path) => call(`${sidecar.adminUrl}${path}`)));
  return [sidecar.stdout(), sidecar.stderr(), ...pages.map(({ text }) => text)].join('\n');
}

describe.each(SERVER_SHAPES.map((shape) => [shape.name, shape] as const))('%s', (_, shape) => {
  const started = new AsyncDisposableStack();
  let running: Case;
  beforeAll(async () => {
    running = started.use(await start(shape));
  });
  afterAll(() => started.disposeAsync());

  test.each(shape.request.methods.map((method, index) => [method, index === 0 ? TOP_LEVEL : routeOf(method)]))(
    'with %s the upstream receives the token, by a secret of any characters',
    async (_method, route) => {
      const { routes, server } = running;
      const { status, text } = await routes.call(route);
      expect(server.faults).toEqual([]);
      expect(status, text).toBe(200);
      const bearer = routes.upstream.requests.at(-1)?.headers.authorization ?? '';
      expect(server.issued.some((token) => bearer === `Bearer ${token}`)).toBe(true);
    },
  );

  test.each(shape.refusals.map((refusal) => [refusal.cause, refusal] as const))(
    '%s: the reply has its code, the words of the server, and no secret',
    async (cause, { code, shows }) => {
      const { clients, routes, server } = running;
      const sent = routes.upstream.requests.length;
      const { status, text } = await routes.call(routeOf(cause));
      const reply = JSON.parse(text) as { code: string; detail: string };
      expect(server.faults).toEqual([]);
      expect(routes.upstream.requests).toHaveLength(sent);
      expect([status, reply.code]).toEqual([code === 'TOKEN_REJECTED' ? 502 : 503, code]);
      for (const words of shows) expect(reply.detail).toContain(words);
      expect(reply.detail).not.toMatch(/\p{Cc}|[<>]/u);
      for (const { id } of clients) expect(text).not.toContain(id);
    },
  );

  test('no secret is shown anywhere', async () => {
    const everything = await readAll(running.routes);
    for (const { id, secret } of running.clients)
      for (const form of [...listSecretEncodings(secret, id), JSON.stringify(secret).slice(1, -1)])
        expect(everything.includes(form)).toBe(false);
  });
});
