/**
 * The sidecar as users run it with one route for each of several credentials, in front of a recording upstream: a call to `/NAME` shows
 * whether the credential of that name obtains a token.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { call } from '../support/calls.ts';
import type { CallResponse } from '../support/calls.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RecordingUpstream } from '../support/recording-upstream.ts';
import { startSidecar } from '../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../support/sidecar-process.ts';

/** Settings of a credential, by their key below `auth`. */
export type CredentialSettings = Readonly<Record<string, unknown>>;

/** The route of the top-level credential. */
export const TOP_LEVEL = 'top-level';

export interface CredentialRoutes extends AsyncDisposable {
  readonly sidecar: RunningSidecar;
  readonly upstream: RecordingUpstream;
  /** A call through the route of the credential: a name, or `TOP_LEVEL`. */
  readonly call: (credential: string) => Promise<CallResponse>;
}

/**
 * @param outputName names the copy of the sidecar's output
 * @param auth the top-level credential, which the others inherit from
 * @throws Error when the sidecar does not accept the settings
 */
export async function startCredentialRoutes(
  outputName: string,
  auth: CredentialSettings,
  credentials: Readonly<Record<string, CredentialSettings>>,
  env: Environment = {},
): Promise<CredentialRoutes> {
  await using starting = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'credential-routes-'));
  starting.defer(() => {
    rmSync(folder, { recursive: true });
  });
  const upstream = starting.use(await startRecordingUpstream());
  const routes = [TOP_LEVEL, ...Object.keys(credentials)].map((name) => ({
    name,
    pathPrefix: `/${name}`,
    baseUrl: upstream.url,
    credential: name === TOP_LEVEL ? 'default' : name,
  }));
  const file = join(folder, 'sidecar.json');
  writeFileSync(file, JSON.stringify({ auth, credentials, routes }), { mode: 0o600 });
  const sidecar = starting.use(
    await startSidecar({ name: outputName, args: ['--config', file], env: { SIDECAR_LOG_LEVEL: 'debug', ...env } }),
  );
  const running = starting.move();
  return {
    sidecar,
    upstream,
    call: (credential) => call(`${sidecar.proxyUrl}/${credential}`),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
