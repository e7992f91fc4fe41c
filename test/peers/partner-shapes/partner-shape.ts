/**
 * How a partner gives tokens and takes calls, as facts: the token request, its response, and the header fields of a call. In a value,
 * `<name>` stands for what the partner gives to each customer; the same name has the same value within one shape.
 */

/** Why the sidecar cannot serve a partner; a closed set. */
export const OBSTACLES = [
  'the token request is a GET',
  'the token request has a secret in its URL',
  'the token request is XML',
  'the token request is nested JSON',
  'the token request has a JSON value that is no text',
  'the token request has a date or a signature of its own',
  'the token response is no JSON',
  'a second token request needs the token of the first',
  'each token is requested with the previous one',
  'each call is signed',
  'a header field of the call is computed from the token',
  'the call has the token in its URL',
  'the catalogue names no token endpoint',
] as const;
type Obstacle = (typeof OBSTACLES)[number];

/** A partner that the sidecar does not serve. */
export interface UnservedPartner {
  readonly key: string;
  readonly name: string;
  readonly obstacles: readonly [Obstacle, ...Obstacle[]];
}

export type ClientMethod = 'client_secret_basic' | 'client_secret_post' | 'private_key_jwt' | 'none';

/** A JWT that the client signs: its own authentication (RFC 7523 §2.2), or the grant (§2.1). */
export interface AssertionShape {
  readonly algorithm: 'RS256' | 'PS256' | 'ES256';
  readonly hasKeyId: boolean;
  /** Whether the head has the thumbprint of a certificate, `x5t#S256`. */
  readonly hasThumbprint: boolean;
  /** `aud`; undefined: the URL of the token endpoint. */
  readonly audience: string | undefined;
  /** Besides `iss`, `aud` and times; `sub` is the client unless it is here. */
  readonly claims: Readonly<Record<string, string>>;
}

export interface PartnerShape {
  /** The entry of the catalogue. */
  readonly key: string;
  readonly name: string;
  /** Entries of the catalogue that only refer to this one. */
  readonly also: readonly string[];
  /** Undefined: no token is requested, a file has it. */
  readonly request:
    | {
        /** Path and query. */
        readonly target: string;
        readonly format: 'form' | 'json';
        readonly client: ClientMethod;
        /** All but those of the client; none: the body is empty. */
        readonly parameters: Readonly<Record<string, string>>;
        /** Header fields besides those of HTTP and of the client. */
        readonly fields: Readonly<Record<string, string>>;
        readonly assertion: AssertionShape | undefined;
        /** Whether the TLS connections need a client certificate. */
        readonly needsCertificate: boolean;
      }
    | undefined;
  readonly response: {
    /** A dot leads into an object. */
    readonly tokenField: string;
    readonly expiry: { readonly field: string; readonly unit: 'seconds' | 'milliseconds' | 'date' } | undefined;
    /** Of a token without an expiry, as the partner documents it. */
    readonly lifetimeMs: number | undefined;
  };
  readonly call: {
    /** Undefined: the query has the only key. */
    readonly tokenField: string | undefined;
    readonly prefix: string;
    readonly fields: Readonly<Record<string, string>>;
    /** Parameters besides the application's own. */
    readonly query: Readonly<Record<string, string>>;
  };
  /** For users. */
  readonly remark: string | undefined;
}

/** What differs from the usual. */
export interface Differences {
  readonly also?: readonly string[];
  readonly format?: 'form' | 'json';
  readonly client?: ClientMethod;
  /** Default in the catalogue's OAuth entries: `client_credentials`; the empty text: no `grant_type`. */
  readonly grant?: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly fields?: Readonly<Record<string, string>>;
  readonly assertion?: Partial<AssertionShape>;
  readonly needsCertificate?: boolean;
  /** Default `access_token`. */
  readonly token?: string;
  /** Default `expires_in`; the empty text: none. */
  readonly expires?: string;
  readonly unit?: 'seconds' | 'milliseconds' | 'date';
  readonly lifetimeMs?: number;
  /** The header field of the token. Default `Authorization`, with the prefix `Bearer `. */
  readonly header?: string;
  /** Default: none in another field than `Authorization`. */
  readonly prefix?: string;
  readonly callFields?: Readonly<Record<string, string>>;
  readonly callQuery?: Readonly<Record<string, string>>;
  readonly remark?: string;
}

/** A partner that the sidecar serves. */
export function partner(key: string, name: string, target: string, given: Differences): PartnerShape {
  const { grant = 'client_credentials', client = 'client_secret_post', expires = 'expires_in', assertion } = given;
  return {
    key,
    name,
    also: given.also ?? [],
    request: {
      target,
      format: given.format ?? 'form',
      client,
      parameters: { ...(grant === '' ? {} : { grant_type: grant }), ...given.parameters },
      fields: given.fields ?? {},
      assertion: assertion && { ...PLAIN_ASSERTION, ...assertion },
      needsCertificate: given.needsCertificate ?? false,
    },
    response: {
      tokenField: given.token ?? 'access_token',
      expiry: expires === '' ? undefined : { field: expires, unit: given.unit ?? 'seconds' },
      lifetimeMs: given.lifetimeMs,
    },
    call: describeCall(given),
    remark: given.remark,
  };
}

const PLAIN_ASSERTION: AssertionShape = {
  algorithm: 'RS256',
  hasKeyId: false,
  hasThumbprint: false,
  audience: undefined,
  claims: {},
};

/** A partner with a fixed key: no token request. */
export function keyPartner(
  key: string,
  name: string,
  call: Pick<Differences, 'header' | 'prefix' | 'callFields' | 'callQuery'>,
): PartnerShape {
  const response = { tokenField: '', expiry: undefined, lifetimeMs: undefined };
  return { key, name, also: [], request: undefined, response, call: describeCall(call), remark: undefined };
}

/** A partner whose only key is a query parameter. */
export function queryPartner(key: string, name: string, parameter: string): PartnerShape {
  const shape = keyPartner(key, name, { prefix: 'Bearer ', callQuery: { [parameter]: '<token>' } });
  return { ...shape, call: { ...shape.call, tokenField: undefined } };
}

function describeCall({
  header = 'Authorization',
  prefix = header === 'Authorization' ? 'Bearer ' : '',
  callFields = {},
  callQuery = {},
}: Differences): PartnerShape['call'] {
  return { tokenField: header, prefix, fields: callFields, query: callQuery };
}
