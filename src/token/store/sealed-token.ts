/**
 * What may leave the process of a token: AES-256-GCM under a key that HKDF-SHA256 (RFC 5869) derives from the client's own secret or
 * private key, with the parameters of the token request as associated data; and the name of its record in a shared store, a keyed hash.
 * Replicas with another secret neither find nor disturb the record. Where a text is kept is up to the caller.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { tryRead } from '../../platform/try-read.ts';
import type { TokenRequestFailure } from '../endpoint/token-response.ts';
import { MAX_STORED_CHARS } from './shared-token-store.ts';

/** Instants by the wall clock, because they outlive the process; epoch milliseconds. */
export interface StoredToken {
  readonly value: string;
  /** Undefined = unknown. */
  readonly scope: string | undefined;
  /** Start of the token request. */
  readonly obtainedWallAt: number;
  readonly expiresWallAt: number;
}

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

/** All that decides which token comes and how it is used: a token sealed for one binding opens for no other. */
export interface TokenBinding {
  readonly tokenUrl: string;
  readonly clientId: string;
  /** The authentication method, such as `client_secret_basic`. */
  readonly method: string;
  /** Grant type, audiences, scope, resources, extra parameters and header fields. Their order counts. */
  readonly requestedParameters: readonly (readonly [name: string, value: string])[];
  readonly bodyFormat: 'form' | 'json';
  /** What decides an assertion that is the grant; undefined without one. */
  readonly assertion: { readonly audience: string; readonly claims: Readonly<Record<string, unknown>> } | undefined;
  /** Members of the response that hold the token and its lifetime, and the unit of the latter. */
  readonly responseFields: readonly string[];
  /** The header fields in which calls carry the token, with what stands before it: `authorization: Bearer `. */
  readonly tokenHeaders: readonly string[];
}

export interface TokenIdentity {
  readonly binding: TokenBinding;
  /** The client secret or the private key. */
  readonly keyMaterial: string;
}

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_DETAIL_LENGTH = 512;
const SEALED_PATTERN = /^([a-z0-9]+)\.([A-Za-z0-9_-]+)$/;

/**
 * The layout of the sealed text and of its binding: a token in a file (`bst3`), a shared token (`bst4`), the failure of a shared token
 * request (`bsf4`), the newest refresh token (`bsr1`). It begins the text and is part of the key derivation: a text never opens as one of another format, nor of a former one
 * (`bst1`, `bst2`, `bsf2`).
 */
export type SealedFormat = 'bst3' | 'bst4' | 'bsf4' | 'bsr1';

/** A key, and what a text is bound to. */
type SealIdentity = Pick<TokenIdentity, 'keyMaterial'> & { readonly binding: Partial<TokenBinding> };

/** The numbers that each format of a token holds after value and scope. */
const TOKEN_NUMBERS = {
  bst3: ['obtainedWallAt', 'expiresWallAt'],
  bst4: ['order', 'expiresAt', 'lifetimeMs'],
} as const;

type TokenFormat = keyof typeof TOKEN_NUMBERS;

type SealableToken<F extends TokenFormat> = Pick<StoredToken, 'value' | 'scope'> &
  Readonly<Record<(typeof TOKEN_NUMBERS)[F][number], number>>;

/** One line of printable ASCII. */
export function sealToken<F extends TokenFormat>(token: SealableToken<F>, identity: TokenIdentity, format: F): string {
  const names: readonly (keyof typeof token)[] = TOKEN_NUMBERS[format];
  const numbers = names.map((name) => token[name]);
  return sealText(JSON.stringify([token.value, token.scope ?? null, ...numbers]), identity, format);
}

/** Undefined when the text is malformed, was altered, or was sealed for another identity or in another format. */
export function openToken<F extends TokenFormat>(
  sealed: string,
  identity: TokenIdentity,
  format: F,
): SealableToken<F> | undefined {
  const names = TOKEN_NUMBERS[format];
  const [value, scope, ...numbers] = openList(sealed, identity, format) ?? [];
  if (typeof value !== 'string' || (scope !== null && typeof scope !== 'string')) return undefined;
  if (numbers.length !== names.length || !numbers.every(Number.isFinite)) return undefined;
  const named = Object.fromEntries(names.map((name, index) => [name, numbers[index]]));
  return { value, scope: scope ?? undefined, ...named } as SealableToken<F>;
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

/** Salt and nonce are fresh each time; without the key only the length can be learned. */
export function sealText(plain: string, { binding, keyMaterial }: SealIdentity, format: SealedFormat): string {
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, deriveKey(keyMaterial, salt, format), nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(serializeBinding(binding), 'utf8'));
  const sealed = Buffer.concat([salt, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${format}.${sealed.toString('base64url')}`;
}

/** The JSON list given to `sealText`; undefined as for `openToken`, and for a text of more than 64 KiB. */
export function openList(
  sealed: string,
  { binding, keyMaterial }: SealIdentity,
  format: SealedFormat,
): readonly unknown[] | undefined {
  if (sealed.length > MAX_STORED_CHARS) return undefined;
  const [, stated, encoded] = SEALED_PATTERN.exec(sealed) ?? [];
  if (encoded === undefined || stated !== format) return undefined;
  const bytes = Buffer.from(encoded, 'base64url');
  if (bytes.length <= SALT_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
  const salt = bytes.subarray(0, SALT_BYTES);
  const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, deriveKey(keyMaterial, salt, format), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(serializeBinding(binding), 'utf8'));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const body = bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES);
  // Undefined where the tag does not match.
  const plain = tryRead(() => Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8'));
  const list = tryRead(() => JSON.parse(plain ?? '') as unknown);
  return Array.isArray(list) ? (list as readonly unknown[]) : undefined;
}

function deriveKey(keyMaterial: string, salt: Uint8Array, format: SealedFormat): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', keyMaterial, salt, `bearer-sidecar ${format}`, KEY_BYTES));
}

/** Replicas with different record formats must not share a record: each format has a name of its own, and so a record of its own. */
const RECORD_VERSION = 3;
/** 128 bits: without the key a hash can be neither guessed nor made to collide. */
const HASH_BYTES = 16;

/** The record name that replicas with exactly this identity share: 22 characters of base64url. */
export function deriveRecordName({ binding, keyMaterial }: TokenIdentity): string {
  const parts = JSON.stringify(['name', RECORD_VERSION, serializeBinding(binding)]);
  const key = Buffer.from(hkdfSync('sha256', keyMaterial, '', 'bearer-sidecar names and marks', KEY_BYTES));
  return createHmac('sha256', key).update(parts).digest().subarray(0, HASH_BYTES).toString('base64url');
}

/** Every member counts. JSON is unambiguous; joined strings would not be. */
function serializeBinding(binding: Partial<TokenBinding>): string {
  return JSON.stringify(Object.entries(binding).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
