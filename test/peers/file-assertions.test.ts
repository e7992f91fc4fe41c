/**
 * A client without a stored secret, as a user runs it: against stubs that follow the published rules of Entra ID and Keycloak (no
 * product was tried), and against oidc-provider, which takes each assertion once.
 */
import { chmod } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAssertionIssuer, ASSERTION_SUBJECT } from '../support/assertion-issuer.ts';
import type { AssertionIssuer, Claims } from '../support/assertion-issuer.ts';
import { call, post } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import { runCheck } from '../support/check-run.ts';
import { mountSecret } from '../support/mounted-secret.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { Environment } from '../support/sidecar-process.ts';
import { waitUntil } from '../support/until.ts';
import { AUDIENCE, publicJwks, startOidcProvider } from './authorization-servers.ts';
import { startEntraStub, startKeycloakStub } from './federated-credentials.ts';
import type { FederatedStub } from './federated-credentials.ts';

const CLIENT_ID = '6731de76-14a6-49ae-97bc-6eba6914391e';

let upstream: RecordingUpstream;
beforeAll(async () => {
  upstream = await startRecordingUpstream();
});
afterAll(() => upstream[Symbol.asyncDispose]());

/** Of the rotation: the first one, and two renewals. */
const TOKEN_REQUESTS = 3;
/** Far more than three lifetimes take. */
const MOST_ROTATIONS = 400;

const STUBS = [
  ['Entra ID', startEntraStub],
  ['Keycloak', startKeycloakStub],
] as const;

function environment(stub: FederatedStub, path: string, changes: Environment = {}): Environment {
  return {
    SIDECAR_BASE_URL: upstream.url,
    SIDECAR_AUTH_ISSUER: stub.issuer,
    SIDECAR_AUTH_METHOD: 'client_assertion',
    SIDECAR_AUTH_ASSERTION_FILE: path,
    SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: stub.audience,
    SIDECAR_CLIENT_ID: CLIENT_ID,
    SIDECAR_SCOPE: 'api://partner-api/.default',
    ...changes,
  };
}

async function statusOf(adminUrl: string) {
  const text = (await call(`${adminUrl}/status`)).text;
  return JSON.parse(text) as { readonly token: { readonly lastFailure: { readonly detail: string } | null } };
}

