/**
 * Authenticates the client to the token endpoint: a secret in HTTP Basic (RFC 7617) or in the form (RFC 6749 §2.3.1), an assertion
 * that is signed here or by another party (RFC 7523), or a certificate (RFC 8705). Each read returns a credential, a value that can be kept and used again
 * when a newer one is refused.
 */
import { createHmac, createPrivateKey, randomBytes } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { SecureContext } from 'node:tls';
import { formEncode } from '../../platform/secret-redaction.ts';
import { findClientCertificateFault, buildTlsContext } from '../../platform/tls.ts';
import type { ClientCertificate, ClientCertificateFiles } from '../../platform/tls.ts';
import { LARGEST_ASSERTION_BYTES, readAssertionFile } from './assertion-file.ts';
import type { AssertionFile, AssertionReadResult } from './assertion-file.ts';
import { signAssertion } from './signed-assertion.ts';
import { LARGEST_PEM_BYTES, readClientId, readSecret, readTextFile } from './secret-file.ts';
import type { SecretSource } from './secret-file.ts';
import { parseSigningKey } from './signing-key.ts';
import type { SigningAlgorithm, SigningKey } from './signing-key.ts';

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
  /** The certificate alone. */
  | { readonly name: 'tls_client_auth' }
  /** The client does not authenticate, or only by extra parameters. */
  | { readonly name: 'none' };

/** How assertions are signed, those of the client (RFC 7523 §2.2) and those that are the grant (§2.1). */
export interface AssertionSigningOptions {
  /** PEM or one JWK. */
  readonly keyFile: string;
  /** `kid` of the assertion; undefined = that of the JWK, if it has one. */
  readonly keyId: string | undefined;
  /** Undefined = as the key says. */
  readonly algorithm: SigningAlgorithm | undefined;
  /** PEM certificate of the key, whose thumbprints the assertion names (`x5t`, `x5t#S256`); undefined = none. */
  readonly certificateFile: string | undefined;
  /** `aud` of the assertion: `token_endpoint` for its URL, `issuer` for the issuer if it is known, else the text itself. */
  readonly audience: string;
}

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
}

