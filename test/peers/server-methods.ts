/**
 * Tries every method of client authentication at one real authorization server, through the sidecar as users run it: which clients obtain a
 * token that the upstream receives. Ids and secrets are generated, of letters and digits, and of what encodings change.
 */
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { SignJWT } from 'jose';
import { makeCertificates } from '../support/certificates.ts';
import type { Certificates } from '../support/certificates.ts';
import { registerSecret } from '../support/secrets.ts';
import { AUDIENCE, SCOPE } from './authorization-servers.ts';
import { startCredentialRoutes, TOP_LEVEL } from './credential-routes.ts';
import type { CredentialSettings } from './credential-routes.ts';
import type { ClientMethod, RealServer, ServerClient } from './real-servers.ts';

/** A column of the table. */
export type MethodColumn =
  | 'client_secret_basic, raw'
  | 'client_secret_basic, form'
  | Exclude<ClientMethod, 'client_secret_basic'>;

const METHOD_COLUMNS: readonly MethodColumn[] = [
  'client_secret_basic, raw',
  'client_secret_basic, form',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'client_assertion',
];

/** How many clients obtained a token, of how many. */
export interface MethodResult {
  readonly column: MethodColumn;
  /** Ids and secrets of letters and digits. */
  readonly plain: Count;
  /** Ids and secrets with other characters; undefined for methods without a secret. */
  readonly special: Count | undefined;
}

export interface Count {
  readonly obtained: number;
  readonly tried: number;
}

const SPECIAL_CLIENTS = 6;
const ASCII_SPECIALS = `:%+&=/"\\ '?#;@[]{}<>~`;
const WIDE_SPECIALS = `${ASCII_SPECIALS}éü日本😀`;

interface Attempt {
  readonly column: MethodColumn;
  readonly isSpecial: boolean;
  readonly client: ServerClient;
  readonly settings: CredentialSettings;
}

/** @param methods those to try; the default is all that the server offers */
export async function tryMethods(
  server: RealServer,
  methods: readonly ClientMethod[] = server.methods,
): Promise<readonly MethodResult[]> {
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'server-methods-'));
  started.defer(() => {
    rmSync(folder, { recursive: true });
  });
  const certificates = started.use(makeCertificates());
  const key = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const attempts = methods.flatMap((method) => listAttempts(server, method, { folder, certificates, key }));
  const { tokenUrl } = started.use(await server.start(listClients(attempts), certificates));
  for (const { client, settings } of attempts)
    if (typeof settings.assertionFile === 'string')
      writeFileSync(settings.assertionFile, await signAssertion(client.id, tokenUrl, key.privateKey), { mode: 0o600 });

  const { origin, pathname } = new URL(tokenUrl);
  const where = { url: origin, tokenPath: pathname, scope: SCOPE, audience: AUDIENCE };
  const settings = attempts.map((attempt) => ({
    ...attempt.settings,
    ...(attempt.column === 'client_assertion' ? { assertionFileAudience: tokenUrl } : {}),
  }));
  const [first = {}, ...others] = settings;
  const names = attempts.map((_, index) => (index === 0 ? TOP_LEVEL : `client-${String(index)}`));
  const routes = started.use(
    await startCredentialRoutes(
      `server-${server.name.replaceAll(/\W+/g, '-')}-${methods.join('-')}`,
      { ...where, ...first },
      Object.fromEntries(others.map((each, index): [string, CredentialSettings] => [names[index + 1] ?? '', each])),
      { SIDECAR_CA_FILE: certificates.caFile },
    ),
  );
  const outcomes = await Promise.all(
    attempts.map(async ({ column, isSpecial }, index) => {
      const { status } = await routes.call(names[index] ?? '');
      return { column, isSpecial, isObtained: status === 200 };
    }),
  );
  const obtained = outcomes.filter(({ isObtained }) => isObtained).length;
  if (routes.upstream.requests.length !== obtained) throw new Error('a call reached the upstream without a token');
  return METHOD_COLUMNS.flatMap((column) => {
    const ofColumn = outcomes.filter((outcome) => outcome.column === column);
    if (ofColumn.length === 0) return [];
    const special = ofColumn.filter(({ isSpecial }) => isSpecial);
    return [
      {
        column,
        plain: count(ofColumn.filter(({ isSpecial }) => !isSpecial)),
        special: special.length === 0 ? undefined : count(special),
      },
    ];
  });
}

