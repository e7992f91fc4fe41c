/**
 * The sidecar as users run it, with the settings that docs/authorization-servers.md gives for each product, against a stub of the product's
 * published shape: which bearer the upstream receives, and what the client reads when the server refuses.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { listSecretEncodings } from '../../src/platform/secret-redaction.ts';
import { call } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { startSidecar } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
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
  readonly shape: ServerShape;
  readonly credential: Credential;
  readonly secrets: readonly Credential[];
  readonly server: ShapeServer;
  readonly upstream: RecordingUpstream;
  readonly sidecar: RunningSidecar;
}

const name = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-');

/** One sidecar with a route and a credential for each method and each refusal. */
async function start(shape: ServerShape): Promise<Case> {
  const running = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'server-shapes-'));
  running.defer(() => {
    rmSync(folder, { recursive: true });
  });
  const credential = { id: `client-${randomBytes(4).toString('hex')}`, secret: newSpecialSecret() };
  const server = running.use(await startShapeServer(shape, credential));
  const upstream = running.use(await startRecordingUpstream());
  const auth = { ...(parse(shape.auth) as AuthSettings), url: server.url };
  const [grantName = '', grant = ''] = Object.entries(shape.request.form)[0] ?? [];
  const ownClient = ({ id, secret }: Credential, method = auth.method) => ({
    clientId: id,
    clientSecret: secret,
    method,
    ...(method === auth.method && auth.basicEncoding !== undefined ? { basicEncoding: auth.basicEncoding } : {}),
  });
  const secrets: Credential[] = [credential];
  const credentials: Record<string, object> = {};
  for (const method of shape.request.methods.slice(1)) credentials[name(method)] = ownClient(credential, method);
  for (const { cause } of shape.refusals) {
    const client = {
      id: ['wrong secret', 'wrong grant'].includes(cause) ? credential.id : clientIdFor(cause),
      secret: cause === 'wrong grant' ? credential.secret : newSpecialSecret(),
    };
    secrets.push(client);
    credentials[name(cause)] = {
      ...ownClient(client),
      ...(cause === 'wrong grant' ? { [grantName]: grant.replace('policies', 'other').concat('2') } : {}),
    };
  }
  const file = join(folder, 'sidecar.json');
  const route = (each: string) => ({ name: each, pathPrefix: `/${each}`, baseUrl: upstream.url, credential: each });
  const routes = [
    { ...route(name(shape.request.methods[0] ?? '')), credential: 'default' },
    ...Object.keys(credentials).map(route),
  ];
  const all = { auth: { ...auth, clientId: credential.id, clientSecret: credential.secret }, credentials, routes };
  writeFileSync(file, JSON.stringify(all), { mode: 0o600 });
  try {
    const sidecar = running.use(
      await startSidecar({
        name: `shape-${name(shape.name)}`,
        args: ['--config', file],
        env: { SIDECAR_LOG_LEVEL: 'debug' },
      }),
    );
    const stack = running.move();
    return { shape, credential, secrets, server, upstream, sidecar, [Symbol.asyncDispose]: () => stack.disposeAsync() };
  } catch (error) {
    await running.disposeAsync();
    throw error;
  }
}

/** Everything that a person or a program may read. */
async function readAll({ sidecar }: Case): Promise<string> {
  const pages = await Promise.all(['/status', '/metrics', '/readyz'].map((path) => call(`${sidecar.adminUrl}${path}`)));
  return [sidecar.stdout(), sidecar.stderr(), ...pages.map(({ text }) => text)].join('\n');
}

describe.each(SERVER_SHAPES.map((shape) => [shape.name, shape] as const))('%s', (_, shape) => {
  let running: Case;
  beforeAll(async () => {
    running = await start(shape);
  });
  afterAll(() => running[Symbol.asyncDispose]());

  test.each(shape.request.methods)(
    'with %s the upstream receives the token, by a secret of any characters',
    async (method) => {
      const { sidecar, server, upstream } = running;
      const response = await call(`${sidecar.proxyUrl}/${name(method)}/policies`);
      expect(server.faults).toEqual([]);
      expect(response.status, response.text).toBe(200);
      const bearer = upstream.requests.at(-1)?.headers.authorization ?? '';
      expect(server.issued.some((token) => bearer === `Bearer ${token}`)).toBe(true);
    },
  );

  test.each(shape.refusals.map((refusal) => [refusal.cause, refusal] as const))(
    '%s: the reply has its code, the words of the server, and no secret',
    async (_cause, { code, shows, cause }) => {
      const { sidecar, secrets, server, upstream } = running;
      const sent = upstream.requests.length;
      const { status, text } = await call(`${sidecar.proxyUrl}/${name(cause)}`);
      const reply = JSON.parse(text) as { code: string; detail: string };
      expect(server.faults).toEqual([]);
      expect(upstream.requests).toHaveLength(sent);
      expect([status, reply.code]).toEqual([code === 'TOKEN_REJECTED' ? 502 : 503, code]);
      for (const words of shows) expect(reply.detail).toContain(words);
      expect(reply.detail).not.toMatch(/\p{Cc}|[<>]/u);
      for (const { id } of secrets) expect(text).not.toContain(id);
    },
  );

  test('no secret is shown anywhere', async () => {
    const everything = await readAll(running);
    for (const { id, secret } of running.secrets)
      for (const form of [...listSecretEncodings(secret, id), JSON.stringify(secret).slice(1, -1)])
        expect(everything.includes(form)).toBe(false);
  });
});
