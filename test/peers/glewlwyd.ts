/** Glewlwyd, an authorization server in C (Debian's packages glewlwyd, dbconfig-sqlite3 and sqlite3), on a database of its own. */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../support/loopback.ts';
import { registerSecret } from '../support/secrets.ts';
import type { Credential } from '../support/secrets.ts';
import { startServerProgram } from '../support/server-program.ts';

const SCHEMA = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
const MODULES = '/usr/lib/glewlwyd';
/** Those of the administrator in the schema. */
const ADMINISTRATOR = { username: 'admin', password: 'password' };
const PLUGIN = 'peers';

export interface Glewlwyd extends AsyncDisposable {
  readonly tokenUrl: string;
}

/** @throws Error when it is not installed, or does not accept a client */
export async function startGlewlwyd(scope: string, clients: readonly Credential[]): Promise<Glewlwyd> {
  await using starting = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'glewlwyd-'));
  starting.defer(() => {
    rmSync(folder, { recursive: true });
  });
  const port = await freePort();
  const base = `http://127.0.0.1:${String(port)}`;
  const database = join(folder, 'glewlwyd.db');
  execFileSync('sqlite3', [database], { input: readFileSync(SCHEMA) });
  const file = join(folder, 'glewlwyd.conf');
  writeFileSync(file, renderConfiguration({ port, base, folder, database }));
  const program = await startServerProgram('glewlwyd', { args: ['--config-file', file], port });
  starting.defer(() => program.stop());
  await register(`${base}/api`, scope, clients);
  const running = starting.move();
  return { tokenUrl: `${base}/api/${PLUGIN}/token`, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

function renderConfiguration(at: { port: number; base: string; folder: string; database: string }): string {
  const texts = {
    bind_address: '127.0.0.1',
    external_url: at.base,
    login_url: 'login.html',
    api_prefix: 'api',
    static_files_path: at.folder,
    log_mode: 'console',
    log_level: 'NONE',
    cookie_domain: '127.0.0.1',
    admin_scope: 'g_admin',
    profile_scope: 'g_profile',
    user_module_path: `${MODULES}/user`,
    user_middleware_module_path: at.folder,
    client_module_path: `${MODULES}/client`,
    user_auth_scheme_module_path: `${MODULES}/scheme`,
    plugin_module_path: `${MODULES}/plugin`,
    hash_algorithm: 'SHA512',
  };
  return [
    `port=${String(at.port)}`,
    'cookie_secure=0',
    ...Object.entries(texts).map(([key, value]) => `${key}="${value}"`),
    `database = { type = "sqlite3" path = "${at.database}" };`,
    '',
  ].join('\n');
}

/** As its administration page does: the scope, the plug-in of OAuth 2.0 with client credentials alone, and the clients. */
async function register(api: string, scope: string, clients: readonly Credential[]): Promise<void> {
  const send = async (path: string, body: object, cookie = ''): Promise<Response> => {
    const headers = { 'content-type': 'application/json', cookie };
    const response = await fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`glewlwyd refused ${path}: ${await response.text()}`);
    return response;
  };
  const login = await send('/auth/', ADMINISTRATOR);
  const cookie = login.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
  const key = randomBytes(32).toString('hex');
  registerSecret('a key that signs access tokens', key);
  const grants = ['code', 'implicit', 'password', 'device', 'refresh'];
  const parameters = {
    url: PLUGIN,
    'jwt-type': 'sha',
    'jwt-key-size': '256',
    key,
    'access-token-duration': 3600,
    'refresh-token-duration': 3600,
    'code-duration': 600,
    'refresh-token-rolling': true,
    'auth-type-client-enabled': true,
    ...Object.fromEntries(grants.map((grant) => [`auth-type-${grant}-enabled`, false])),
    scope: [],
    'additional-parameters': [],
  };
  await send('/scope/', { name: scope, display_name: scope, password_required: false, scheme: {} }, cookie);
  await send('/mod/plugin/', { module: 'oauth2-glewlwyd', name: PLUGIN, display_name: PLUGIN, parameters }, cookie);
  for (const { id, secret } of clients) {
    const client = { client_id: id, name: 'of the tests', password: secret, confidential: true, enabled: true };
    await send('/client/', { ...client, scope: [scope], authorization_type: ['client_credentials'] }, cookie);
  }
}
