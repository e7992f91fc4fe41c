/** Evaluates a TLS connection that is open: what it uses, and when the server's certificates expire. Pure. */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { CheckFinding } from '../step-runner.ts';

export interface TlsSession extends Pick<TLSSocket, 'getProtocol' | 'getCipher'> {
  getPeerX509Certificate(): Certificate | undefined;
}

interface Certificate extends Pick<X509Certificate, 'subject' | 'issuer' | 'validToDate'> {
  readonly issuerCertificate?: Certificate | undefined;
}

export const DAY_MS = 24 * 3_600_000;
/** With fewer days left, a certificate is a warning. */
export const EXPIRY_WARNING_DAYS = 21;
const MAX_CHAIN_LENGTH = 10;

/** @param hasOffered whether our certificate was offered @param wallNow epoch milliseconds */
export function evaluateSession(session: TlsSession, hasOffered: boolean, wallNow: number): CheckFinding {
  const channel = `${session.getProtocol() ?? 'TLS'} (${session.getCipher().name})`;
  const client = hasOffered ? ', our certificate offered' : '';
  const leaf = session.getPeerX509Certificate();
  if (leaf === undefined) return { outcome: 'ok', detail: `${channel}, no certificate sent${client}` };
  let soonest = leaf;
  let next: Certificate | undefined = leaf;
  for (let depth = 0; next !== undefined && depth < MAX_CHAIN_LENGTH; depth += 1) {
    if (next.validToDate < soonest.validToDate) soonest = next;
    next = next.issuerCertificate;
  }
  const days = Math.floor((soonest.validToDate.getTime() - wallNow) / DAY_MS);
  const whose = soonest === leaf ? '' : ` (${formatName(soonest.subject)})`;
  const until = soonest.validToDate.toISOString().slice(0, 10);
  const certificate = `certificate ${formatName(leaf.subject)} by ${formatName(leaf.issuer)}`;
  const detail = `${channel}, ${certificate}, ${formatDays(days)} left${whose} (${until})${client}`;
  if (days >= EXPIRY_WARNING_DAYS) return { outcome: 'ok', detail };
  return { outcome: 'warn', detail, advice: 'ask the operator whether the certificate is renewed in time' };
}

export function formatDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}

/** Node puts each attribute on a line. */
function formatName(name: string): string {
  return name.replaceAll('\n', ', ');
}
