/**
 * An access token made fit to leave the process: AES-256-GCM under a key that HKDF-SHA256 (RFC 5869) derives from the
 * client's own key material, bound as associated data to everything that the token was asked for. Where it is kept,
 * and whether it is still of use, is decided by the caller.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** What is kept of a token. Wall instants, since they have to outlive the process; epoch milliseconds. */
export interface StoredToken {
  readonly value: string;
  /** Undefined: unknown. */
  readonly scope: string | undefined;
  /** When it was asked for. */
  readonly obtainedWallAt: number;
  readonly expiresWallAt: number;
}

/** Everything that a token was asked for with: sealed for one of these, it opens for no other. */
export interface TokenBinding {
  readonly tokenUrl: string;
  readonly clientId: string;
  /** How the client authenticates, such as `client_secret_basic`. */
  readonly method: string;
  /** All else that was stated: audiences, scope, resources, further parameters and fields. Their order counts. */
  readonly asked: readonly (readonly [name: string, value: string])[];
}

const CIPHER = 'aes-256-gcm';
const KEY_BYTES = 32;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Names the layout below, in the clear and in the derivation: a later layout never opens as this one. */
const FORMAT = 'bst1';
const SEALED_PATTERN = /^bst1\.([A-Za-z0-9_-]+)$/;

/**
 * One line of printable ASCII. Salt and nonce are fresh each time, so that no pair of key and nonce comes twice.
 * @param keyMaterial the client secret or the private key, as bytes or text; whoever lacks it learns only the length
 */
export function sealToken(token: StoredToken, binding: TokenBinding, keyMaterial: string | Uint8Array): string {
  const { value, scope, obtainedWallAt, expiresWallAt } = token;
  return sealText(JSON.stringify([value, scope ?? null, obtainedWallAt, expiresWallAt]), binding, keyMaterial);
}

/** The token, or undefined when the text is malformed, was altered, or was sealed for another binding or key. */
export function openToken(
  sealed: string,
  binding: TokenBinding,
  keyMaterial: string | Uint8Array,
): StoredToken | undefined {
  const plain = openText(sealed, binding, keyMaterial);
  return plain === undefined ? undefined : parseStoredToken(plain);
}

/** As `sealToken`, for what is to be told of a token that is none: a text that `openToken` cannot mistake for one. */
export function sealText(plain: string, binding: TokenBinding, keyMaterial: string | Uint8Array): string {
  const salt = randomBytes(SALT_BYTES);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, deriveKey(keyMaterial, salt), nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(serializeBinding(binding));
  const sealed = Buffer.concat([salt, nonce, cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${FORMAT}.${sealed.toString('base64url')}`;
}

/** What `sealText` was given, or undefined as for `openToken`. */
export function openText(sealed: string, binding: TokenBinding, keyMaterial: string | Uint8Array): string | undefined {
  const encoded = SEALED_PATTERN.exec(sealed)?.[1];
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded, 'base64url');
  if (bytes.length <= SALT_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
  const salt = bytes.subarray(0, SALT_BYTES);
  const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, deriveKey(keyMaterial, salt), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(serializeBinding(binding));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const body = bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES);
  try {
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch {
    // Not ours: the tag says so, and nothing else is known of it.
    return undefined;
  }
}

function deriveKey(keyMaterial: string | Uint8Array, salt: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', keyMaterial, salt, `bearer-sidecar ${FORMAT}`, KEY_BYTES));
}

/** A list in JSON, not joined strings: no two bindings read the same. */
function serializeBinding({ tokenUrl, clientId, method, asked }: TokenBinding): Buffer {
  return Buffer.from(JSON.stringify([tokenUrl, clientId, method, asked]), 'utf8');
}

function parseStoredToken(plain: string): StoredToken | undefined {
  const fields = parseList(plain);
  if (fields?.length !== 4) return undefined;
  const [value, scope, obtainedWallAt, expiresWallAt] = fields;
  if (typeof value !== 'string' || (scope !== null && typeof scope !== 'string')) return undefined;
  if (!Number.isFinite(obtainedWallAt) || !Number.isFinite(expiresWallAt)) return undefined;
  return {
    value,
    scope: scope ?? undefined,
    obtainedWallAt: obtainedWallAt as number,
    expiresWallAt: expiresWallAt as number,
  };
}

function parseList(plain: string): readonly unknown[] | undefined {
  try {
    const parsed: unknown = JSON.parse(plain);
    return Array.isArray(parsed) ? (parsed as readonly unknown[]) : undefined;
  } catch {
    // Sealed by us, and no token.
    return undefined;
  }
}
