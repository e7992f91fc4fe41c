/**
 * The access tokens that this process holds or held shortly before, and a mask for texts of a server that may echo them. A text is masked
 * when it becomes part of what is kept; it costs nothing before the first such text. Most texts are ids that have nothing of a token: hashes
 * show that in 0.5 µs, where the search for every encoding takes 10 µs. Pure.
 */
import { MASK, SHORTEST_SECRET, createRedact, listSecretEncodings, type Redact } from './secret-redaction.ts';

/** For each credential: the newest, the previous one, and two that late responses may still name. */
const KEPT_TOKENS = 4;

/** Parts of this length at every fourth character of a token: a run of eleven characters of it contains one. */
const PART_CHARS = 8;
const PART_DISTANCE = 4;

/** A shorter token is masked as a whole only. */
const SHORTEST_IN_PARTS = PART_CHARS + PART_DISTANCE - 1;

/** Other texts may have an encoding that shows only when they are decoded: escapes, or both alphabets of base64 (RFC 4648 §4, §5). */
const TEXT_IN_ONE_ENCODING = /^[ -$&-*,-.0-~]*$/;
/** A part is hashed as a polynomial, so that the next one in a text takes two steps; in 30 bits, which V8 keeps without an object. */
const HASH_BASE = 0x9e3779b1;
const HASH_BASE_TO_PART = Array.from({ length: PART_CHARS }).reduce((power: number) => Math.imul(power, HASH_BASE), 1);

/** Shows of a text in one encoding that it has no part of a token. */
interface Screen {
  /** By the first 16 bits of a hash: asked first, since a look into the set takes as long as ten of these. */
  readonly isUsed: Uint8Array;
  readonly hashes: ReadonlySet<number>;
  /** A short token has no parts. */
  readonly hasShortTokens: boolean;
}

interface Masks {
  readonly redactWhole: Redact;
  /** Of all tokens in every encoding. */
  readonly parts: ReadonlySet<string>;
}

export class TokensInUse {
  readonly #byCredential = new Map<string, readonly string[]>();
  /** Built for the first text after a change. */
  #screen: Screen | undefined;
  /** Built for the first text after a change that may have a part of a token. */
  #masks: Masks | undefined;

  /** A token that may be sent from now on. */
  add(credential: string, token: string): void {
    const kept = this.#byCredential.get(credential) ?? [];
    if (token.length < SHORTEST_SECRET || kept[0] === token) return;
    const newest = [token, ...kept.filter((other) => other !== token)].slice(0, KEPT_TOKENS);
    this.#byCredential.set(credential, newest);
    this.#screen = this.#masks = undefined;
  }

  /**
   * Masks whole tokens, and each run of eleven characters or more that a token has too, with up to three characters on either side: plain,
   * percent-encoded or in base64.
   */
  readonly mask: Redact = (text) => {
    const { isUsed, hashes, hasShortTokens } = (this.#screen ??= createScreen(this.#tokens));
    let isSuspect = hasShortTokens || !TEXT_IN_ONE_ENCODING.test(text);
    let hash = 0;
    for (let at = 0; at < text.length && !isSuspect; at++) {
      const left = at < PART_CHARS ? 0 : Math.imul(text.charCodeAt(at - PART_CHARS), HASH_BASE_TO_PART);
      hash = (Math.imul(hash, HASH_BASE) + text.charCodeAt(at) - left) | 0;
      isSuspect = isUsed[hash >>> 16] === 1 && hashes.has(hash >>> 2);
    }
    return isSuspect ? this.#maskSuspect(text) : text;
  };

  get #tokens(): readonly string[] {
    return [...this.#byCredential.values()].flat();
  }

  #maskSuspect(text: string): string {
    const { redactWhole, parts } = (this.#masks ??= createMasks(this.#tokens));
    const cut = redactWhole(text);
    let masked = '';
    let shownTo = 0;
    for (const [start, end] of findRuns(cut, parts)) {
      masked += `${cut.slice(shownTo, start)}${MASK}`;
      shownTo = end;
    }
    return masked + cut.slice(shownTo);
  }
}

function createScreen(tokens: readonly string[]): Screen {
  const hashes = new Set<number>();
  const isUsed = new Uint8Array(1 << 16);
  for (const part of collectParts(tokens)) {
    let hash = 0;
    for (let at = 0; at < PART_CHARS; at++) hash = (Math.imul(hash, HASH_BASE) + part.charCodeAt(at)) | 0;
    hashes.add(hash >>> 2);
    isUsed[hash >>> 16] = 1;
  }
  return { isUsed, hashes, hasShortTokens: tokens.some(({ length }) => length < SHORTEST_IN_PARTS) };
}

function createMasks(tokens: readonly string[]): Masks {
  return { redactWhole: createRedact(tokens), parts: collectParts(tokens) };
}

function collectParts(tokens: readonly string[]): ReadonlySet<string> {
  const parts = new Set<string>();
  for (const form of tokens.filter(({ length }) => length >= SHORTEST_IN_PARTS).flatMap(listForms)) {
    for (let at = 0; at + PART_CHARS <= form.length; at += PART_DISTANCE) parts.add(form.slice(at, at + PART_CHARS));
    // In base64 padding may follow.
    parts.add(form.slice(-PART_CHARS));
  }
  return parts;
}

/** In base64 at each of its three alignments, since a text may begin before the token. */
function listForms(token: string): readonly string[] {
  const shifted = ['x', 'xx'].flatMap((before) => {
    const base64 = Buffer.from(before + token, 'utf8')
      .toString('base64')
      .slice(PART_DISTANCE);
    return [base64, base64.replaceAll('+', '-').replaceAll('/', '_')];
  });
  return [...listSecretEncodings(token), ...shifted];
}

/** Where a text has parts, in order and without overlap. */
function findRuns(text: string, parts: ReadonlySet<string>): readonly (readonly [number, number])[] {
  const runs: [number, number][] = [];
  if (parts.size === 0) return runs;
  for (let at = 0; at + PART_CHARS <= text.length; at++) {
    if (!parts.has(text.slice(at, at + PART_CHARS))) continue;
    const start = Math.max(0, at - PART_DISTANCE + 1);
    const end = Math.min(text.length, at + SHORTEST_IN_PARTS);
    const last = runs.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = end;
    else runs.push([start, end]);
  }
  return runs;
}
