/**
 * Performs one TLS handshake over an open connection and returns its facts. An untrusted certificate does not end it, so that the
 * certificate can be reported. No application data is sent. evaluate/evaluate-tls.ts evaluates the result.
 */
import type { X509Certificate } from 'node:crypto';
import { isIP, type Socket } from 'node:net';
import { connect, type SecureContext, type TLSSocket } from 'node:tls';
import type { Clock } from '../../platform/clock.ts';
import type { CertificateFacts, TlsHandshakeResult } from './evaluate/evaluate-tls.ts';
import { errorCodeOf } from '../../platform/connection-faults.ts';

export interface HandshakeOptions {
  readonly socket: Socket;
  /** Without brackets. */
  readonly host: string;
  readonly context: SecureContext;
  /** Whether to offer HTTP/1.1 (ALPN). */
  readonly isHttp: boolean;
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal;
}

/** In TLS 1.3 the server refuses a client certificate, or that there is none, after the client's side of the handshake. */
const CERTIFICATE_ALERT_TIMEOUT_MS = 500;
const MAX_CHAIN_LENGTH = 10;

/** Never rejects. */
export async function performHandshake(options: HandshakeOptions): Promise<TlsHandshakeResult> {
  const { socket, host, context, isHttp, clock, timeoutMs, signal } = options;
  const tls = connect({
    socket,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    secureContext: context,
    ...(isHttp && { ALPNProtocols: ['http/1.1'] }),
    // Safe, since nothing is sent after the handshake: an untrusted certificate is reported in full.
    rejectUnauthorized: false,
  });
  const ended = whenEnded(tls);
  const endWith = (code: string) => (): void => void tls.destroy(Object.assign(new Error(code), { code }));
  const cancel = clock.after(timeoutMs, endWith('ETIMEDOUT'));
  const onAbort = endWith('ABORT_ERR');
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const fault = await Promise.race([whenSecured(tls), ended]);
    if (fault !== undefined) return { kind: 'failed', code: fault };
    const mayBeRefused = tls.getProtocol() === 'TLSv1.3';
    const refusal = mayBeRefused ? await Promise.race([whenAccepted(tls, clock), ended]) : undefined;
    return { kind: 'secured', ...describeSession(tls), refusal };
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
    tls.destroy();
  }
}

function whenSecured(tls: TLSSocket): Promise<undefined> {
  return new Promise((resolve) => tls.once('secureConnect', () => resolve(undefined)));
}

/** Resolves with the code of the error that ended it. */
function whenEnded(tls: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    tls.on('error', (error) => resolve(errorCodeOf(error)));
    tls.once('close', () => resolve('ECONNRESET'));
  });
}

/** Most servers send a session ticket to a client that they accept; without one, the timeout decides. */
function whenAccepted(tls: TLSSocket, clock: Pick<Clock, 'after'>): Promise<undefined> {
  return new Promise((resolve) => {
    const cancel = clock.after(CERTIFICATE_ALERT_TIMEOUT_MS, () => resolve(undefined));
    tls.once('session', () => {
      cancel();
      resolve(undefined);
    });
  });
}

function describeSession(
  tls: TLSSocket,
): Pick<Extract<TlsHandshakeResult, { kind: 'secured' }>, 'protocol' | 'cipher' | 'distrust' | 'chain'> {
  const chain: CertificateFacts[] = [];
  let next = tls.getPeerX509Certificate();
  while (next !== undefined && chain.length < MAX_CHAIN_LENGTH) {
    chain.push(readCertificateFacts(next));
    next = next.issuerCertificate;
  }
  // Typed as Error, but it is the code.
  const distrust = tls.authorized ? undefined : String(tls.authorizationError);
  return { protocol: tls.getProtocol() ?? 'TLS', cipher: tls.getCipher().name, distrust, chain };
}

function readCertificateFacts({
  subject,
  issuer,
  subjectAltName,
  validFrom,
  validTo,
}: X509Certificate): CertificateFacts {
  return {
    subject: subject.replaceAll('\n', ', '),
    issuer: issuer.replaceAll('\n', ', '),
    names: subjectAltName?.replaceAll(/\b(?:DNS|IP Address):/g, '') ?? '',
    validFrom: Date.parse(validFrom),
    validTo: Date.parse(validTo),
  };
}
