/**
 * One TLS handshake over a connection that is open already, looked at rather than relied on: it goes on whatever the certificate is,
 * so that the certificate can be told about. Nothing is ever sent over it. What was found is judged in judge-tls.ts.
 */
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';
import type { SecureContext, TLSSocket } from 'node:tls';
import type { Clock } from '../../platform/clock.ts';
import type { TlsHandshakeResult } from './evaluate/evaluate-tls.ts';
import type { CertificateFacts } from './evaluate/tls-faults.ts';
import { errorCodeOf } from './step-runner.ts';

export interface HandshakeOptions {
  /** Ended with the handshake. */
  readonly socket: Socket;
  /** Without brackets. */
  readonly host: string;
  readonly context: SecureContext;
  /** Whether HTTP/1.1 is what is going to be spoken. */
  readonly isHttp: boolean;
  /** Milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal: AbortSignal;
}

/** In TLS 1.3 a server refuses a client's certificate when the client's handshake is over. */
const CERTIFICATE_ALERT_TIMEOUT_MS = 500;
const MAX_CHAIN_LENGTH = 10;

/** What came of it; `fault` where it ended early. Never rejects. */
export async function performHandshake(terms: HandshakeOptions): Promise<TlsHandshakeResult> {
  const { host, context, isHttp, clock, timeoutMs, signal } = terms;
  const wire = new RecordingSocket(terms.socket);
  const tls = connect({
    socket: wire,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    secureContext: context,
    ...(isHttp && { ALPNProtocols: ['http/1.1'] }),
    // What is wrong with a certificate is to be told, with the certificate. No byte follows the handshake.
    rejectUnauthorized: false,
  });
  const ended = whenEnded(tls);
  const give = (code: string) => (): void => void tls.destroy(Object.assign(new Error(code), { code }));
  const cancel = clock.after(timeoutMs, give('ETIMEDOUT'));
  const leave = give('ABORT_ERR');
  signal.addEventListener('abort', leave, { once: true });
  try {
    const fault = await Promise.race([whenSecured(tls), ended]);
    if (fault !== undefined) return { kind: 'failed', code: fault };
    const isAsked = isCertificateRequested(wire.writtenBytes());
    const mayBeRefused = isAsked && tls.getProtocol() === 'TLSv1.3';
    const refusal = mayBeRefused ? await Promise.race([whenAccepted(tls, clock), ended]) : undefined;
    return { kind: 'secured', ...describeSession(tls), isAsked, refusal };
  } finally {
    cancel();
    signal.removeEventListener('abort', leave);
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

/** A session to resume is what a server gives to clients that it takes; not every one does. */
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
  // Node's types say Error; it is the code that is there.
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

/** The connection under TLS, with what goes out over it kept. TLS takes a socket over, and would leave nothing to see. */
class RecordingSocket extends Duplex {
  readonly #socket: Socket;
  readonly #chunks: Buffer[] = [];

  constructor(socket: Socket) {
    super();
    this.#socket = socket;
    socket.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) socket.pause();
    });
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  writtenBytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#chunks.push(Buffer.from(chunk));
    this.#socket.write(chunk, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}

const CHANGE_CIPHER_SPEC = 20;
const HANDSHAKE = 22;
const APPLICATION_DATA = 23;
const CERTIFICATE = 11;
const RECORD_HEADER_BYTES = 5;

/**
 * Whether the server asked for a client certificate. TLS does not report it, but only then does a client send a Certificate
 * message, an empty one if it has none (RFC 8446 §4.4.2, RFC 5246 §7.4.6).
 * @param written every byte that the client has sent during the handshake
 */
function isCertificateRequested(written: Buffer): boolean {
  let isEncrypted = false;
  let encryptedMessages = 0;
  for (let at = 0; at + RECORD_HEADER_BYTES < written.length;) {
    const type = written[at];
    if (type === CHANGE_CIPHER_SPEC) isEncrypted = true;
    // TLS 1.2 sends it in the clear. The second ClientHello of TLS 1.3 comes behind a ChangeCipherSpec, which means nothing there.
    if (type === HANDSHAKE && !isEncrypted && written[at + RECORD_HEADER_BYTES] === CERTIFICATE) return true;
    // In TLS 1.3 the Finished message is the one that is always there, each message in a record of its own.
    if (type === APPLICATION_DATA) encryptedMessages += 1;
    at += RECORD_HEADER_BYTES + written.readUInt16BE(at + RECORD_HEADER_BYTES - 2);
  }
  return encryptedMessages > 1;
}
