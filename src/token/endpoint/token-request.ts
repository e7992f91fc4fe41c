/**
 * Writes the request for a token (RFC 6749 §4.4.2) with all that may be asked for: audiences, scope, resources (RFC 8707) and
 * fields of the service's own. Pure. Who asks is client-authentication's.
 */
import type { ClientAuthentication } from '../client/client-authentication.ts';

/** What is asked for. */
export interface TokenGrantOptions {
  /** Each becomes a field of its own. */
  readonly audience: readonly string[];
  readonly scope: string | undefined;
  /** Each becomes a field of its own (RFC 8707 §2). */
  readonly resource: readonly string[];
  /** Further form fields; they replace none of those above. */
  readonly extraParameters: Readonly<Record<string, string>>;
  /** Further header fields. */
  readonly extraHeaders: Readonly<Record<string, string>>;
}

export interface TokenRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Strings that must appear in no message. */
  readonly valuesToRedact: readonly string[];
}

const SHORTEST_SECRET = 8;

type NameValue = readonly [name: string, value: string];

/** Field order is fixed, so that the same request is the same bytes. */
export function buildTokenRequest(
  grant: TokenGrantOptions,
  { authorization, parameters, valuesToRedact }: ClientAuthentication,
): TokenRequest {
  const form = [['grant_type', 'client_credentials'], ...listGrantFields(grant), ...parameters] satisfies NameValue[];
  return {
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...grant.extraHeaders,
    },
    body: new URLSearchParams(form.map(([name, value]) => [name, value])).toString(),
    valuesToRedact: [...valuesToRedact, ...selectSecrets(grant.extraParameters), ...selectSecrets(grant.extraHeaders)],
  };
}

/** A shorter value is no secret, and would be found in words by chance. */
function selectSecrets(map: Readonly<Record<string, string>>): string[] {
  return Object.values(map).filter((value) => value.length >= SHORTEST_SECRET);
}

/** All that is asked for, by name: equal for equal requests. Values of further fields may be secrets. */
export function listRequestedParameters(grant: TokenGrantOptions): readonly NameValue[] {
  const fields = Object.entries(grant.extraHeaders).map(([name, value]): NameValue => [
    `${name.toLowerCase()}:`,
    value,
  ]);
  return [...listGrantFields(grant), ...fields];
}

function listGrantFields({ audience, scope, resource, extraParameters }: TokenGrantOptions): readonly NameValue[] {
  return [
    ...audience.map((value): NameValue => ['audience', value]),
    ...(scope === undefined ? [] : [['scope', scope] satisfies NameValue]),
    ...resource.map((value): NameValue => ['resource', value]),
    ...Object.entries(extraParameters),
  ];
}
