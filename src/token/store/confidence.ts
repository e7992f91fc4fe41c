/** What is said to an authorization server in confidence, and must not be shown when the server says it again. Pure. */
import { createRedact, writtenForms } from '../../platform/secret-forms.ts';
import type { ClientCredential, Proof } from '../client/client-authentication.ts';
import type { Confidence } from '../endpoint/token-answer.ts';

type Known = Pick<ClientCredential, 'method' | 'keyMaterial' | 'clientId'>;

/** The client's secret, if it has one. A private key is never sent, so that no server can echo it. */
export function secretsOf({ method, keyMaterial }: Known): string[] {
  return method === 'client_secret_basic' || method === 'client_secret_post' ? [keyMaterial] : [];
}

/** A shorter one may be part of a token by chance. */
const SHORTEST_PROOF = 8;

/** @param withheld all that the request holds in confidence */
export function confidenceOf(
  client: Known,
  proof: Proof,
  withheld: readonly string[],
  askedScope: string | undefined,
): Confidence {
  const secrets = secretsOf(client);
  const forms = secrets.flatMap((secret) => writtenForms(secret, client.clientId));
  return {
    proofs: [...forms, ...proof.withheld].filter(({ length }) => length >= SHORTEST_PROOF),
    redact: createRedact([...secrets, ...withheld], client.clientId),
    askedScope,
  };
}
