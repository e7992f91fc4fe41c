/**
 * Tells from what a client has written during a TLS handshake whether the server asked for a certificate (RFC 8446 §4.4.2, RFC 5246
 * §7.4.6): only then does a client send a Certificate message, an empty one if it has none. Pure. TLS itself tells nobody.
 */

const CHANGE_CIPHER_SPEC = 20;
const HANDSHAKE = 22;
const APPLICATION_DATA = 23;
const CERTIFICATE = 11;
const RECORD_HEADER_BYTES = 5;

/** @param written every byte that the client has sent until its handshake was over */
export function isCertificateRequested(written: Buffer): boolean {
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
