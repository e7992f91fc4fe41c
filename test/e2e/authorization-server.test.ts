/** Against an authorization server that we did not write: oidc-provider, with both token formats. */
import { describe, expect, it } from 'vitest';
import { FOREIGN_SCOPE, startAuthorizationServer } from '../support/authorization-server.ts';
import { call, post } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';

describe.each(['jwt', 'opaque'] as const)('oidc-provider with %s tokens', (format) => {
  it('gives a token for audience and scope, which the upstream receives as a bearer', async () => {
    await using authorization = await startAuthorizationServer(format);
    await using upstream = await startRecordingUpstream();
    const env = {
      ...baseSettings(upstream.url, authorization.url, authorization.credential),
      SIDECAR_AUDIENCE: authorization.audience,
      SIDECAR_SCOPE: authorization.scope,
    };
    await using sidecar = await startSidecar({ name: `oidc-${format}`, env });
    await waitUntilReady(sidecar);
    const response = await post(
      `${sidecar.proxyUrl}/policies?draft=1`,
      { traveller: 'A' },
      { authorization: 'Basic bWU6bWU=' },
    );
    expect(response).toMatchObject({ status: 200, text: '{"traveller":"A"}' });
    const [request] = upstream.requests;
    expect(request?.path).toBe('/policies?draft=1');
    expect(request?.headers.authorization).toMatch(
      format === 'jwt' ? /^Bearer [\w-]+\.[\w-]+\.[\w-]+$/ : /^Bearer [\w-]+$/,
    );
    expect(authorization.tokenRequests()).toBe(1);
  });
});

describe('oidc-provider refuses', () => {
  it.each([
    ['a wrong secret', { SIDECAR_CLIENT_SECRET: 'wrong-but-long-enough' }, 'invalid_client'],
    ['a scope that the client may not have', { SIDECAR_SCOPE: FOREIGN_SCOPE }, 'invalid_scope'],
  ])('%s: 502 TOKEN_REJECTED names the error', async (name, override, error) => {
    await using authorization = await startAuthorizationServer('opaque');
    await using upstream = await startRecordingUpstream();
    const env = {
      ...baseSettings(upstream.url, authorization.url, authorization.credential),
      SIDECAR_SCOPE: authorization.scope,
      ...override,
    };
    await using sidecar = await startSidecar({ name: `oidc-refuses-${name.replaceAll(' ', '-')}`, env });
    const response = await call(`${sidecar.proxyUrl}/policies`);
    expect(response.status).toBe(502);
    expect(response.headers).toMatchObject({
      'content-type': 'application/problem+json',
      'proxy-status': expect.stringContaining('error=destination_unavailable') as string,
    });
    expect(JSON.parse(response.text)).toMatchObject({ status: 502, code: 'TOKEN_REJECTED' });
    expect(response.text).toContain(error);
    expect(upstream.requests).toHaveLength(0);
    expect((await call(`${sidecar.proxyUrl}/policies`)).status).toBe(502);
    expect(authorization.tokenRequests()).toBe(1);
  });
});
