/**
 * Authorization servers that we did not write, in one form for all: how each is started with given clients, and what it offers. Those of npm
 * run in this process (authorization-servers.ts), the others as programs of Debian.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Certificates } from '../support/certificates.ts';
import type { Credential } from '../support/secrets.ts';
import { publicJwks, SCOPE, startNodeOAuth, startOidcProvider } from './authorization-servers.ts';
import type { RegisteredClient } from './authorization-servers.ts';
import { startGlewlwyd } from './glewlwyd.ts';

export type ClientMethod =
  | 'client_secret_basic'
  | 'client_secret_post'
  | 'private_key_jwt'
  | 'tls_client_auth'
  | 'client_assertion';

/** How a client is registered. */
export interface ServerClient {
  readonly id: string;
  /** An assertion is registered as `private_key_jwt`. */
  readonly method: Exclude<ClientMethod, 'client_assertion'>;
  readonly secret?: string;
  /** The public key of `private_key_jwt`, with `alg` and `kid`. */
  readonly jwk?: object;
  /** Of the certificate of `tls_client_auth`. */
  readonly subject?: string;
}

export interface StartedServer extends AsyncDisposable {
  readonly tokenUrl: string;
}

export interface RealServer {
  readonly name: string;
  readonly language: string;
  /** Debian's packages that it needs; none for those of npm. */
  readonly packages: readonly string[];
  readonly methods: readonly ClientMethod[];
  /** What it accepts in ids and secrets. */
  readonly characters: 'ASCII' | 'all';
  /** Whether it form-decodes the Basic value (RFC 6749 §2.3.1). */
  readonly decodesBasic: boolean;
  /** The version that is installed; undefined when it is not. */
  readonly findVersion: () => string | undefined;
  readonly start: (clients: readonly ServerClient[], certificates: Certificates) => Promise<StartedServer>;
}

const SECRETS = ['client_secret_basic', 'client_secret_post'] as const;
const PYTHON = '/usr/bin/python3';

export const REAL_SERVERS: readonly RealServer[] = [
  {
    name: 'oidc-provider',
    language: 'Node.js',
    packages: [],
    methods: [...SECRETS, 'private_key_jwt', 'tls_client_auth', 'client_assertion'],
    characters: 'ASCII',
    decodesBasic: true,
    findVersion: () => findNpmVersion('oidc-provider'),
    start: (clients, certificates) => startOidcProvider(certificates, clients.map(toOidcClient)),
  },
  {
    name: '@node-oauth/oauth2-server',
    language: 'Node.js',
    packages: [],
    methods: SECRETS,
    characters: 'ASCII',
    decodesBasic: false,
    findVersion: () => findNpmVersion('@node-oauth/oauth2-server'),
    start: (clients) => startNodeOAuth(...clients.map(toCredential)),
  },
  {
    name: 'Authlib',
    language: 'Python, Flask',
    packages: ['python3-authlib', 'python3-flask'],
    methods: [...SECRETS, 'private_key_jwt', 'client_assertion'],
    characters: 'all',
    decodesBasic: false,
    findVersion: () => findPythonVersion('authlib', 'flask'),
    start: (clients) => startProgram('authlib_server.py', clients),
  },
  {
    name: 'Django OAuth Toolkit',
    language: 'Python, Django',
    packages: ['python3-django-oauth-toolkit'],
    methods: SECRETS,
    characters: 'all',
    decodesBasic: true,
    findVersion: () => findPythonVersion('oauth2_provider', 'django'),
    start: (clients) => startProgram('django_server.py', clients),
  },
  {
    name: 'Glewlwyd',
    language: 'C',
    packages: ['glewlwyd', 'dbconfig-sqlite3', 'sqlite3'],
    methods: ['client_secret_basic'],
    characters: 'all',
    decodesBasic: false,
    findVersion: findGlewlwydVersion,
    start: (clients) => startGlewlwyd(SCOPE, clients.map(toCredential)),
  },
];

function toOidcClient({ id, method, secret, jwk, subject }: ServerClient): RegisteredClient {
  return {
    client_id: id,
    token_endpoint_auth_method: method,
    ...(secret === undefined ? {} : { client_secret: secret }),
    ...(jwk === undefined ? {} : { jwks: publicJwks(jwk), token_endpoint_auth_signing_alg: 'ES256' }),
    ...(subject === undefined ? {} : { tls_client_auth_subject_dn: subject }),
  };
}

function toCredential({ id, secret = '' }: ServerClient): Credential {
  return { id, secret };
}

function findNpmVersion(name: string): string | undefined {
  const { dependencies } = JSON.parse(
    spawnSync('npm', ['ls', '--json', name], { cwd: import.meta.dirname, encoding: 'utf8' }).stdout,
  ) as { dependencies?: Readonly<Record<string, { version: string }>> };
  return dependencies?.[name]?.version;
}

/** @param modules the first is the one whose version it is */
function findPythonVersion(...modules: readonly [string, ...string[]]): string | undefined {
  const program = `import ${modules.join(', ')}; print(${modules[0]}.__version__)`;
  const { status, stdout } = spawnSync(PYTHON, ['-c', program], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

function findGlewlwydVersion(): string | undefined {
  const { error, stdout } = spawnSync('glewlwyd', ['--version'], { encoding: 'utf8' });
  return error === undefined ? /\d+(?:\.\d+)+/.exec(stdout)?.[0] : undefined;
}

/** A program of test/peers/programs: it reads its clients from stdin and prints the URL of its token endpoint. */
async function startProgram(file: string, clients: readonly ServerClient[]): Promise<StartedServer> {
  const child = spawn(PYTHON, [join(import.meta.dirname, 'programs', file)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  child.stdin.write(`${JSON.stringify({ scope: SCOPE, clients })}\n`);
  const lines = createInterface({ input: child.stdout });
  const line = await Promise.race([once(lines, 'line'), ended.then(() => undefined)]);
  if (line === undefined) throw new Error(`${file} ended before it listened`);
  const { url } = JSON.parse(String(line[0])) as { url: string };
  return {
    tokenUrl: url,
    [Symbol.asyncDispose]: async () => {
      child.stdin.end();
      await ended;
    },
  };
}
