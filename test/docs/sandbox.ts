/** The sandbox as the pages start it, on free ports, with the optional admin endpoints that pages use. */
import { saveCertificate } from '../support/sandbox-certificate.ts';
import { newCredential } from '../support/secrets.ts';
import { spawnSidecar } from '../support/sidecar-process.ts';
import type { SidecarProcess } from '../support/sidecar-process.ts';

export interface RunningSandbox extends SidecarProcess {
  readonly proxyUrl: string;
  readonly adminUrl: string;
  /** Settings of a client that the sandbox accepts, for other commands. */
  readonly client: Readonly<Record<string, string>>;
}

/** @param name names the file with a copy of its output */
export async function startSandbox(name: string): Promise<RunningSandbox> {
  const { id, secret } = newCredential();
  const client = { SIDECAR_CLIENT_ID: id, SIDECAR_CLIENT_SECRET: secret };
  const started = spawnSidecar({
    name,
    args: ['sandbox'],
    env: {
      ...client,
      SIDECAR_LISTEN: 'localhost:0',
      SIDECAR_ADMIN_LISTEN: 'localhost:0',
      SIDECAR_ADMIN_ALLOW_QUIT: 'true',
    },
  });
  const addressOf = async (what: string): Promise<string> =>
    (await started.waitForLine(new RegExp(`^${what} `))).slice(what.length + 1);
  const [proxyUrl, adminUrl] = [await addressOf('proxy'), await addressOf('admin')];
  const token = new URL(await addressOf('token'));
  return {
    ...started,
    proxyUrl,
    adminUrl,
    client: {
      ...client,
      SIDECAR_BASE_URL: await addressOf('api'),
      SIDECAR_AUTH_URL: token.origin,
      SIDECAR_CA_FILE: saveCertificate(token),
      SIDECAR_AUDIENCE: 'https://sales-api.sandbox.invalid/',
      SIDECAR_ADMIN_LISTEN: new URL(adminUrl).host,
    },
  };
}
