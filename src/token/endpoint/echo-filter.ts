/** Keeps secrets and tokens that an authorization server knows out of its response, in case the server echoes them. Pure. */
import { createRedact, listSecretEncodings } from '../../platform/secret-redaction.ts';
import type { Redact } from '../../platform/secret-redaction.ts';
import type { ClientAuthentication, ClientCredential } from '../client/client-authentication.ts';
import { createServerTextFilter } from './server-text.ts';
import type { ShowServerText } from './server-text.ts';

export interface EchoFilter {
  /** The client's credential in every encoding. The access token, which goes to the upstream, must not contain it. */
  readonly credentialForms: readonly string[];
  /** Masks sent secrets, and tokens in use, in a text. */
  readonly redact: Redact;
  /** Makes a text of the server fit to be shown. */
  readonly showText: ShowServerText;
  /** Requested scopes, separated by blanks: these names are shown as they are. */
  readonly requestedScope: string | undefined;
}

type SecretOwner = Pick<ClientCredential, 'method' | 'keyMaterial' | 'clientId'>;

/** A shorter text may be part of a token or a word by chance. */
export const MIN_SECRET_LENGTH = 8;

/** The client secret, if there is one. A private key is never sent. */
export function listSentSecrets({ method, keyMaterial }: SecretOwner): string[] {
  return method === 'client_secret_basic' || method === 'client_secret_post' ? [keyMaterial] : [];
}

export interface EchoFilterOptions {
  /** Requested, separated by blanks. */
  readonly scope: string | undefined;
  /** Masks tokens in use. Default: none are known. */
  readonly maskTokens?: Redact;
}

/** @param valuesToRedact all secrets in the request */
export function createEchoFilter(
  client: SecretOwner,
  authentication: ClientAuthentication,
  valuesToRedact: readonly string[],
  { scope: requestedScope, maskTokens = (text: string) => text }: EchoFilterOptions,
): EchoFilter {
  const secrets = listSentSecrets(client);
  const forms = [
    ...secrets.flatMap((secret) => listSecretEncodings(secret, client.clientId)),
    ...authentication.valuesToRedact.flatMap((value) => listSecretEncodings(value)),
  ];
  const redact = createRedact([...secrets, ...valuesToRedact], client.clientId);
  const showText = createServerTextFilter([...secrets, ...valuesToRedact], client.clientId);
  return {
    credentialForms: forms.filter(({ length }) => length >= MIN_SECRET_LENGTH),
    redact: (text) => maskTokens(redact(text)),
    // Before and after the cut: the mask may be longer than what it replaces.
    showText: (text, maxChars) => maskTokens(showText(text, maxChars)).slice(0, maxChars),
    requestedScope,
  };
}
