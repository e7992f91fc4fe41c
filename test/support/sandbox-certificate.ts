/** The certificate of a running sandbox as a file, for other clients of its servers; fetched as the sandbox says. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** @returns the path, as `SIDECAR_CA_FILE` takes it; this process removes the file at its end */
export function saveCertificate(tokenUrl: string | URL): string {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-certificate-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'ca.pem');
  execFileSync('curl', ['-sko', path, new URL('/ca.pem', tokenUrl).href]);
  return path;
}
