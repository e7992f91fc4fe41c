/**
 * Whom TLS connections trust, and with which certificate they show who they are: TLS 1.2 or newer, and one context per
 * destination that is shared, since parsing roots costs milliseconds. The files are followed: whoever rotates them need not
 * restart anything.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** What to trust, and to show, in a connection that is about to be opened; the same context as long as nothing has changed. */
export type TlsContextProvider = () => SecureContext;

/** A client certificate with its chain, and the key that belongs to it; PEM, the key not encrypted. */
export interface ClientCertificateFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** The contents of such files. */
export interface ClientCertificate {
  readonly certificate: string;
  readonly key: string;
}

/**
 * @param caFile PEM file whose certificates replace the system's roots; undefined = Node's and the system's roots
 * @param files the certificate to show when the other side asks for one; default none
 * @throws Error in words for people when a file cannot be read or used
 */
export function loadTlsContext(caFile: string | undefined, files?: ClientCertificateFiles): SecureContext {
  const pem = caFile === undefined ? undefined : readFileSync(caFile, 'utf8');
  if (caFile !== undefined && pem !== undefined) assertCertificate(pem, `the file ${caFile} of trusted authorities`);
  return buildTlsContext(pem, files === undefined ? undefined : readClientCertificate(files));
}

/**
 * As `trustContext`, read again whenever a file has changed. Files that are gone, broken or do not belong together by then change
 * nothing: they are most likely being replaced.
 * @throws Error as trustContext does, now and not later
 */
export function createTlsContextProvider(
  caFile: string | undefined,
  files?: ClientCertificateFiles,
): TlsContextProvider {
  const paths = [caFile, files?.certificateFile, files?.keyFile].filter((path) => path !== undefined);
  let version = fileVersions(paths);
  let context = loadTlsContext(caFile, files);
  return () => {
    try {
      const seen = fileVersions(paths);
      if (seen !== version) context = loadTlsContext(caFile, files);
      version = seen;
    } catch {
      return context;
    }
    return context;
  };
}

/**
 * The context for texts that were read already.
 * @param ca PEM certificates to trust; undefined = Node's and the system's roots
 * @throws Error of OpenSSL when a text cannot be used: `clientCertificateFault` says why in words
 */
export function buildTlsContext(ca: string | undefined, client?: ClientCertificate): SecureContext {
  if (ca === undefined && client === undefined)
    return (systemRootsContext ??= createTls12Context(systemRoots(), undefined));
  return createTls12Context(ca ?? systemRoots(), client);
}

let systemRootsContext: SecureContext | undefined;

function createTls12Context(ca: string | string[], client: ClientCertificate | undefined): SecureContext {
  const shown = client === undefined ? {} : { cert: client.certificate, key: client.key };
  return createSecureContext({ ca, ...shown, minVersion: 'TLSv1.2' });
}

/** What is wrong with a certificate and its key, in words that show neither; undefined when nothing is. */
export function findClientCertificateFault({ certificate, key }: ClientCertificate): string | undefined {
  const leaf = tryRead(() => new X509Certificate(certificate));
  if (leaf === undefined) return 'the certificate is no PEM certificate';
  if (key.includes('ENCRYPTED')) return 'the key is encrypted; expected one without a passphrase';
  const privateKey = tryRead(() => createPrivateKey(key));
  if (privateKey === undefined) return 'the key is no PEM private key';
  return leaf.checkPrivateKey(privateKey)
    ? undefined
    : 'the key does not belong to the certificate (whose own must come first in its file)';
}

function readClientCertificate({ certificateFile, keyFile }: ClientCertificateFiles): ClientCertificate {
  const client = { certificate: readFileSync(certificateFile, 'utf8'), key: readFileSync(keyFile, 'utf8') };
  const fault = findClientCertificateFault(client);
  if (fault !== undefined) throw new Error(`the files ${certificateFile} and ${keyFile}: ${fault}`);
  return client;
}

function tryRead<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // OpenSSL's words are of no help to a person.
    return undefined;
  }
}

/** TLS takes a text without certificates silently, and then trusts nobody. */
export function assertCertificate(pem: string, what: string): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`${what} does not begin with a PEM certificate`, { cause });
  }
}

/** A mounted ConfigMap changes by a link that points to another file: its age alone would not tell. */
function fileVersions(files: readonly string[]): string {
  return files
    .map((file) => {
      const { mtimeMs, size, ino } = statSync(file);
      return [mtimeMs, size, ino].join(' ');
    })
    .join('\n');
}

/** A slim image has no system store, and a corporate laptop has more than Node's: both count. */
function systemRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