describe.each(STUBS)('a stub that follows the published rules of %s', (product, start) => {
  const startTrusting = async (trusted: AssertionIssuer, expiresIn?: number) =>
    start({ clientId: CLIENT_ID, trusted, ...(expiresIn === undefined ? {} : { expiresIn }) });

  it('gives a token for a projected service-account token', async () => {
    const issuer = createAssertionIssuer();
    await using stub = await startTrusting(issuer);
    const assertion = issuer.issue({ aud: [stub.audience] });
    await using mounted = await mountSecret({ token: assertion });
    await chmod(mounted.path('token'), 0o600);
    const env = environment(stub, mounted.path('token'));
    await using sidecar = await startSidecar({ name: `file-assertion-${product.replace(' ', '-')}`, env });
    await waitUntilReady(sidecar);
    expect((await post(`${sidecar.proxyUrl}/policies`, {})).status).toBe(200);
    expect(stub.forms().map((form) => Object.fromEntries(form))).toEqual([
      {
        grant_type: 'client_credentials',
        scope: 'api://partner-api/.default',
        client_id: CLIENT_ID,
        client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
        client_assertion: assertion,
      },
    ]);
    expect(sidecar.stdout()).not.toContain('lists');

    const run = await runCheck(`a file assertion for ${product}`, env);
    expect(run.lines('ok')).toContainEqual(
      expect.stringMatching(
        new RegExp(
          `^assertion .*: issuer "https://oidc\\.cluster\\.example", subject "${ASSERTION_SUBJECT}", audience "${stub.audience}", valid until 20`,
        ),
      ),
    );
    expect(run.lines('warn')).toEqual([]);
    expect(run.stdout + run.stderr).not.toContain(assertion);
  });

  it.each<[string, Claims]>([
    ['another issuer', { iss: 'https://oidc.cluster.example/' }],
    ['another subject', { sub: 'system:serviceaccount:sales:other' }],
  ])('refuses %s: 502, and the words of the server', async (what, claims) => {
    const issuer = createAssertionIssuer();
    await using stub = await startTrusting(issuer);
    const assertion = issuer.issue({ aud: stub.audience, ...claims });
    await using mounted = await mountSecret({ token: assertion });
    const env = environment(stub, mounted.path('token'));
    const name = `file-assertion-${product}-${what}`.replaceAll(' ', '-');
    await using sidecar = await startSidecar({ name, env });
    const reply = await call(`${sidecar.proxyUrl}/policies`);
    expect([reply.status, JSON.parse(reply.text)]).toEqual([502, expect.objectContaining({ code: 'TOKEN_REJECTED' })]);
    expect(reply.text).toContain('invalid_client');
    const run = await runCheck(`${what} for ${product}`, env);
    expect(run.lines('FAIL')[0]).toMatch(/^token .*invalid_client.* -> .*compare issuer, subject and audience/);
    expect(run.code).toBe(1);
    for (const text of [reply.text, sidecar.stdout(), run.stdout]) expect(text).not.toContain(assertion);
  });

  it('and a file that is replaced under load: no call fails, and each token request has the newest one', async () => {
    const issuer = createAssertionIssuer();
    // A token that arrives after its end is a failure: a machine that stands still for two seconds must not cause it.
    await using stub = await startTrusting(issuer, 6);
    const issue = (): string => issuer.issue({ aud: stub.audience });
    await using mounted = await mountSecret({ token: issue() });
    const env = environment(stub, mounted.path('token'), {
      SIDECAR_RATE: '5000',
      SIDECAR_BURST: '500',
    });
    const name = `file-assertion-rotation-${product.replace(' ', '-')}`;
    await using sidecar = await startSidecar({ name, env });
    await waitUntilReady(sidecar);
    const statuses = new Map<number | string, number>();
    const calls: Promise<void>[] = [];
    const count = (outcome: number | string): void => void statuses.set(outcome, (statuses.get(outcome) ?? 0) + 1);
    let rotations = 0;
    for (; stub.forms().length < TOKEN_REQUESTS && rotations < MOST_ROTATIONS; rotations++) {
      await mounted.replace({ token: issue() });
      for (let index = 0; index < 10; index++)
        calls.push(
          call(`${sidecar.proxyUrl}/policies`).then(
            ({ status, text }) => count(status === 200 ? status : `${String(status)} ${text}`),
            (error: unknown) => count(String(error)),
          ),
        );
      await sleep(100);
    }
    await Promise.all(calls);
    expect(Object.fromEntries(statuses)).toEqual({ 200: calls.length });
    const sent = stub.forms().map((form) => form.get('client_assertion'));
    expect(sent.length).toBeGreaterThanOrEqual(TOKEN_REQUESTS);
    // A replaced file alone is no reason for a token request.
    expect(sent.length).toBeLessThan(rotations / 3);
    expect(new Set(sent).size).toBe(sent.length);
    const metrics = (await call(`${sidecar.adminUrl}/metrics`)).text;
    expect(metrics).toContain('bearer_sidecar_token_invalidations_total{credential="default",reason="rotated"} 0');
    console.info(`${product}: ${calls.length} calls, ${rotations} files, ${sent.length} token requests, 0 failed`);
  });
});

