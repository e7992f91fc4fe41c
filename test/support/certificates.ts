/** A certificate authority of a test's own, and certificates for servers and clients signed by it; made by openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates extends Disposable {
  /** PEM file of the authority, as `SIDECAR_CA_FILE` takes it. */
  readonly caFile: string;
  /** The same as bytes. */
  readonly ca: Buffer;
  readonly key: Buffer;
  readonly cert: Buffer;
  /** The two of the server as files. */
  readonly serverFiles: IssuedFiles;
  /** A client's certificate with its key, as files; each call makes a new one. */
  issue(commonName: string): IssuedFiles;
}

export interface IssuedFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface CertificateOptions {
  /** As openssl writes them. Default: 127.0.0.1 and localhost. */
  readonly names?: string;
  /** Options of openssl for the server's key. Default: a key that is strong */
  readonly serverKey?: readonly string[];
  /** How long the server's certificate is valid from now on; negative has run out. Default 2. */
  readonly days?: number;
}

export function makeCertificates(options: CertificateOptions = {}): Certificates {
  const { names = 'IP:127.0.0.1,DNS:localhost', days = 2, serverKey } = options;
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  const openssl = (...args: string[]): void => {
    execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });
  };
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  writeFileSync(join(folder, 'server.ext'), `subjectAltName=${names}\n`);
  openssl('req', '-x509', ...newKey, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=Test CA');
  openssl('req', ...(serverKey ?? newKey), '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  const signing = [
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-days',
    String(days),
    '-extfile',
    'server.ext',
  ];
  openssl('x509', '-req', '-in', 'server.csr', ...signing, '-out', 'server.pem');
  let issued = 0;
  return {
    issue: (commonName) => {
      const name = `client-${String(++issued)}`;
      openssl('req', ...newKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', `/CN=${commonName}`);
      const authority = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2'];
      openssl('x509', '-req', '-in', `${name}.csr`, ...authority, '-out', `${name}.pem`);
      return { certificateFile: join(folder, `${name}.pem`), keyFile: join(folder, `${name}.key`) };
    },
    caFile: join(folder, 'ca.pem'),
    ca: readFileSync(join(folder, 'ca.pem')),
    key: readFileSync(join(folder, 'server.key')),
    cert: readFileSync(join(folder, 'server.pem')),
    serverFiles: { certificateFile: join(folder, 'server.pem'), keyFile: join(folder, 'server.key') },
    [Symbol.dispose]: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
