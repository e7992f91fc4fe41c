/**
 * What a TLS handshake has shown, in words: whom the server says to be, who vouches for it and until when, whether it wants a
 * certificate of ours, and what to do about what is wrong. Pure. The handshake itself is secure.ts's.
 */
import { describeUntrustedCertificate, describeHandshakeFault } from './tls-faults.ts';
import type { CertificateFacts, TlsSettingNames } from './tls-faults.ts';
import type { CheckFinding } from '../step-runner.ts';

export type TlsHandshakeResult =
  /** `code` is Node's, `ETIMEDOUT` among them. */
  | { readonly kind: 'failed'; readonly code: string }
  | {
      readonly kind: 'secured';
      readonly protocol: string;
      readonly cipher: string;
      /** Code of what is wrong with the certificate; undefined when it is trusted. */
      readonly distrust: string | undefined;
      /** The server's own first, as far as it is known. */
      readonly chain: readonly CertificateFacts[];
      /** Whether the server asked for a certificate. */
      readonly isAsked: boolean;
      /** Code of the alert with which it then refused what it got. */
      readonly refusal: string | undefined;
    };

export interface TlsCheckContext {
  readonly host: string;
  /** `required`: without it the server does not know who we are. */
  readonly clientCertificate: 'none' | 'offered' | 'required';
  readonly names: TlsSettingNames;
  /** Epoch milliseconds. */
  readonly wallNow: number;
}

export const DAY_MS = 24 * 3_600_000;
/** Less than this is soon, for a certificate that a person renews. */
export const EXPIRY_WARNING_DAYS = 21;

export function evaluateHandshake(handshake: TlsHandshakeResult, terms: TlsCheckContext): CheckFinding {
  if (handshake.kind === 'failed') return { outcome: 'fail', ...describeHandshakeFault(handshake.code, terms.names) };
  const { protocol, cipher, distrust, chain, refusal } = handshake;
  const channel = `${protocol} (${cipher})`;
  if (distrust !== undefined) return { outcome: 'fail', ...describeUntrustedCertificate(distrust, chain, terms) };
  if (refusal !== undefined) {
    const { detail, advice } = describeHandshakeFault(refusal, terms.names);
    return { outcome: 'fail', detail: `${channel}, and then the server ended it: ${detail}`, advice };
  }
  const ends = evaluateExpiry(chain, terms.wallNow);
  const client = evaluateClientCertificate(handshake.isAsked, terms);
  const advice = [ends.advice, client.advice].filter((text) => text !== undefined).join('; ');
  const detail = `${channel}, ${ends.words}, ${client.words}`;
  return advice === '' ? { outcome: 'ok', detail } : { outcome: 'warn', detail, advice };
}

interface Remark {
  readonly words: string;
  readonly advice?: string;
}

export function formatDays(days: number): string {
  return days === 1 ? '1 day' : `${days} days`;
}

function evaluateExpiry(chain: readonly CertificateFacts[], wallNow: number): Remark {
  const [leaf] = chain;
  if (leaf === undefined) return { words: 'certificate not shown' };
  const soonest = chain.reduce((one, other) => (other.validTo < one.validTo ? other : one), leaf);
  const days = Math.floor((soonest.validTo - wallNow) / DAY_MS);
  const until = new Date(soonest.validTo).toISOString().slice(0, 10);
  const whose = soonest === leaf ? '' : ` (${soonest.subject})`;
  const words = `certificate ${leaf.subject} by ${leaf.issuer}, ${formatDays(days)} left${whose} (${until})`;
  if (days >= EXPIRY_WARNING_DAYS) return { words };
  return { words, advice: 'ask whoever runs it whether its certificate is renewed in time' };
}

function evaluateClientCertificate(isAsked: boolean, { clientCertificate, names }: TlsCheckContext): Remark {
  if (clientCertificate === 'none') {
    if (!isAsked) return { words: 'no client certificate asked for' };
    const advice = `set ${names.certificate} if you were given one; the server may do without`;
    return { words: 'a client certificate is asked for and none is set', advice };
  }
  if (isAsked) return { words: 'client certificate shown' };
  const words = 'no client certificate asked for: ours was not shown';
  if (clientCertificate === 'offered') return { words };
  return { words, advice: `check ${names.address}: servers often take client certificates at another host or port` };
}
