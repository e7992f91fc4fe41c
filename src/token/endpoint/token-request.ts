/**
 * Writes the request for a token (RFC 6749 §4.4.2) with all that may be asked for: audiences, scope, resources (RFC 8707) and
 * fields of the service's own. Pure. Who asks is client-authentication's.
 */
import type { Proof } from '../client/client-authentication.ts';

/** What is asked for. */
export interface GrantOptions {
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
  readonly withheld: readonly string[];
}

const SHORTEST_SECRET = 8;

type Pair = readonly [name: string, value: string];

/** Field order is fixed, so that the same request is the same bytes. */
export function writeTokenRequest(grant: GrantOptions, { authorization, parameters, withheld }: Proof): TokenRequest {
  const form = [['grant_type', 'client_credentials'], ...askedFields(grant), ...parameters] satisfies Pair[];
  return {
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...grant.extraHeaders,
    },
    body: new URLSearchParams(form.map(([name, value]) => [name, value])).toString(),
    withheld: [...withheld, ...secretsAmong(grant.extraParameters), ...secretsAmong(grant.extraHeaders)],
  };
}

/** A shorter value is no secret, and would be found in words by chance. */
function secretsAmong(map: Readonly<Record<string, string>>): string[] {
  return Object.values(map).filter((value) => value.length >= SHORTEST_SECRET);
}

/** All that is asked for, by name: equal for equal requests. Values of further fields may be secrets. */
export function listAsked(grant: GrantOptions): readonly Pair[] {
  const fields = Object.entries(grant.extraHeaders).map(([name, value]): Pair => [`${name.toLowerCase()}:`, value]);
  return [...askedFields(grant), ...fields];
}

function askedFields({ audience, scope, resource, extraParameters }: GrantOptions): readonly Pair[] {
  return [
    ...audience.map((value): Pair => ['audience', value]),
    ...(scope === undefined ? [] : [['scope', scope] satisfies Pair]),
    ...resource.map((value): Pair => ['resource', value]),
    ...Object.entries(extraParameters),
  ];
}
