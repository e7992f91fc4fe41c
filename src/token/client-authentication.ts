/**
 * How the client shows who it is to the token endpoint: HTTP Basic (RFC 7617) of id and secret exactly as given.
 * RFC 6749 §2.3.1 form-encodes both first; the service fronted here does not, and would refuse `%2B` for `+`.
 */
import { readSecret } from './secret-file.ts';
import type { SecretSource } from './secret-file.ts';

export interface ClientCredentials {
  readonly clientId: SecretSource;
  readonly clientSecret: SecretSource;
}

export type ClientAuthentication =
  | {
      readonly kind: 'ready';
      /** The whole value of the `Authorization` field. */
      readonly authorization: string;
      /** Strings that must appear in no message. */
      readonly withheld: readonly string[];
    }
  /** `detail` is fit for a log. */
  | { readonly kind: 'unreadable'; readonly detail: string };

/** Reads id and secret anew and makes the `Authorization` field of them. Never rejects. */
export async function authenticateClient(credentials: ClientCredentials): Promise<ClientAuthentication> {
  const [id, secret] = await Promise.all([
    readSecret('auth.clientId', credentials.clientId),
    readSecret('auth.clientSecret', credentials.clientSecret),
  ]);
  if (id.kind === 'unreadable') return id;
  if (secret.kind === 'unreadable') return secret;
  // The first colon ends the id (RFC 7617 §2): the rest of it would be taken for the secret.
  if (id.value.includes(':'))
    return { kind: 'unreadable', detail: 'auth.clientId: holds a colon, which HTTP Basic cannot carry' };
  const basic = Buffer.from(`${id.value}:${secret.value}`, 'utf8').toString('base64');
  return { kind: 'ready', authorization: `Basic ${basic}`, withheld: [secret.value, basic] };
}
