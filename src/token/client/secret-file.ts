/**
 * Reads a credential that is given in place or in a file. A file is read anew at every use, so that a rotated secret
 * takes effect without a restart. Faults are told by key and path, never by contents.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';

/** A value in place, or the file that holds it. */
export type SecretSource =
  { readonly kind: 'value'; readonly value: string } | { readonly kind: 'file'; readonly path: string };

export type SecretReadResult =
  | { readonly kind: 'read'; readonly value: string }
  /** `detail` names the key, the path and the fault. */
  | { readonly kind: 'unreadable'; readonly detail: string };

/** A chain of certificates, a system's whole bundle of authorities among them, is far below it. */
export const LARGEST_PEM_BYTES = 1024 * 1024;

/** No credential is longer; a path given by mistake may lead to something that is. */
const LARGEST_SECRET_BYTES = 64 * 1024;

/**
 * The value; of a file without its one trailing line end, if it has one. Never rejects.
 * @param key the configuration key to name in a fault
 */
export async function readSecret(key: string, source: SecretSource): Promise<SecretReadResult> {
  if (source.kind === 'value') return { kind: 'read', value: source.value };
  const reading = await readTextFile(key, source.path, LARGEST_SECRET_BYTES);
  if (reading.kind === 'unreadable') return reading;
  const value = reading.value.replace(/\r?\n$/, '');
  return value === '' ? createUnreadableResult(key, source.path, 'is empty') : { kind: 'read', value };
}

/**
 * The text of a regular UTF-8 file, without a byte order mark. Never rejects.
 * @param key the configuration key to name in a fault
 */
export async function readTextFile(key: string, path: string, largestBytes: number): Promise<SecretReadResult> {
  try {
    // Opening a pipe that nobody writes to would hang for ever.
    if (!(await stat(path)).isFile()) return createUnreadableResult(key, path, 'is not a regular file');
    const bytes = await readUpTo(path, largestBytes + 1);
    if (bytes.length > largestBytes)
      return createUnreadableResult(key, path, `is larger than ${String(largestBytes)} bytes`);
    return { kind: 'read', value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    return createUnreadableResult(key, path, describeFileError(error));
  }
}

function createUnreadableResult(key: string, path: string, fault: string): SecretReadResult {
  return { kind: 'unreadable', detail: `${key}: the file ${path} ${fault}` };
}

async function readUpTo(path: string, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(path, { end: limitBytes - 1 }) as AsyncIterable<Buffer>)
    chunks.push(chunk);
  return Buffer.concat(chunks);
}

function describeFileError(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown fault';
  switch (code) {
    case 'ENOENT':
      return 'does not exist';
    case 'EACCES':
    case 'EPERM':
      return 'may not be read by this user';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'is not UTF-8 text';
    default:
      return `cannot be read (${code})`;
  }
}