describe('an assertion that must not be sent', () => {
  const past = Math.floor(Date.now() / 1000) - 60;
  it.each<[string, (issuer: AssertionIssuer) => string, RegExp]>([
    ['an expired file', (issuer) => issuer.issue({ exp: past }), /holds a JWT that expired at \S+Z; expected one that/],
    [
      'a wrong audience',
      (issuer) => issuer.issue({ aud: 'vault' }),
      /for the audience "vault"; expected auth\.assertionFileAudience, "api:\/\/AzureADTokenExchange"/,
    ],
    [
      "the cluster's default token",
      (issuer) => issuer.issue({ aud: [issuer.issuer] }),
      /audience is its own issuer.*as in the cluster's default token, which must not leave the cluster; expected/,
    ],
    ['no JWT', () => 'hunter2-hunter2', /holds no signed JWT; expected three base64url parts/],
    ['no file', () => '', /does not exist/],
  ])('%s: the same words everywhere, and nothing is sent', async (what, make, fault) => {
    const issuer = createAssertionIssuer();
    await using stub = await startEntraStub({ clientId: CLIENT_ID, trusted: issuer });
    const text = make(issuer);
    await using mounted = await mountSecret({ token: text });
    const env = environment(stub, mounted.path(text === '' ? 'no-such-file' : 'token'));
    const name = `file-assertion-${what.replaceAll(/\W+/g, '-')}`;
    await using sidecar = await startSidecar({ name, env });
    const words = new RegExp(`auth\\.assertionFile: the file \\S+ .*${fault.source}`);

    const reply = await call(`${sidecar.proxyUrl}/policies`);
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    const { code, detail } = JSON.parse(reply.text) as { code: string; detail: string };
    expect([code, detail]).toEqual(['TOKEN_UNAVAILABLE', expect.stringMatching(words)]);
    const { token } = await statusOf(sidecar.adminUrl);
    expect(token.lastFailure?.detail).toMatch(words);
    const ready = await call(`${sidecar.adminUrl}/readyz`);
    expect(ready.status).toBe(503);
    expect(ready.text).toContain('no token request sent: a file of the client cannot be used');
    const line = await sidecar.waitForLine(/token request failed/);
    expect((JSON.parse(line) as { detail: string }).detail).toMatch(words);

    const run = await runCheck(what, env);
    expect(run.lines('FAIL')).toEqual([
      expect.stringMatching(new RegExp(`^assertion .*${words.source}.* -> .*SIDECAR_AUTH`)),
    ]);
    expect(run.lines('skip')).toContainEqual(
      expect.stringMatching(/^token .*nothing is sent without a usable assertion/),
    );
    expect(run.code).toBe(1);
    console.info(run.lines('FAIL')[0]);

    expect(stub.forms()).toEqual([]);
    if (text !== '') for (const shown of [reply.text, sidecar.stdout(), run.stdout]) expect(shown).not.toContain(text);
  });

  it('does not disturb a token that is held, and is used again when it is renewed', async () => {
    const issuer = createAssertionIssuer();
    await using stub = await startEntraStub({ clientId: CLIENT_ID, trusted: issuer, expiresIn: 6 });
    await using mounted = await mountSecret({ token: issuer.issue() });
    const env = environment(stub, mounted.path('token'));
    await using sidecar = await startSidecar({ name: 'file-assertion-expires', env });
    await waitUntilReady(sidecar);
    await mounted.replace({ token: issuer.issue({ exp: past }) });
    // The refresh is due after 75 % of the lifetime.
    await waitUntil(async () => (await statusOf(sidecar.adminUrl)).token.lastFailure !== null, 'a refused refresh');
    expect((await call(`${sidecar.proxyUrl}/policies`)).status).toBe(200);
    expect(stub.forms()).toHaveLength(1);
    await mounted.replace({ token: issuer.issue() });
    await waitUntil(() => stub.forms().length === 2, 'the refresh with the renewed file');
    expect((await call(`${sidecar.proxyUrl}/policies`)).status).toBe(200);
  });
});

it('oidc-provider takes files that the client has issued itself, each of them once', async () => {
  const certificates = makeCertificates();
  const issuer = createAssertionIssuer(CLIENT_ID);
  const jwk = { ...issuer.publicKey.export({ format: 'jwk' }), alg: 'ES256', kid: issuer.keyId };
  await using server = await startOidcProvider(certificates, [
    {
      client_id: CLIENT_ID,
      token_endpoint_auth_method: 'private_key_jwt',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: publicJwks(jwk),
    },
  ]);
  const issue = (): string => issuer.issue({ sub: CLIENT_ID, aud: server.issuer });
  await using mounted = await mountSecret({ token: issue() });
  const env: Environment = {
    SIDECAR_BASE_URL: upstream.url,
    SIDECAR_AUTH_ISSUER: server.issuer,
    SIDECAR_AUTH_METHOD: 'client_assertion',
    SIDECAR_AUTH_ASSERTION_FILE: mounted.path('token'),
    SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: server.issuer,
    SIDECAR_CLIENT_ID: CLIENT_ID,
    SIDECAR_AUDIENCE: AUDIENCE,
    SIDECAR_CA_FILE: certificates.caFile,
  };
  const tokenLine = async (name: string): Promise<string> => {
    const run = await runCheck(`oidc-provider with ${name}`, env);
    return [...run.lines('ok'), ...run.lines('FAIL')].find((line) => line.startsWith('token ')) ?? 'none';
  };
  expect(await tokenLine('a new file')).toMatch(/obtained from/);
  expect(await tokenLine('the same file')).toMatch(/invalid_client/);
  for (let renewal = 0; renewal < 3; renewal++) {
    await mounted.replace({ token: issue() });
    expect(await tokenLine(`a renewed file ${String(renewal)}`)).toMatch(/obtained from/);
  }
  certificates[Symbol.dispose]();
});
