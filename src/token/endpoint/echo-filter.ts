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

/** A shorter text may be part of a token or a word by chance. */
export const MIN_SECRET_LENGTH = 8;

/**
 * For the secrets of one request: those that every request of the client carries, and those of its authentication.
 * @param maskTokens Default: no tokens in use are known
 */
export function createEchoFilter(
  { clientId, sentSecrets }: Pick<ClientCredential, 'clientId' | 'sentSecrets'>,
  { valuesToRedact }: Pick<ClientAuthentication, 'valuesToRedact'>,
  {
    scope: requestedScope,
    maskTokens = (text) => text,
  }: { readonly scope: string | undefined; readonly maskTokens?: Redact },
): EchoFilter {
  const secrets = [...sentSecrets, ...valuesToRedact];
  const forms = valuesToRedact.flatMap((value) => listSecretEncodings(value, clientId));
  const redact = createRedact(secrets, clientId);
  const showText = createServerTextFilter(secrets, clientId);
  return {
    credentialForms: forms.filter(({ length }) => length >= MIN_SECRET_LENGTH),
    redact: (text) => maskTokens(redact(text)),
    // Before and after the cut: the mask may be longer than what it replaces.
    showText: (text, maxChars) => maskTokens(showText(text, maxChars)).slice(0, maxChars),
    requestedScope,
  };
}
