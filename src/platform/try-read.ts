/** Reads what may be malformed. */

/** What `read` returns; undefined when it throws: the message of a parser may quote a secret, and that of OpenSSL helps no operator. */
export function tryRead<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
