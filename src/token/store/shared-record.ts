/**
 * Names, marks and failures of the shared token records, in a form that other readers of the store may see: names and marks
 * are keyed hashes, failures are sealed. All keys derive from the client's own key material, so that replicas with another
 * secret neither find nor disturb the record.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import { openText, sealText } from './sealed-token.ts';
import type { TokenIdentity } from './sealed-token.ts';

/** Replicas with different record formats must not share a record. */
const VERSION = 1;
const KEY_BYTES = 32;
/** 128 bits: without the key a hash can be neither guessed nor made to collide. */
const HASH_BYTES = 16;
const MAX_DETAIL_LENGTH = 512;

/** The record name that replicas with exactly this identity share: 22 characters of base64url. */
export function deriveRecordName(identity: TokenIdentity): string {
  const { tokenUrl, clientId, method, requestedParameters } = identity.binding;
  return keyedHash(identity, ['name', VERSION, tokenUrl, clientId, method, requestedParameters]);
}

/** Identifies a token without revealing it: 22 characters of base64url. */
export function deriveTokenMark(identity: TokenIdentity, value: string): string {
  return keyedHash(identity, ['mark', value]);
}

/** One line of printable ASCII. The stated `Retry-After` is not kept. */
export function sealFailure({ kind, detail }: TokenRequestFailure, identity: TokenIdentity): string {
  return sealText(JSON.stringify([kind, detail.slice(0, MAX_DETAIL_LENGTH)]), identity);
}

/** Undefined when the text cannot be read. */
export function openFailure(sealed: string, identity: TokenIdentity): TokenRequestFailure | undefined {
  const plain = openText(sealed, identity);
  const fields: unknown = plain === undefined ? undefined : JSON.parse(plain);
  if (!Array.isArray(fields) || fields.length !== 2) return undefined;
  const [kind, detail] = fields as unknown[];
  if (typeof detail !== 'string') return undefined;
  return kind === 'rejected' || kind === 'unavailable' || kind === 'malformed' ? { kind, detail } : undefined;
}

/** A JSON list is unambiguous; joined strings would not be. */
function keyedHash({ keyMaterial }: TokenIdentity, parts: readonly unknown[]): string {
  const key = Buffer.from(hkdfSync('sha256', keyMaterial, '', 'bearer-sidecar names and marks', KEY_BYTES));
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest().subarray(0, HASH_BYTES).toString('base64url');
}
