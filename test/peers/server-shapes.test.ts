/**
 * The sidecar as users run it, with the settings that docs/authorization-servers.md gives for each product, against a stub of the product's
 * published shape: which bearer the upstream receives, and what the client reads when the server refuses.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listSecretEncodings } from '../support/secret-encodings.ts';
import { call } from '../support/calls.ts';
import type { CredentialRoutes } from './credential-routes.ts';
import { SERVER_SHAPES } from './server-shapes.ts';
import { startShapeRoutes } from './shape-routes.ts';
import type { ShapeRoutes } from './shape-routes.ts';

/** Everything that a person or a program may read. */
async function readAll({ sidecar }: CredentialRoutes): Promise<string> {
  const pages = await Promise.all(['/status', '/metrics', '/readyz'].map((path) => call(`${sidecar.adminUrl}${path}`)));
  return [sidecar.stdout(), sidecar.stderr(), ...pages.map(({ text }) => text)].join('\n');
}

describe.each(SERVER_SHAPES.map((shape) => [shape.name, shape] as const))('%s', (_, shape) => {
  const started = new AsyncDisposableStack();
  let running: ShapeRoutes;
  beforeAll(async () => {
    running = started.use(await startShapeRoutes(shape));
  });
  afterAll(() => started.disposeAsync());

  test.each(shape.request.methods)(
    'with %s the upstream receives the token, by a secret of any characters',
    async (method) => {
      const { isObtained, text } = await running.callWith(method);
      expect(running.server.faults).toEqual([]);
      expect(isObtained, text).toBe(true);
    },
  );

  test.each(shape.refusals.map((refusal) => [refusal.cause, refusal] as const))(
    '%s: the reply has its code, the words of the server, and no secret',
    async (_cause, refusal) => {
      const { clients, routes, server } = running;
      const sent = routes.upstream.requests.length;
      const { status, code, detail } = await running.callRefused(refusal);
      expect(server.faults).toEqual([]);
      expect(routes.upstream.requests).toHaveLength(sent);
      expect([status, code]).toEqual([refusal.code === 'TOKEN_REJECTED' ? 502 : 503, refusal.code]);
      for (const words of refusal.shows) expect(detail).toContain(words);
      expect(detail).not.toMatch(/\p{Cc}|[<>]/u);
      for (const { id } of clients) expect(detail).not.toContain(id);
    },
  );

  test('no secret is shown anywhere', async () => {
    const everything = await readAll(running.routes);
    for (const { id, secret } of running.clients)
      for (const form of [...listSecretEncodings(secret, id), JSON.stringify(secret).slice(1, -1)])
        expect(everything.includes(form)).toBe(false);
  });
});
