/**
 * Reads a secret that is given as a value or in a file. A file is read at every use, so that a rotated secret takes effect
 * without a restart. A fault names the setting and the path, never the contents.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Cancel, Clock } from '../../platform/clock.ts';
import { describeFileError } from '../../platform/file-errors.ts';

export type SecretSource =
  | { readonly kind: 'value'; readonly value: string }
  | { readonly kind: 'file'; readonly path: string };

export interface Unreadable {
  readonly kind: 'unreadable';
  /** Names the setting, the path and the fault. Safe to log: shows nothing of the contents. */
  readonly detail: string;
}

export type SecretReadResult = { readonly kind: 'read'; readonly value: string } | Unreadable;

/** Why the contents cannot be used, without quoting them. */
type FindFault = (value: string) => string | undefined;

/** Far above a system's whole bundle of certificate authorities. */
export const LARGEST_PEM_BYTES = 1024 * 1024;

/** A path given by mistake may lead to a huge file. */
const LARGEST_SECRET_BYTES = 64 * 1024;

/**
 * The value, or the contents of the file without one trailing line end. Never rejects.
 * @param key the setting that a fault names
 * @param faultOf Default: any text can be used
 */
export async function readSecret(key: string, source: SecretSource, faultOf?: FindFault): Promise<SecretReadResult> {
  if (source.kind === 'value') return { kind: 'read', value: source.value };
  const reading = await readTextFile(key, source.path, LARGEST_SECRET_BYTES);
  if (reading.kind === 'unreadable') return reading;
  const value = reading.value.replace(/\r?\n$/, '');
  const fault = value === '' ? 'is empty' : faultOf?.(value);
  return fault === undefined ? { kind: 'read', value } : describeUnreadable(key, source.path, fault);
}

/** As `readSecret`; the empty text for a client without an id. */
export async function readClientId(source: SecretSource | undefined): Promise<SecretReadResult> {
  return source === undefined ? { kind: 'read', value: '' } : readSecret('auth.clientId', source);
}

/** Shorter values of the configuration are words such as `true`: masking them would garble every line. */
const SHORTEST_EXTRA_SECRET = 8;

/** As `readSecret`, for every value of a map; a fault names the value as well. `secrets` are to be masked. */
export async function readSecretMap(key: string, sources: Readonly<Record<string, SecretSource>>, faultOf?: FindFault) {
  const values: [string, string][] = [];
  const secrets: string[] = [];
  for (const [name, source] of Object.entries(sources)) {
    const reading = await readSecret(`${key}.${name}`, source, faultOf);
    if (reading.kind === 'unreadable') return reading;
    values.push([name, reading.value]);
    if (source.kind === 'file' || reading.value.length >= SHORTEST_EXTRA_SECRET) secrets.push(reading.value);
  }
  return { kind: 'read', values: Object.fromEntries(values), secrets } as const;
}

/** Whether a header field carries the value unchanged: printable ASCII without a blank at either end (RFC 9110 §5.5). */
export function isHeaderValue(value: string): boolean {
  return /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value);
}

/** The text of a regular UTF-8 file, without a byte order mark. Never rejects. @param key the setting that a fault names */
export async function readTextFile(key: string, path: string, largestBytes: number): Promise<SecretReadResult> {
  try {
    // Opening a pipe without a writer would hang.
    if (!(await stat(path)).isFile()) return describeUnreadable(key, path, 'is not a regular file');
    const bytes = await readUpTo(path, largestBytes + 1);
    if (bytes.length > largestBytes)
      return describeUnreadable(key, path, `is larger than ${String(largestBytes)} bytes`);
    return { kind: 'read', value: new TextDecoder('utf-8', { fatal: true }).decode(bytes) };
  } catch (error) {
    return describeUnreadable(key, path, describeFileError(error));
  }
}

/** @param fault follows the path */
export function describeUnreadable(key: string, path: string, fault: string): Unreadable {
  return { kind: 'unreadable', detail: `${key}: the file ${path} ${fault}` };
}

async function readUpTo(path: string, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(path, { end: limitBytes - 1 }) as AsyncIterable<Buffer>)
    chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Between two readings of a file: that sees changes that file notifications miss, such as swapped links and network file systems. */
export const POLL_INTERVAL_MS = 2_000;

/** @param poll begins 2 s after the end of the one before; must not reject */
export function pollFiles(clock: Pick<Clock, 'after'>, poll: () => Promise<unknown>): Cancel {
  let isCancelled = false;
  const schedule = (): Cancel => clock.after(POLL_INTERVAL_MS, () => void run());
  const run = async (): Promise<void> => {
    await poll();
    if (!isCancelled) cancel = schedule();
  };
  let cancel = schedule();
  return () => {
    isCancelled = true;
    cancel();
  };
}
