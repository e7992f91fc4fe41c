/** Evaluates a TLS handshake: the server's certificate and its expiry, and whether it refuses the client's. Pure. */
import { describeUntrustedCertificate, describeHandshakeFault } from './tls-faults.ts';
import type { CertificateFacts, TlsSettingNames } from './tls-faults.ts';
import type { CheckFinding } from '../step-runner.ts';

export type TlsHandshakeResult =
  /** `code` is an error code of Node. */
  | { readonly kind: 'failed'; readonly code: string }
  | {
      readonly kind: 'secured';
      readonly protocol: string;
      readonly cipher: string;
      /** Error code of the certificate; undefined when it is trusted. */
      readonly distrust: string | undefined;
      /** The leaf first. */
      readonly chain: readonly CertificateFacts[];
      /** Code of the alert with which the server then refused the client certificate, or that there was none. */
      readonly refusal: string | undefined;
    };

export interface TlsCheckContext {
  readonly host: string;
  /** Undefined: none was offered. */
  readonly clientCertificate?: object | undefined;
  readonly names: TlsSettingNames;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

export const DAY_MS = 24 * 3_600_000;
/** With fewer days left, a certificate is a warning. */
export const EXPIRY_WARNING_DAYS = 21;

export function evaluateHandshake(handshake: TlsHandshakeResult, context: TlsCheckContext): CheckFinding {
  if (handshake.kind === 'failed') return { outcome: 'fail', ...describeHandshakeFault(handshake.code, context.names) };
  const { protocol, cipher, distrust, chain, refusal } = handshake;
  const channel = `${protocol} (${cipher})`;
  if (distrust !== undefined) return { outcome: 'fail', ...describeUntrustedCertificate(distrust, chain, context) };
  if (refusal !== undefined) {
    const { detail, advice } = describeHandshakeFault(refusal, context.names);
    return { outcome: 'fail', detail: `${channel}, then ended by the server: ${detail}`, advice };
  }
  const expiry = evaluateExpiry(chain, context.wallNow);
  const client = context.clientCertificate === undefined ? '' : ', our certificate offered';
  const detail = `${channel}, ${expiry.text}${client}`;
  return expiry.advice === undefined ? { outcome: 'ok', detail } : { outcome: 'warn', detail, advice: expiry.advice };
}

interface Remark {
  readonly text: string;
  readonly advice?: string;
}

export function formatDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}

function evaluateExpiry(chain: readonly CertificateFacts[], wallNow: number): Remark {
  const [leaf] = chain;
  if (leaf === undefined) return { text: 'no certificate sent' };
  const soonest = chain.reduce((one, other) => (other.validTo < one.validTo ? other : one), leaf);
  const days = Math.floor((soonest.validTo - wallNow) / DAY_MS);
  const until = new Date(soonest.validTo).toISOString().slice(0, 10);
  const whose = soonest === leaf ? '' : ` (${soonest.subject})`;
  const text = `certificate ${leaf.subject} by ${leaf.issuer}, ${formatDays(days)} left${whose} (${until})`;
  if (days >= EXPIRY_WARNING_DAYS) return { text };
  return { text, advice: 'ask the operator whether the certificate is renewed in time' };
}