function count(outcomes: readonly { readonly isObtained: boolean }[]): Count {
  return { obtained: outcomes.filter(({ isObtained }) => isObtained).length, tried: outcomes.length };
}

/** Each client once: it is tried with both encodings. */
function listClients(attempts: readonly Attempt[]): ServerClient[] {
  return [...new Map(attempts.map(({ client }) => [client.id, client])).values()];
}

interface KeyMaterial {
  readonly folder: string;
  readonly certificates: Certificates;
  readonly key: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
}

function listAttempts(server: RealServer, method: ClientMethod, material: KeyMaterial): readonly Attempt[] {
  switch (method) {
    case 'client_secret_basic':
      return generateClients(server, method).flatMap(({ client, isSpecial }) =>
        (['raw', 'form'] as const).map((encoding) => ({
          column: `${method}, ${encoding}` as const,
          isSpecial,
          client,
          settings: { ...toSettings(client), basicEncoding: encoding },
        })),
      );
    case 'client_secret_post':
      return generateClients(server, method).map(({ client, isSpecial }) => ({
        column: method,
        isSpecial,
        client,
        settings: toSettings(client),
      }));
    default:
      return [{ column: method, isSpecial: false, ...registerKey(method, material) }];
  }
}

function toSettings({ id, secret, method }: ServerClient): CredentialSettings {
  return { method, clientId: id, clientSecret: secret };
}

/** Every secret with special characters has `%41`, `%25` and `+`, which a server that form-decodes changes. */
function generateClients(
  { characters }: RealServer,
  method: 'client_secret_basic' | 'client_secret_post',
): readonly { readonly client: ServerClient; readonly isSpecial: boolean }[] {
  const specials = Array.from(characters === 'all' ? WIDE_SPECIALS : ASCII_SPECIALS);
  const unit = fc.constantFrom(...specials, ...Array.from('abcXYZ019-._'));
  const text = fc.string({ unit, minLength: 8, maxLength: 30 });
  const random = (): string => randomUUID().replaceAll('-', '').slice(0, 16);
  const drawn = fc.sample(fc.tuple(text, text), SPECIAL_CLIENTS - 1);
  const special = [[specials.join(''), specials.join('')] as const, ...drawn].map(([id, secret]) => ({
    // A colon ends the id in Basic (RFC 7617 §2), so that the sidecar refuses it.
    id: `${id.replaceAll(':', '').trim()}${random()}`.slice(-90),
    secret: `${random()}${secret}%41%25+${random()}`,
  }));
  return [{ id: random(), secret: random() }, ...special].map((credential, index) => {
    registerSecret('a client secret', credential.secret);
    return { client: { ...credential, method }, isSpecial: index > 0 };
  });
}

function registerKey(
  method: 'private_key_jwt' | 'tls_client_auth' | 'client_assertion',
  { folder, certificates, key }: KeyMaterial,
): Pick<Attempt, 'client' | 'settings'> {
  const id = `app-${method.replaceAll('_', '-')}`;
  if (method === 'tls_client_auth') {
    const { certificateFile, keyFile } = certificates.issue(id);
    return {
      client: { id, method, subject: `CN=${id}` },
      settings: { method, clientId: id, tlsCertificateFile: certificateFile, tlsKeyFile: keyFile },
    };
  }
  const jwk = { ...key.publicKey.export({ format: 'jwk' }), alg: 'ES256', kid: 'one' };
  const client: ServerClient = { id, method: 'private_key_jwt', jwk };
  if (method === 'client_assertion')
    return { client, settings: { method, clientId: id, assertionFile: join(folder, 'assertion') } };
  const file = join(folder, 'key.pem');
  writeFileSync(file, key.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 });
  return { client, settings: { method, clientId: id, privateKeyFile: file, keyId: 'one' } };
}

function signAssertion(clientId: string, audience: string, key: KeyObject): Promise<string> {
  return new SignJWT({})
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(audience)
    .setJti(randomUUID())
    .setIssuedAt()
    .setExpirationTime('5m')
    .sign(key);
}
