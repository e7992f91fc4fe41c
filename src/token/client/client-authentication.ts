/**
 * Authenticates the client to the token endpoint: a secret in HTTP Basic (RFC 7617) or in the form (RFC 6749 §2.3.1), an assertion
 * that is signed here or by another party (RFC 7523), a certificate (RFC 8705), or extra parameters only. Each read returns a credential, a
 * value that can be kept and used again when a newer one is rejected; it holds all that the token request takes from files.
 */
import { createHmac, createPrivateKey, randomBytes } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { formEncode } from '../../platform/secret-redaction.ts';
import { findClientCertificateFault, buildTlsContext } from '../../platform/tls.ts';
import type { ClientCertificate, ClientCertificateFiles } from '../../platform/tls.ts';
import { LARGEST_ASSERTION_BYTES, readAssertionFile } from './assertion-file.ts';
import type { AssertionFile, AssertionReadResult } from './assertion-file.ts';
import {
  isHeaderValue,
  LARGEST_PEM_BYTES,
  readClientId,
  readSecret,
  readSecretMap,
  readTextFile,
} from './secret-file.ts';
import type { SecretSource, Unreadable } from './secret-file.ts';
import { encodePrivateKey, readAssertionSigner } from './signed-assertion.ts';
import type { AssertionSigningOptions, AssertionTarget } from './signed-assertion.ts';
import type { SigningAlgorithm } from './signing-key.ts';

/** The names are those of the registry of RFC 7591 §2, in which `client_assertion` is a form of `private_key_jwt`. */
export type ClientAuthMethod =
  | {
      readonly name: 'client_secret_basic';
      readonly secret: SecretSource;
      /** `raw` joins id and secret exactly as given; `form` encodes both first (RFC 6749 §2.3.1). */
      readonly encoding: 'raw' | 'form';
    }
  | { readonly name: 'client_secret_post'; readonly secret: SecretSource }
  | ({ readonly name: 'private_key_jwt' } & AssertionSigningOptions)
  /** `file` holds an assertion that another party issues, and is read for each request. */
  | { readonly name: 'client_assertion'; readonly file: AssertionFile }
  | { readonly name: 'tls_client_auth' }
  /** The client does not authenticate, or only by extra parameters. */
  | { readonly name: 'none' };

