/**
 * Builds the token request (RFC 6749 §4.4.2): audiences, scope, resources (RFC 8707), further parameters and headers. Pure.
 * The client's own part comes from client-authentication.ts.
 */
import type { ClientAuthentication } from '../client/client-authentication.ts';
import type { SecretSource } from '../client/secret-file.ts';
import { MIN_SECRET_LENGTH } from './echo-filter.ts';

/** What the token is requested for. */
export interface TokenGrantOptions {
  /** Each becomes a form field of its own. */
  readonly audience: readonly string[];
  readonly scope: string | undefined;
  /** Each becomes a form field of its own (RFC 8707 §2). */
  readonly resource: readonly string[];
  /** Further parameters; they replace none of the above. */
  readonly extraParameters: Readonly<Record<string, SecretSource>>;
  readonly extraHeaders: Readonly<Record<string, SecretSource>>;
}

export interface TokenRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Secrets in the request. */
  readonly valuesToRedact: readonly string[];
}

type NameValue = readonly [name: string, value: string];

/** The order of the form fields is fixed: equal requests have equal bytes. */
export function buildTokenRequest(
  { userAgent, ...grant }: TokenGrantOptions & { readonly userAgent: string },
  { authorization, parameters, valuesToRedact }: ClientAuthentication,
): TokenRequest {
  const form = [['grant_type', 'client_credentials'], ...listGrantFields(grant), ...parameters] satisfies NameValue[];
  return {
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      'Content-Type': 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...(hasUserAgent(grant.extraHeaders) ? {} : { 'User-Agent': userAgent }),
      ...valuesOf(grant.extraHeaders),
    },
    body: new URLSearchParams(form.map(([name, value]) => [name, value])).toString(),
    valuesToRedact: [
      ...valuesToRedact,
      ...selectSecrets(valuesOf(grant.extraParameters)),
      ...selectSecrets(valuesOf(grant.extraHeaders)),
    ],
  };
}

/** Two of the same name would be a list of products. */
function hasUserAgent(headers: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === 'user-agent');
}

function selectSecrets(map: Readonly<Record<string, string>>): string[] {
  return Object.values(map).filter((value) => value.length >= MIN_SECRET_LENGTH);
}

/** Form fields and headers (names end with a colon): equal for equal requests. Some values may be secrets. */
export function listRequestedParameters(grant: TokenGrantOptions): readonly NameValue[] {
  const headers = Object.entries(valuesOf(grant.extraHeaders)).map(([name, value]): NameValue => [
    `${name.toLowerCase()}:`,
    value,
  ]);
  return [...listGrantFields(grant), ...headers];
}

function listGrantFields({ audience, scope, resource, extraParameters }: TokenGrantOptions): readonly NameValue[] {
  return [
    ...audience.map((value): NameValue => ['audience', value]),
    ...(scope === undefined ? [] : [['scope', scope] satisfies NameValue]),
    ...resource.map((value): NameValue => ['resource', value]),
    ...Object.entries(valuesOf(extraParameters)),
  ];
}

function valuesOf(map: Readonly<Record<string, SecretSource>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).map(([name, one]) => [name, one.kind === 'value' ? one.value : '']));
}
