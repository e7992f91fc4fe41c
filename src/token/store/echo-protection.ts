/** What is said to an authorization server in confidence, and must not be shown when the server says it again. Pure. */
import { createRedact, listSecretEncodings } from '../../platform/secret-redaction.ts';
import type { ClientCredential, ClientAuthentication } from '../client/client-authentication.ts';
import type { EchoFilter } from '../endpoint/token-response.ts';

type ClientSecretFields = Pick<ClientCredential, 'method' | 'keyMaterial' | 'clientId'>;

/** The client's secret, if it has one. A private key is never sent, so that no server can echo it. */
export function listSentSecrets({ method, keyMaterial }: ClientSecretFields): string[] {
  return method === 'client_secret_basic' || method === 'client_secret_post' ? [keyMaterial] : [];
}

/** A shorter one may be part of a token by chance. */
const MIN_PROOF_LENGTH = 8;

/** @param withheld all that the request holds in confidence */
export function createEchoProtection(
  client: ClientSecretFields,
  proof: ClientAuthentication,
  withheld: readonly string[],
  askedScope: string | undefined,
): EchoFilter {
  const secrets = listSentSecrets(client);
  const forms = secrets.flatMap((secret) => listSecretEncodings(secret, client.clientId));
  return {
    credentialForms: [...forms, ...proof.valuesToRedact].filter(({ length }) => length >= MIN_PROOF_LENGTH),
    redact: createRedact([...secrets, ...withheld], client.clientId),
    requestedScope: askedScope,
  };
}
