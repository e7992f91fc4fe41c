/**
 * What the shared store holds of one credential, in a form that other readers and writers of the store may see: its name is a keyed
 * hash, token and failure are sealed together with the instants that limit their use. All keys derive from the client's own key
 * material, so that replicas with another secret neither find nor disturb the record.
 */
import { createHmac, hkdfSync } from 'node:crypto';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import { openList, sealText, serializeBinding } from './sealed-token.ts';
import type { TokenIdentity } from './sealed-token.ts';

/** A token that a replica has requested for all. Instants by the store's clock, epoch milliseconds. */
export interface SharedToken {
  readonly value: string;
  /** Undefined = unknown. */
  readonly scope: string | undefined;
  /**
   * Start of the token request; if the replica had a token with a later start, one more than that. It rises from token to token, also
   * when the store's clock is set back: a replica takes no token whose `order` is not above that of the newest it has had.
   */
  readonly order: number;
  readonly expiresAt: number;
  readonly lifetimeMs: number;
}

export interface SharedFailure {
  readonly failure: TokenRequestFailure;
  /** From then on it holds back no replica, by the store's clock. */
  readonly endsAt: number;
}

/** Replicas with different record formats must not share a record: each format has a name of its own, and so a record of its own. */
const VERSION = 3;
const KEY_BYTES = 32;
/** 128 bits: without the key a hash can be neither guessed nor made to collide. */
const HASH_BYTES = 16;
const MAX_DETAIL_LENGTH = 512;

/** The record name that replicas with exactly this identity share: 22 characters of base64url. */
export function deriveRecordName({ binding, keyMaterial }: TokenIdentity): string {
  const parts = JSON.stringify(['name', VERSION, serializeBinding(binding)]);
  const key = Buffer.from(hkdfSync('sha256', keyMaterial, '', 'bearer-sidecar names and marks', KEY_BYTES));
  return createHmac('sha256', key).update(parts).digest().subarray(0, HASH_BYTES).toString('base64url');
}

/** One line of printable ASCII. The stated `Retry-After` is not kept. */
export function sealFailure({ failure, endsAt }: SharedFailure, identity: TokenIdentity): string {
  const { kind, detail } = failure;
  return sealText(JSON.stringify([kind, detail.slice(0, MAX_DETAIL_LENGTH), endsAt]), identity, 'bsf4');
}

export function openFailure(sealed: string, identity: TokenIdentity): SharedFailure | undefined {
  const fields = openList(sealed, identity, 'bsf4');
  if (fields?.length !== 3) return undefined;
  const [kind, detail, endsAt] = fields;
  if (typeof detail !== 'string' || typeof endsAt !== 'number') return undefined;
  const isFailure = kind === 'rejected' || kind === 'unavailable' || kind === 'malformed';
  return isFailure ? { failure: { kind, detail }, endsAt } : undefined;
}
