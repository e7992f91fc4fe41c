/**
 * What replicas leave for each other about one credential, made fit for a store that others can read: its name and the marks of
 * tokens are keyed hashes, everything else is sealed. All keys come from the client's own key material, so that a replica
 * with another secret finds nothing and disturbs nobody. Where it is kept, and when it is read, is decided by the caller.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import { openText, sealText } from './sealed-token.ts';
import type { TokenBinding } from './sealed-token.ts';

/** Who asks, and for what. */
export interface TokenIdentity {
  readonly binding: TokenBinding;
  /** The client secret or the private key. */
  readonly keyMaterial: string | Uint8Array;
}

/** Replicas that leave something else for each other must not meet. */
const VERSION = 1;
const KEY_BYTES = 32;
/** 128 bits: neither found by chance nor made to collide by whoever lacks the key. */
const HASH_BYTES = 16;
const MAX_DETAIL_LENGTH = 512;

/** The name under which replicas with this very identity meet: 22 characters of base64url. */
export function deriveRecordName(identity: TokenIdentity): string {
  const { tokenUrl, clientId, method, asked } = identity.binding;
  return keyedHash(identity, ['name', VERSION, tokenUrl, clientId, method, asked]);
}

/** Stands for a token where it is to be told from others, and shows nothing of it: 22 characters of base64url. */
export function deriveTokenMark(identity: TokenIdentity, value: string): string {
  return keyedHash(identity, ['mark', value]);
}

/** One line of printable ASCII. */
export function sealFailure({ kind, detail }: TokenRequestFailure, { binding, keyMaterial }: TokenIdentity): string {
  return sealText(JSON.stringify([kind, detail.slice(0, MAX_DETAIL_LENGTH)]), binding, keyMaterial);
}

/** The failure, without the wait that it stated, or undefined when the text cannot be read. */
export function openFailure(sealed: string, { binding, keyMaterial }: TokenIdentity): TokenRequestFailure | undefined {
  const plain = openText(sealed, binding, keyMaterial);
  const fields: unknown = plain === undefined ? undefined : JSON.parse(plain);
  if (!Array.isArray(fields) || fields.length !== 2) return undefined;
  const [kind, detail] = fields as unknown[];
  if (typeof detail !== 'string') return undefined;
  return kind === 'rejected' || kind === 'unavailable' || kind === 'malformed' ? { kind, detail } : undefined;
}

/** A list in JSON, not joined strings: no two lists read the same. */
function keyedHash({ keyMaterial }: TokenIdentity, parts: readonly unknown[]): string {
  const key = Buffer.from(hkdfSync('sha256', keyMaterial, '', 'bearer-sidecar names and marks', KEY_BYTES));
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest().subarray(0, HASH_BYTES).toString('base64url');
}
