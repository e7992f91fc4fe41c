/** Reads the file of an access token or API key that another program renews. When it is read is decided in source/file-token-source.ts. */
import { TOKEN_SYNTAX } from '../endpoint/token-response.ts';
import { readSecret } from './secret-file.ts';
import type { SecretReadResult } from './secret-file.ts';

/** As the longest access token of a token endpoint. */
const LARGEST_TOKEN_BYTES = 16 * 1024;

/** The token, without one trailing line end. Never rejects; a fault names the setting and the path, never the contents. */
export function readTokenFile(path: string): Promise<SecretReadResult> {
  return readSecret('auth.tokenFile', { kind: 'file', path }, (token) => {
    if (token.length > LARGEST_TOKEN_BYTES) return `is larger than ${String(LARGEST_TOKEN_BYTES)} bytes`;
    return TOKEN_SYNTAX.test(token)
      ? undefined
      : 'holds characters that a token may not have, such as a blank, a comma or a second line';
  });
}
