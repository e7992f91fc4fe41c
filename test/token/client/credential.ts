/** A client credential whose version is its secret, for tests in which requests are played. */
import type { ClientCredential } from '../../../src/token/client/client-authentication.ts';
import { buildTlsContext } from '../../../src/platform/tls.ts';

export function credentialOf(version: string): ClientCredential {
  const authorization = `Basic ${version}`;
  return {
    kind: 'ready',
    clientId: 'client-of-the-tests',
    method: 'client_secret_basic',
    algorithm: undefined,
    extraParameters: {},
    extraHeaders: {},
    sentSecrets: [version],
    version,
    proofVersion: undefined,
    keyMaterial: version,
    authenticate: () =>
      Promise.resolve({ kind: 'authenticated', authorization, parameters: [], valuesToRedact: [version] }),
    readAssertion: undefined,
    createTlsContext: buildTlsContext,
    hasCertificate: false,
  };
}
