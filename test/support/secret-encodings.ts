/** How programs write a secret. */
import { formEncode } from '../../src/platform/secret-redaction.ts';

/** Plain, form-encoded, percent-encoded and in base64; with a client id also as Basic credentials (RFC 7617 §2). */
export function listSecretEncodings(value: string, clientId?: string): string[] {
  const encodings = [value, formEncode(value), ...base64Variants(value)];
  if (clientId !== undefined)
    encodings.push(
      ...base64Variants(`${clientId}:${value}`),
      ...base64Variants(`${formEncode(clientId)}:${formEncode(value)}`),
    );
  return encodings.flatMap((encoding) => [encoding, encodeURIComponent(encoding.toWellFormed())]);
}

function base64Variants(text: string): string[] {
  // Without padding, the text is found with padding, without it, and with `%3D` for it.
  const base64 = Buffer.from(text, 'utf8').toString('base64').replace(/=+$/, '');
  return [base64, base64.replaceAll('+', '-').replaceAll('/', '_')];
}
