/**
 * One certificate for both sides: a token endpoint that is found by its issuer and knows the client by its certificate
 * (oidc-provider, RFC 8705), and an upstream that requires one (nginx).
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startOidcProvider } from '../peers/authorization-servers.ts';
import type { PeerServer } from '../peers/authorization-servers.ts';
import { call } from '../support/calls.ts';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { startVerifyingNginx } from '../support/nginx.ts';
import type { Nginx } from '../support/nginx.ts';
import { startSidecar, waitUntilReady } from '../support/sidecar-process.ts';

const running = new AsyncDisposableStack();
let certificates: Certificates;
let oidc: PeerServer;
let nginx: Nginx;

beforeAll(async () => {
  certificates = running.use(makeCertificates());
  const client = { client_id: 'legacy-app', tls_client_auth_subject_dn: 'CN=legacy-app' };
  oidc = running.use(
    await startOidcProvider(certificates, [{ ...client, token_endpoint_auth_method: 'tls_client_auth' }]),
  );
  nginx = running.use(await startVerifyingNginx(certificates));
});
afterAll(() => running.disposeAsync());

it('the client is known to both by its certificate, without a secret', async () => {
  const { certificateFile, keyFile } = certificates.issue('legacy-app');
  const env = {
    SIDECAR_BASE_URL: nginx.url,
    SIDECAR_AUTH_ISSUER: oidc.issuer,
    SIDECAR_AUTH_METHOD: 'tls_client_auth',
    SIDECAR_AUTH_TLS_CERTIFICATE_FILE: certificateFile,
    SIDECAR_AUTH_TLS_KEY_FILE: keyFile,
    SIDECAR_CLIENT_ID: 'legacy-app',
    SIDECAR_AUDIENCE: 'https://api.partner.example/',
    SIDECAR_CA_FILE: certificates.caFile,
  };
  await using sidecar = await startSidecar({ name: 'client-certificates', env });
  await waitUntilReady(sidecar);
  expect(await call(`${sidecar.proxyUrl}/policies`)).toMatchObject({ status: 200, text: 'CN=legacy-app' });
  expect(oidc.lastRequest()?.certificate).toBe('CN=legacy-app');
  expect(sidecar.stdout()).not.toContain('"level":"warn"');
});
