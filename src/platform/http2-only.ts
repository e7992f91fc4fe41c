/**
 * Recognizes a server that does not speak HTTP/1.1: it ends the TLS handshake because no offered protocol suits it (ALPN,
 * RFC 7301 §3.2), or it begins with the frame of an HTTP/2 connection preface (RFC 9113 §3.4). Pure.
 */

const NO_APPLICATION_PROTOCOL = /^ERR_SSL_[A-Z0-9/]+_ALERT_NO_APPLICATION_PROTOCOL$/;
/** A frame of 0 to 127 bytes of the type SETTINGS, without flags, on stream 0. */
const SETTINGS_FRAME = /^\0\0[\0-\x7f]\x04\0{5}/;

/** A clause that follows the server, with what can be done. */
export const HTTP2_ONLY_TEXT =
  'speaks only HTTP/2, which is not supported: ask its operator for HTTP/1.1, or put a gateway in between that accepts HTTP/1.1';

/** @param error of undici, node:http or TLS */
export function isHttp2Only(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && typeof error.code === 'string' && NO_APPLICATION_PROTOCOL.test(error.code)) return true;
  const received = 'data' in error ? error.data : 'rawPacket' in error ? error.rawPacket : undefined;
  if (received instanceof Uint8Array) return SETTINGS_FRAME.test(Buffer.from(received).toString('latin1'));
  return typeof received === 'string' && SETTINGS_FRAME.test(received);
}
