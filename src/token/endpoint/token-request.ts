/**
 * Builds the token request (RFC 6749 §4.4.2, RFC 7523 §2.1): grant type, audiences, scope, resources (RFC 8707), extra parameters and
 * header fields, as a form or as JSON. Pure. The client's own part comes from client-authentication.ts.
 */
import type { ClientAuthentication, ClientCredential } from '../client/client-authentication.ts';

export interface TokenGrantOptions {
  /** Empty: the parameter is left out. */
  readonly grantType: string;
  /** JSON: one object, whose members are texts; of several values with one name an array of texts. */
  readonly bodyFormat: 'form' | 'json';
  /** Each becomes a parameter of its own. */
  readonly audience: readonly string[];
  readonly scope: string | undefined;
  /** Each becomes a parameter of its own (RFC 8707 §2). */
  readonly resource: readonly string[];
}

type ExtraFields = Pick<ClientCredential, 'extraParameters' | 'extraHeaders'>;
type NameValue = readonly [name: string, value: string];

/** The order of the parameters is fixed: equal requests have equal bytes. */
export function buildTokenRequest(
  { userAgent, ...grant }: TokenGrantOptions & { readonly userAgent: string },
  extra: ExtraFields,
  { authorization, parameters }: ClientAuthentication,
) {
  const all = [...listGrantParameters(grant, extra), ...parameters];
  const isJson = grant.bodyFormat === 'json';
  // Two of the same name would be a list of products.
  const hasUserAgent = Object.keys(extra.extraHeaders).some((name) => name.toLowerCase() === 'user-agent');
  return {
    headers: {
      ...(authorization === undefined ? {} : { Authorization: authorization }),
      'Content-Type': isJson ? 'application/json' : 'application/x-www-form-urlencoded',
      Accept: 'application/json',
      ...(hasUserAgent ? {} : { 'User-Agent': userAgent }),
      ...extra.extraHeaders,
    },
    body: isJson ? formatJson(all) : new URLSearchParams(all.map(([name, value]) => [name, value])).toString(),
  };
}

function formatJson(parameters: readonly NameValue[]): string {
  const members = new Map<string, string | string[]>();
  for (const [name, value] of parameters) {
    const earlier = members.get(name);
    members.set(name, earlier === undefined ? value : [earlier, value].flat());
  }
  return JSON.stringify(Object.fromEntries(members));
}

/** Parameters and header fields (names end with a colon): equal for equal requests. Some values may be secrets. */
export function listRequestedParameters(grant: TokenGrantOptions, extra: ExtraFields): readonly NameValue[] {
  const headers = Object.entries(extra.extraHeaders);
  return [
    ...listGrantParameters(grant, extra),
    ...headers.map(([name, value]): NameValue => [`${name.toLowerCase()}:`, value]),
  ];
}

function listGrantParameters(
  { grantType, audience, scope, resource }: TokenGrantOptions,
  { extraParameters }: ExtraFields,
): readonly NameValue[] {
  return [
    ...(grantType === '' ? [] : [['grant_type', grantType] satisfies NameValue]),
    ...audience.map((value): NameValue => ['audience', value]),
    ...(scope === undefined ? [] : [['scope', scope] satisfies NameValue]),
    ...resource.map((value): NameValue => ['resource', value]),
    ...Object.entries(extraParameters),
  ];
}

/** Errors of servers that reject what was requested, not the client. */
const TARGET_ERROR = /^(?:access_denied|invalid_(?:request|resource|scope|target))$/;

/** Some servers need no audience, scope or resource; one that rejects a request with none probably needs one. Undefined for others. */
export function describeMissingTarget(
  error: string | undefined,
  { audience, scope, resource }: Pick<TokenGrantOptions, 'audience' | 'scope' | 'resource'>,
): string | undefined {
  const isNamed = audience.length > 0 || scope !== undefined || resource.length > 0;
  if (isNamed || !TARGET_ERROR.test(error ?? '')) return undefined;
  return 'none of auth.audience, auth.scope and auth.resource is set';
}