/** The grant of RFC 7523 §2.1. */
export interface AssertionGrantOptions extends AssertionSigningOptions {
  /** Besides `iss`, `aud` and the times; `sub` is the client id unless it is here. */
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface ClientAuthOptions {
  /** Undefined where the method needs none. */
  readonly clientId: SecretSource | undefined;
  readonly method: ClientAuthMethod;
  /** Offered with every method (RFC 8705 §3). */
  readonly clientCertificate: ClientCertificateFiles | undefined;
  /** As of `buildTlsContext`. */
  readonly tlsGroups?: string | undefined;
  /** Undefined: the grant needs no assertion. */
  readonly assertionGrant: AssertionGrantOptions | undefined;
  /** Further parameters and header fields of the token request. */
  readonly extraParameters: Readonly<Record<string, SecretSource>>;
  readonly extraHeaders: Readonly<Record<string, SecretSource>>;
}

/** What one token request carries to authenticate the client, and the assertion that is its grant. */
export interface ClientAuthentication {
  readonly kind: 'authenticated';
  readonly authorization: string | undefined;
  readonly parameters: readonly (readonly [name: string, value: string])[];
  readonly valuesToRedact: readonly string[];
}

export interface ClientCredential {
  readonly kind: 'ready';
  readonly clientId: string;
  readonly method: ClientAuthMethod['name'];
  /** The algorithm of assertions; undefined without them. */
  readonly algorithm: SigningAlgorithm | undefined;
  readonly extraParameters: Readonly<Record<string, string>>;
  readonly extraHeaders: Readonly<Record<string, string>>;
  /** Secrets that every request carries: the client secret, and the values of extra parameters and header fields. */
  readonly sentSecrets: readonly string[];
  /**
   * Changes with the id, a secret, a key, a certificate or an extra value. Valid in this process only. Not with the assertion in a file:
   * its issuer renews it often, and a held token stays good.
   */
  readonly version: string;
  /**
   * Changes with the assertion in a file, readable or not; undefined for a method that has none. A request that failed is worth
   * repeating when it has changed.
   */
  readonly proofVersion: string | undefined;
  /** The secret or the private key, from which a key for tokens is derived; undefined for a client with neither. */
  readonly keyMaterial: string | undefined;
  /**
   * For one request: an assertion that is signed here is never used twice, and one in a file is read anew. Rejects only when the
   * platform cannot sign.
   */
  readonly authenticate: (target: AssertionTarget) => Promise<ClientAuthentication | Unreadable>;
  /** The assertion that a request would send at `wallNow` (epoch milliseconds); undefined for a method that has none in a file. Never rejects. */
  readonly readAssertion: ((wallNow: number) => Promise<AssertionReadResult>) | undefined;
  /** Offers the client certificate, if there is one. @param ca PEM certificates to trust; undefined = Node's and the system's roots */
  readonly createTlsContext: (ca: string | undefined) => SecureContext;
  readonly hasCertificate: boolean;
}

export type ClientCredentialReadResult = ClientCredential | Unreadable;

/** Whether any part of the credential is in a file, so that it may change. */
export function canCredentialChange(options: ClientAuthOptions): boolean {
  const { clientId, method, clientCertificate, extraParameters, extraHeaders } = options;
  if (clientCertificate !== undefined || findAssertionSigning(options) !== undefined) return true;
  if (method.name === 'client_assertion') return true;
  const secrets = ['secret' in method ? method.secret : undefined, ...Object.values(extraParameters)];
  return [clientId, ...secrets, ...Object.values(extraHeaders)].some((source) => source?.kind === 'file');
}

/** Whether the credential has a secret or a key once its files are read. */
export function hasKeyMaterial({ method, assertionGrant, clientCertificate }: ClientAuthOptions): boolean {
  if (method.name === 'client_assertion') return assertionGrant !== undefined;
  return method.name !== 'none' || assertionGrant !== undefined || clientCertificate !== undefined;
}

export function findAssertionSigning({
  method,
  assertionGrant,
}: Pick<ClientAuthOptions, 'method' | 'assertionGrant'>): AssertionSigningOptions | undefined {
  return method.name === 'private_key_jwt' ? method : assertionGrant;
}

/** Reads all files of the credential. Never rejects. */
export async function readClientCredential(options: ClientAuthOptions): Promise<ClientCredentialReadResult> {
  const { method, assertionGrant, clientCertificate } = options;
  const [id, own, signer, certificate, extra] = await Promise.all([
    readClientId(options.clientId),
    readAuthMethod(method),
    assertionGrant && readAssertionSigner(assertionGrant),
    clientCertificate && readCertificate(clientCertificate),
    readExtraFields(options),
  ]);
  if (id.kind === 'unreadable') return id;
  if (own.kind === 'unreadable') return own;
  if (signer?.kind === 'unreadable') return signer;
  if (certificate?.kind === 'unreadable') return certificate;
  if (extra.kind === 'unreadable') return extra;
  const detail = findMethodFault(options, id.value);
  if (detail !== undefined) return { kind: 'unreadable', detail };
  const versions = [own, signer, certificate].flatMap((part) => part?.versionParts ?? []);
  // Beside an assertion in a file, the certificate is not what identifies the client.
  const ofCertificate = method.name === 'client_assertion' ? undefined : certificate?.keyMaterial;
  return {
    kind: 'ready',
    clientId: id.value,
    method: method.name,
    algorithm: own.algorithm,
    extraParameters: extra.parameters,
    extraHeaders: extra.headers,
    sentSecrets: [own.secret ?? [], extra.secrets].flat(),
    version: fingerprint([method.name, id.value, JSON.stringify(extra), ...versions]),
    proofVersion: own.proofVersion,
    keyMaterial: own.keyMaterial ?? signer?.keyMaterial ?? ofCertificate,
    authenticate: async (target) => {
      const assertion = await signer?.sign(id.value, target, assertionGrant?.claims);
      return addToAuthentication(await own.authenticate(id.value, target), assertion, extra.proofs);
    },
    readAssertion: own.readAssertion,
    createTlsContext: (ca) => buildTlsContext(ca, certificate?.client, options.tlsGroups),
    hasCertificate: certificate !== undefined,
  };
}

/** What is wrong with a method although every file can be read. */
function findMethodFault({ method, clientCertificate }: ClientAuthOptions, clientId: string): string | undefined {
  if (method.name === 'tls_client_auth' && clientCertificate === undefined)
    return 'auth.tlsCertificateFile: required by auth.method tls_client_auth';
  // The first colon ends the id (RFC 7617 §2): the rest would become part of the secret.
  const isColonForbidden = method.name === 'client_secret_basic' && method.encoding === 'raw';
  return isColonForbidden && clientId.includes(':')
    ? 'auth.clientId: holds a colon, which HTTP Basic cannot carry'
    : undefined;
}

function addToAuthentication(
  own: ClientAuthentication | Unreadable,
  grant: string | undefined,
  proofs: readonly string[],
): ClientAuthentication | Unreadable {
  if (own.kind === 'unreadable') return own;
  const granted = grant === undefined ? [] : [grant];
  return {
    ...own,
    parameters: [...own.parameters, ...granted.map((assertion) => ['assertion', assertion] as const)],
    valuesToRedact: [...own.valuesToRedact, ...granted, ...proofs],
  };
}

/** By which the client authenticates: a token that contains such a value is rejected. */
const PROOF_NAME = /secret|password/i;

async function readExtraFields(options: ClientAuthOptions) {
  const [parameters, headers] = await Promise.all([
    readSecretMap('auth.extraParameters', options.extraParameters),
    readSecretMap('auth.extraHeaders', options.extraHeaders, (value) =>
      isHeaderValue(value) ? undefined : 'holds what no header field can carry',
    ),
  ]);
  if (parameters.kind === 'unreadable') return parameters;
  if (headers.kind === 'unreadable') return headers;
  const all = [...Object.entries(parameters.values), ...Object.entries(headers.values)];
  return {
    kind: 'read',
    parameters: parameters.values,
    headers: headers.values,
    secrets: [...parameters.secrets, ...headers.secrets],
    proofs: all.flatMap(([name, value]) => (PROOF_NAME.test(name) ? [value] : [])),
  } as const;
}

/** Default of each optional member: the method has none of its own. */
interface AuthMethodReadResult extends Partial<
  Pick<ClientCredential, 'keyMaterial' | 'algorithm' | 'proofVersion' | 'readAssertion'>
> {
  readonly kind: 'read';
  readonly secret?: string;
  readonly versionParts: readonly string[];
  readonly authenticate: (clientId: string, target: AssertionTarget) => Promise<ClientAuthentication | Unreadable>;
}

async function readAuthMethod(method: ClientAuthMethod): Promise<AuthMethodReadResult | Unreadable> {
  if (method.name === 'tls_client_auth' || method.name === 'none')
    return {
      kind: 'read',
      versionParts: [],
      authenticate: (id) => Promise.resolve(authenticateWithForm(method.name === 'none' ? {} : { client_id: id })),
    };
  if (method.name === 'private_key_jwt') return readSigningMethod(method);
  if (method.name === 'client_assertion') return readFileAssertionMethod(method.file);
  const secret = await readSecret('auth.clientSecret', method.secret);
  if (secret.kind === 'unreadable') return secret;
  const authenticate = (id: string): ClientAuthentication =>
    method.name === 'client_secret_basic'
      ? authenticateWithBasic(id, secret.value, method.encoding)
      : authenticateWithForm({ client_id: id, client_secret: secret.value }, [secret.value, formEncode(secret.value)]);
  return {
    kind: 'read',
    keyMaterial: secret.value,
    secret: secret.value,
    versionParts: [secret.value],
    authenticate: (id) => Promise.resolve(authenticate(id)),
  };
}

function authenticateWithBasic(clientId: string, secret: string, encoding: 'raw' | 'form'): ClientAuthentication {
  const encode = encoding === 'raw' ? (text: string) => text : formEncode;
  const basic = Buffer.from(`${encode(clientId)}:${encode(secret)}`, 'utf8').toString('base64');
  const valuesToRedact = [secret, formEncode(secret), basic];
  return { kind: 'authenticated', authorization: `Basic ${basic}`, parameters: [], valuesToRedact };
}

function authenticateWithForm(
  parameters: Readonly<Record<string, string>>,
  valuesToRedact: readonly string[] = [],
): ClientAuthentication {
  return { kind: 'authenticated', authorization: undefined, parameters: Object.entries(parameters), valuesToRedact };
}

async function readFileAssertionMethod(file: AssertionFile): Promise<AuthMethodReadResult> {
  const text = await readTextFile('auth.assertionFile', file.path, LARGEST_ASSERTION_BYTES);
  return {
    kind: 'read',
    versionParts: [file.path, file.audience],
    proofVersion: fingerprint([text.kind === 'read' ? text.value : text.detail]),
    readAssertion: (wallNow) => readAssertionFile(file, wallNow),
    authenticate: async (clientId, { wallNow }) => {
      const reading = await readAssertionFile(file, wallNow);
      return reading.kind === 'unreadable' ? reading : authenticateWithAssertion(clientId, reading.assertion);
    },
  };
}

async function readSigningMethod(options: AssertionSigningOptions): Promise<AuthMethodReadResult | Unreadable> {
  const signer = await readAssertionSigner(options);
  if (signer.kind === 'unreadable') return signer;
  const { algorithm, keyMaterial, versionParts, sign } = signer;
  const authenticate = async (clientId: string, target: AssertionTarget): Promise<ClientAuthentication> =>
    authenticateWithAssertion(clientId, await sign(clientId, target));
  return { kind: 'read', algorithm, keyMaterial, versionParts, authenticate };
}

/** RFC 7523 §2.2. */
function authenticateWithAssertion(clientId: string, assertion: string): ClientAuthentication {
  const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  return authenticateWithForm({ client_id: clientId, client_assertion_type: type, client_assertion: assertion }, [
    assertion,
  ]);
}

async function readCertificate({ certificateFile, keyFile }: ClientCertificateFiles) {
  const [certificate, key] = await Promise.all([
    readTextFile('auth.tlsCertificateFile', certificateFile, LARGEST_PEM_BYTES),
    readTextFile('auth.tlsKeyFile', keyFile, LARGEST_PEM_BYTES),
  ]);
  if (certificate.kind === 'unreadable') return certificate;
  if (key.kind === 'unreadable') return key;
  const client: ClientCertificate = { certificate: certificate.value, key: key.value };
  const fault = findClientCertificateFault(client);
  if (fault !== undefined)
    return {
      kind: 'unreadable',
      detail: `auth.tlsCertificateFile: ${certificateFile} and ${keyFile}: ${fault}`,
    } as const;
  const keyMaterial = encodePrivateKey(createPrivateKey(client.key));
  return { kind: 'read', client, keyMaterial, versionParts: [client.certificate, client.key] } as const;
}

/** Random per process: a fingerprint reveals nothing and matches nothing elsewhere. */
const FINGERPRINT_KEY = randomBytes(32);

function fingerprint(parts: readonly string[]): string {
  return createHmac('sha256', FINGERPRINT_KEY).update(JSON.stringify(parts)).digest('base64url');
}
