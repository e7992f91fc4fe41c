/** Compares a token request with the shape of a partner: every difference is a fault, in words without values. */
import type { IncomingHttpHeaders } from 'node:http';
import { jwtVerify } from 'jose';
import type { Customer, Keys } from './customer.ts';
import type { AssertionShape } from './partner-shape.ts';

export interface ReceivedTokenRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The URL of the token endpoint as the client knows it. */
  readonly url: string;
}

type Request = NonNullable<Customer['shape']['request']>;
type Parameters = ReadonlyMap<string, string>;

const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const CONTENT_TYPES = { form: 'application/x-www-form-urlencoded', json: 'application/json' };

export async function findTokenRequestFaults(
  received: ReceivedTokenRequest,
  customer: Customer,
  keys: Keys,
): Promise<readonly string[]> {
  const { request } = customer.shape;
  if (request === undefined) return ['a token request where a file has the token'];
  const parameters = parseBody(request.format, received.body);
  if (parameters === undefined) return ['a body of another format'];
  const expected = expectParameters(request, customer);
  const names = new Set([...expected.keys(), ...parameters.keys()]);
  const contentType = received.headers['content-type'];
  return [
    ...(received.method === 'POST' ? [] : ['another method']),
    // The type of an empty body has no effect.
    ...(expected.size === 0 || contentType === CONTENT_TYPES[request.format] ? [] : ['another Content-Type']),
    ...[...names].flatMap((name) => compareParameter(name, expected, parameters, request)),
    ...findFieldFaults(request, received.headers, customer),
    ...(await findAssertionFaults(received.url, request, parameters, customer, keys)),
  ];
}

/** Undefined when it is of another format, or a form that names a parameter twice. */
function parseBody(format: Request['format'], body: string): Parameters | undefined {
  if (format === 'form') {
    const pairs = [...new URLSearchParams(body)];
    const parameters = new Map(pairs);
    return parameters.size === pairs.length && !body.startsWith('{') ? parameters : undefined;
  }
  try {
    const members = Object.entries(JSON.parse(body === '' ? '{}' : body) as Readonly<Record<string, unknown>>);
    const texts = members.filter((member): member is [string, string] => typeof member[1] === 'string');
    return texts.length === members.length ? new Map(texts) : undefined;
  } catch {
    // Not JSON.
    return undefined;
  }
}

/** What is not compared here has the value of undefined: an assertion differs in each request. */
function expectParameters(
  { client, parameters }: Request,
  customer: Customer,
): ReadonlyMap<string, string | undefined> {
  const filled = Object.entries(parameters).map(([name, text]) => [name, customer.fill(text)] as const);
  return new Map<string, string | undefined>([
    ...filled,
    ...(client === 'client_secret_post'
      ? ([
          ['client_id', customer.clientId],
          ['client_secret', customer.clientSecret],
        ] as const)
      : []),
    ...(client === 'private_key_jwt'
      ? ([
          ['client_assertion_type', ASSERTION_TYPE],
          ['client_assertion', undefined],
        ] as const)
      : []),
    ...(isAssertionGranted(parameters) ? ([['assertion', undefined]] as const) : []),
  ]);
}

function isAssertionGranted({ grant_type: grant = '' }: Request['parameters']): boolean {
  return grant.endsWith(':jwt-bearer');
}

function compareParameter(
  name: string,
  expected: ReadonlyMap<string, string | undefined>,
  parameters: Parameters,
  { client }: Request,
): readonly string[] {
  const found = parameters.get(name);
  if (found === undefined) return [`the parameter ${name} is missing`];
  // RFC 7521 §4.2: the client id may be there, and must be that of the assertion.
  if (!expected.has(name))
    return name === 'client_id' && client === 'private_key_jwt' ? [] : [`an additional parameter ${name}`];
  const value = expected.get(name);
  return value === undefined || value === found ? [] : [`another value of ${name}`];
}

function findFieldFaults(
  { client, fields }: Request,
  headers: IncomingHttpHeaders,
  customer: Customer,
): readonly string[] {
  const { clientId, clientSecret, fill } = customer;
  const basic = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`;
  const own = fields.authorization === undefined ? undefined : fill(fields.authorization);
  const expected = client === 'client_secret_basic' ? basic : own;
  return [
    ...(headers.authorization === expected ? [] : ['another client authentication']),
    ...Object.entries(fields).flatMap(([name, text]) =>
      headers[name] === fill(text) ? [] : [`another field ${name}`],
    ),
  ];
}

async function findAssertionFaults(
  url: string,
  { assertion, parameters: given }: Request,
  parameters: Parameters,
  { clientId, fill }: Customer,
  keys: Keys,
): Promise<readonly string[]> {
  if (assertion === undefined) return [];
  const jwt = parameters.get(isAssertionGranted(given) ? 'assertion' : 'client_assertion') ?? '';
  try {
    const { payload, protectedHeader } = await jwtVerify(
      jwt,
      assertion.algorithm === 'ES256' ? keys.ecKey : keys.rsaKey,
      {
        algorithms: [assertion.algorithm],
        issuer: clientId,
        audience: assertion.audience === undefined ? url : fill(assertion.audience),
        requiredClaims: ['exp', 'iat', 'jti'],
      },
    );
    const claims = { sub: clientId, ...assertion.claims };
    return [
      ...Object.entries(claims).flatMap(([name, text]) =>
        payload[name] === fill(text) ? [] : [`another claim ${name}`],
      ),
      ...findHeadFaults(assertion, protectedHeader, fill('<key id>'), keys.thumbprint),
    ];
  } catch (error) {
    return [`the assertion: ${(error as Error).message}`];
  }
}

function findHeadFaults(
  { hasKeyId, hasThumbprint }: AssertionShape,
  { kid, ...head }: Readonly<Record<string, unknown>>,
  keyId: string,
  thumbprint: string,
): readonly string[] {
  return [
    ...(!hasKeyId || kid === keyId ? [] : ['another key id']),
    ...(!hasThumbprint || head['x5t#S256'] === thumbprint ? [] : ['another thumbprint']),
  ];
}