/** The receiver of a token request. */
export interface ClientAuthTarget {
  readonly tokenUrl: URL;
  readonly issuer: string | undefined;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

/** What one token request carries to authenticate the client. */
export interface ClientAuthentication {
  readonly kind: 'authenticated';
  /** The value of the `Authorization` header. */
  readonly authorization: string | undefined;
  readonly parameters: readonly (readonly [name: string, value: string])[];
  /** Secrets in the request. */
  readonly valuesToRedact: readonly string[];
}

/** The client's credential as of the time it was read. */
export interface ClientCredential {
  readonly kind: 'ready';
  readonly clientId: string;
  readonly method: ClientAuthMethod['name'];
  /** The algorithm of assertions; undefined without them. */
  readonly algorithm: SigningAlgorithm | undefined;
  /**
   * Changes with the id, the secret, the key or the certificate. Valid in this process only. Not with the assertion in a file: its
   * issuer renews it often, and a held token stays good.
   */
  readonly version: string;
  /**
   * Changes with the assertion in a file, readable or not; undefined for a method that has none. A request that failed is worth
   * repeating when it has changed.
   */
  readonly proofVersion: string | undefined;
  /** The secret or the private key. Random for an assertion in a file: what it seals opens nowhere else. */
  readonly keyMaterial: string;
  /**
   * For one request: an assertion that is signed here is never used twice, and one in a file is read anew. Rejects only when the
   * platform cannot sign.
   */
  readonly authenticate: (target: ClientAuthTarget) => Promise<ClientAuthentication | Unreadable>;
  /**
   * Reads the assertion that a request would send now; undefined for a method that has none in a file. Never rejects.
   * @param wallNow epoch milliseconds
   */
  readonly readAssertion: ((wallNow: number) => Promise<AssertionReadResult>) | undefined;
  /**
   * Creates a context that offers the client certificate, if there is one.
   * @param ca PEM certificates to trust; undefined = Node's and the system's roots
   */
  readonly createTlsContext: (ca: string | undefined) => SecureContext;
  readonly hasCertificate: boolean;
}

export type ClientCredentialReadResult =
  | ClientCredential
  /** `detail` names the setting, is safe to log, and shows no contents. */
  | { readonly kind: 'unreadable'; readonly detail: string };

type Unreadable = Extract<ClientCredentialReadResult, { kind: 'unreadable' }>;

/** Whether any part of the credential is in a file, so that it may change. */
export function canCredentialChange({ clientId, method, clientCertificate }: ClientAuthOptions): boolean {
  if (clientId?.kind === 'file' || clientCertificate !== undefined || method.name === 'private_key_jwt') return true;
  return method.name === 'client_assertion' || ('secret' in method && method.secret.kind === 'file');
}

/** Reads all files of the credential. Never rejects. */
export async function readClientCredential({
  clientId,
  method,
  clientCertificate,
}: ClientAuthOptions): Promise<ClientCredentialReadResult> {
  const [id, reading, certificate] = await Promise.all([
    readClientId(clientId),
    readAuthMethod(method),
    clientCertificate === undefined ? undefined : readCertificate(clientCertificate),
  ]);
  if (id.kind === 'unreadable') return id;
  if (reading.kind === 'unreadable') return reading;
  if (certificate?.kind === 'unreadable') return certificate;
  // The first colon ends the id (RFC 7617 §2): the rest would become part of the secret.
  if (method.name === 'client_secret_basic' && method.encoding === 'raw' && id.value.includes(':'))
    return { kind: 'unreadable', detail: 'auth.clientId: holds a colon, which HTTP Basic cannot carry' };
  const client = certificate?.client;
  const keyMaterial = reading.keyMaterial ?? (client && encodePrivateKey(createPrivateKey(client.key)));
  if (keyMaterial === undefined)
    return { kind: 'unreadable', detail: 'auth.tlsCertificateFile: required by auth.method tls_client_auth' };
  const certificateParts = client === undefined ? [] : [client.certificate, client.key];
  return {
    kind: 'ready',
    clientId: id.value,
    method: method.name,
    algorithm: reading.algorithm,
    version: fingerprint([method.name, id.value, ...reading.versionParts, ...certificateParts]),
    keyMaterial,
    authenticate: (target) => reading.authenticate(id.value, target),
    proofVersion: reading.proofVersion,
    readAssertion: reading.readAssertion,
    createTlsContext: (ca) => buildTlsContext(ca, client),
    hasCertificate: client !== undefined,
  };
}

interface AuthMethodReadResult {
  readonly kind: 'read';
  /** Undefined = that of the certificate. */
  readonly keyMaterial: string | undefined;
  readonly versionParts: readonly string[];
  readonly algorithm?: SigningAlgorithm;
  readonly proofVersion?: string;
  readonly readAssertion?: ClientCredential['readAssertion'];
  readonly authenticate: (clientId: string, target: ClientAuthTarget) => Promise<ClientAuthentication | Unreadable>;
}

async function readAuthMethod(method: ClientAuthMethod): Promise<AuthMethodReadResult | Unreadable> {
  if (method.name === 'tls_client_auth')
    return {
      kind: 'read',
      keyMaterial: undefined,
      versionParts: [],
      authenticate: (id) => Promise.resolve(authenticateWithForm([['client_id', id]])),
    };
  if (method.name === 'none')
    return {
      kind: 'read',
      keyMaterial: EPHEMERAL_KEY_MATERIAL,
      versionParts: [],
      authenticate: () => Promise.resolve(authenticateWithForm([])),
    };
  if (method.name === 'private_key_jwt') return readSigningMethod(method);
  if (method.name === 'client_assertion') return readFileAssertionMethod(method.file);
  const secret = await readSecret('auth.clientSecret', method.secret);
  if (secret.kind === 'unreadable') return secret;
  const authenticate = (id: string): ClientAuthentication =>
    method.name === 'client_secret_basic'
      ? authenticateWithBasic(id, secret.value, method.encoding)
      : authenticateWithForm(
          [
            ['client_id', id],
            ['client_secret', secret.value],
          ],
          [secret.value, formEncode(secret.value)],
        );
  return {
    kind: 'read',
    keyMaterial: secret.value,
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
  parameters: ClientAuthentication['parameters'],
  valuesToRedact: readonly string[] = [],
): ClientAuthentication {
  return { kind: 'authenticated', authorization: undefined, parameters, valuesToRedact };
}

/** The file is read again with each request: the assertion in it may have been renewed, or have expired. */
async function readFileAssertionMethod(file: AssertionFile): Promise<AuthMethodReadResult> {
  const text = await readTextFile('auth.assertionFile', file.path, LARGEST_ASSERTION_BYTES);
  const readAssertion = (wallNow: number): Promise<AssertionReadResult> => readAssertionFile(file, wallNow);
  return {
    kind: 'read',
    keyMaterial: EPHEMERAL_KEY_MATERIAL,
    versionParts: [file.path, file.audience],
    proofVersion: fingerprint([text.kind === 'read' ? text.value : text.detail]),
    readAssertion,
    authenticate: async (clientId, { wallNow }) => {
      const reading = await readAssertion(wallNow);
      return reading.kind === 'unreadable' ? reading : authenticateWithAssertion(clientId, reading.assertion);
    },
  };
}

async function readSigningMethod(
  method: Extract<ClientAuthMethod, { name: 'private_key_jwt' }>,
): Promise<AuthMethodReadResult | Unreadable> {
  const file = await readTextFile('auth.privateKeyFile', method.keyFile, LARGEST_PEM_BYTES);
  if (file.kind === 'unreadable') return file;
  const reading = parseSigningKey(file.value, method.algorithm);
  if (reading.kind === 'unusable')
    return { kind: 'unreadable', detail: `auth.privateKeyFile: the file ${method.keyFile} ${reading.fault}` };
  const key: SigningKey = { ...reading.signingKey, keyId: method.keyId ?? reading.signingKey.keyId };
  return {
    kind: 'read',
    keyMaterial: encodePrivateKey(key.key),
    versionParts: [encodePrivateKey(key.key), key.algorithm, key.keyId ?? ''],
    algorithm: key.algorithm,
    authenticate: async (clientId, { tokenUrl, issuer, wallNow }) => {
      const audience = method.audience === 'issuer' ? (issuer ?? tokenUrl.href) : tokenUrl.href;
      const assertion = await signAssertion({ clientId, audience, key, wallNow });
      return authenticateWithAssertion(clientId, assertion);
    },
  };
}

/** RFC 7523 §2.2. */
function authenticateWithAssertion(clientId: string, assertion: string): ClientAuthentication {
  return authenticateWithForm(
    [
      ['client_id', clientId],
      ['client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'],
      ['client_assertion', assertion],
    ],
    [assertion],
  );
}

async function readCertificate({
  certificateFile,
  keyFile,
}: ClientCertificateFiles): Promise<{ readonly kind: 'read'; readonly client: ClientCertificate } | Unreadable> {
  const [certificate, key] = await Promise.all([
    readTextFile('auth.tlsCertificateFile', certificateFile, LARGEST_PEM_BYTES),
    readTextFile('auth.tlsKeyFile', keyFile, LARGEST_PEM_BYTES),
  ]);
  if (certificate.kind === 'unreadable') return certificate;
  if (key.kind === 'unreadable') return key;
  const client = { certificate: certificate.value, key: key.value };
  const fault = findClientCertificateFault(client);
  if (fault === undefined) return { kind: 'read', client };
  return { kind: 'unreadable', detail: `auth.tlsCertificateFile: ${certificateFile} and ${keyFile}: ${fault}` };
}

/** Equal for every encoding of the same key. */
function encodePrivateKey(key: KeyObject): string {
  return key.export({ format: 'der', type: 'pkcs8' }).toString('base64');
}

const EPHEMERAL_KEY_MATERIAL = randomBytes(32).toString('base64url');

/** Random per process: a fingerprint reveals nothing and matches nothing elsewhere. */
const FINGERPRINT_KEY = randomBytes(32);

function fingerprint(parts: readonly string[]): string {
  return createHmac('sha256', FINGERPRINT_KEY).update(JSON.stringify(parts)).digest('base64url');
}
