/**
 * TLS contexts: trusted authorities and client certificate, TLS 1.2 or newer. A context is shared by the connections to a destination,
 * since parsing roots takes milliseconds, and is created again when its files change, so that rotation needs no restart.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { tryRead } from './try-read.ts';

/** The context for a new connection; the same object until a file changes. */
export type TlsContextProvider = () => SecureContext;

/** PEM files of a client certificate with its chain, and of its key, which is not encrypted. */
export interface ClientCertificateFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

/**
 * @param caFile PEM file whose certificates replace the system's roots; undefined = Node's and the system's roots
 * @param files the client certificate. Default: none
 * @param groups as OpenSSL writes a list of groups for the key exchange. Default: its own
 * @throws Error with a message for the operator when a file cannot be read or used
 */
export function loadTlsContext(
  caFile: string | undefined,
  files?: ClientCertificateFiles,
  groups?: string,
): SecureContext {
  const pem = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
  if (caFile !== undefined && pem !== undefined) assertCertificate(pem, `the file ${caFile} of trusted authorities`);
  return buildTlsContext(pem, files === undefined ? undefined : readClientCertificate(files), groups);
}

/**
 * Like `loadTlsContext`, and loads again when a file has changed. Files that are missing, broken or do not match then are ignored: they
 * are probably being replaced.
 * @throws Error of loadTlsContext, now and not later
 */
export function createTlsContextProvider(
  caFile: string | undefined,
  files?: ClientCertificateFiles,
  groups?: string,
): TlsContextProvider {
  const paths = [caFile, files?.certificateFile, files?.keyFile].filter((path) => path !== undefined);
  let version = fileVersions(paths);
  let context = loadTlsContext(caFile, files, groups);
  return () => {
    const current = tryRead(() => fileVersions(paths));
    const changed = current === version ? undefined : tryRead(() => loadTlsContext(caFile, files, groups));
    if (current === undefined || changed === undefined) return context;
    version = current;
    return (context = changed);
  };
}

/**
 * The context for PEM texts.
 * @param ca certificates to trust; undefined = Node's and the system's roots
 * @param groups as of `loadTlsContext`
 * @throws Error of OpenSSL when a text cannot be used; `findClientCertificateFault` explains it
 */
export function buildTlsContext(ca: string | undefined, client?: ClientCertificate, groups?: string): SecureContext {
  const isShared = ca === undefined && client === undefined && typeof groups !== 'string';
  if (isShared && systemRootsContext !== undefined) return systemRootsContext;
  const identity = client === undefined ? {} : { cert: client.certificate, key: client.key };
  const ecdhCurve = groups ?? 'auto';
  const context = createSecureContext({ ca: ca ?? systemRoots(), ...identity, ecdhCurve, minVersion: 'TLSv1.2' });
  if (isShared) systemRootsContext = context;
  return context;
}

let systemRootsContext: SecureContext | undefined;

/** A PEM certificate takes the place of all roots, for servers of this process: no file is needed, since the disk may be read-only. */
export function trustOnly(root: string): void {
  systemRootsContext = buildTlsContext(root);
}

/** What is wrong with a certificate and its key, without their contents; undefined when they can be used. */
export function findClientCertificateFault({ certificate, key }: ClientCertificate): string | undefined {
  const leaf = tryRead(() => new X509Certificate(certificate));
  if (leaf === undefined) return 'the certificate is no PEM certificate';
  if (key.includes('ENCRYPTED')) return 'the key is encrypted; expected one without a passphrase';
  const privateKey = tryRead(() => createPrivateKey(key));
  if (privateKey === undefined) return 'the key is no PEM private key';
  return leaf.checkPrivateKey(privateKey) ? undefined : 'the key does not belong to the certificate';
}

function readClientCertificate({ certificateFile, keyFile }: ClientCertificateFiles): ClientCertificate {
  const client = { certificate: readFileSync(certificateFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  const fault = findClientCertificateFault(client);
  if (fault !== undefined) throw new Error(`the files ${certificateFile} and ${keyFile}: ${fault}`);
  return client;
}

/** createSecureContext accepts a text without certificates, and then trusts no server. */
export function assertCertificate(pem: string, what: string): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${what} does not begin with a PEM certificate`, { cause });
  }
}

/** With the inode: a mounted ConfigMap changes by a link to another file, whose time and size may be the same. */
function fileVersions(files: readonly string[]): string {
  return files
    .map((file) => {
      const { mtimeMs, size, ino } = statSync(file);
      return [mtimeMs, size, ino].join(' ');
    })
    .join('\n');
}

/** Both: a slim image has no system store, and a company's machine has more roots than Node.js. */
function systemRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
