/**
 * Whom TLS connections trust: TLS 1.2 or newer, and one context per destination that is shared, since parsing roots costs
 * milliseconds. A file of authorities is followed: whoever rotates it need not restart anything.
 */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/** What to trust in a connection that is about to be opened; the same context as long as nothing has changed. */
export type Trust = () => SecureContext;

/**
 * @param caFile PEM file whose certificates replace the system's roots; undefined = Node's and the system's roots
 * @throws Error in words for people when the file cannot be read or holds no certificate
 */
export function trustContext(caFile: string | undefined): SecureContext {
  if (caFile === undefined) return (systemTrust ??= trusting(systemRoots()));
  const pem = readFileSync(caFile, 'utf8');
  assertCertificate(pem, caFile);
  return trusting(pem);
}

/**
 * As `trustContext`, read again whenever the file has changed. A file that is gone or broken by then changes nothing: it is
 * most likely being replaced.
 * @throws Error as trustContext does, now and not later
 */
export function followTrust(caFile: string | undefined): Trust {
  if (caFile === undefined) return () => trustContext(undefined);
  let version = versionOf(caFile);
  let context = trustContext(caFile);
  return () => {
    try {
      const seen = versionOf(caFile);
      if (seen !== version) context = trustContext(caFile);
      version = seen;
    } catch {
      return context;
    }
    return context;
  };
}

let systemTrust: SecureContext | undefined;

function trusting(ca: string | string[]): SecureContext {
  return createSecureContext({ ca, minVersion: 'TLSv1.2' });
}

/** TLS takes a text without certificates silently, and then trusts nobody. */
function assertCertificate(pem: string, file: string): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new Error(`the file ${file} of trusted authorities does not begin with a PEM certificate`, { cause });
  }
}

/** A mounted ConfigMap changes by a link that points to another file: its age alone would not tell. */
function versionOf(file: string): string {
  const { mtimeMs, size, ino } = statSync(file);
  return [mtimeMs, size, ino].join(' ');
}

/** A slim image has no system store, and a corporate laptop has more than Node's: both count. */
function systemRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
