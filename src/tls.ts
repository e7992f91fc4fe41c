/** Whom TLS connections trust. One context is made per destination and shared: parsing roots costs milliseconds. */
import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * @param caFile PEM file whose certificates replace the system's roots; undefined = Node's and the system's roots
 * @throws Error when the file cannot be read or holds no certificate
 */
export function trustContext(caFile: string | undefined): SecureContext {
  if (caFile === undefined) return (systemTrust ??= trusting(systemRoots()));
  return trusting(readFileSync(caFile, 'utf8'));
}

let systemTrust: SecureContext | undefined;

function trusting(ca: string | string[]): SecureContext {
  return createSecureContext({ ca, minVersion: 'TLSv1.2' });
}

/** A slim image has no system store, and a corporate laptop has more than Node's: both count. */
function systemRoots(): string[] {
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
