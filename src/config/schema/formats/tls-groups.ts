/** The format of a list of groups for the key exchange of TLS. OpenSSL itself checks it: which groups there are depends on its version. */
import { buildTlsContext } from '../../../platform/tls.ts';
import { tryRead } from '../../../platform/try-read.ts';
import { quotedText } from './formats.ts';

export const tlsGroups = quotedText({
  expected: 'names of groups as OpenSSL has them, separated by colons, such as X25519:P-256',
  check: (text) => /^[\w.:/*?-]+$/.test(text) && tryRead(() => buildTlsContext('', undefined, text)) !== undefined,
  pattern: '^[\\w.:/*?-]+$',
});
