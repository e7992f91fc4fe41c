/**
 * Every secret that this process knows, and a mask for texts from outside that it keeps or shows: a server may echo what it was sent. A text
 * is masked where it enters, before it is cut. Most texts have nothing of a secret: hashes show that in one pass; only the others are
 * decoded and searched. Pure.
 */
import type { Clock } from './clock.ts';
import { MASK, formEncode, type Redact } from './secret-redaction.ts';

/** How long a value is masked after another one has taken its place: a late text may still name it. */
const KEPT_MS = 3_600_000;
/** So many values of one owner are kept longer than that, and so many at all. */
const NEWEST = 4;
const MOST = 64;

/** Parts of this length are masked alone too. A shorter one may be in another text by chance, and helps little to guess the rest. */
const PART_CHARS = 8;

/** A part is hashed as a polynomial, so that the next one in a text takes two steps; in 30 bits, which V8 keeps without an object. */
const HASH_BASE = 0x9e3779b1;
const HASH_BASE_TO_PART = Array.from({ length: PART_CHARS }).reduce((power: number) => Math.imul(power, HASH_BASE), 1);

interface Secret {
  readonly value: string;
  readonly isToken: boolean;
  /** Undefined while it is the newest of its owner. */
  replacedAt?: number | undefined;
}

/** One way in which a secret is written, escapes not counted. */
interface Form {
  readonly text: string;
  /** Characters of Base64 at its ends that hold bits of the secret and of its neighbours. */
  readonly mixedBefore: number;
  readonly mixedAfter: number;
}

interface Index {
  /** By the first 16 bits of a hash: asked first, since a look into the set takes as long as ten of these. */
  readonly isUsed: Uint8Array;
  readonly hashes: ReadonlySet<number>;
  /** By the first characters. */
  readonly forms: ReadonlyMap<string, readonly Form[]>;
  /** The parts of tokens that are masked alone, too, and the distance from one to the next. */
  readonly parts: ReadonlySet<string>;
  readonly partDistance: number;
}

export class Secrets {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #partDistance: number;
  readonly #byOwner = new Map<string, Secret[]>();
  /** Built for the first text after a change. */
  #index: Index | undefined;

  /** @param partDistance characters of a token from one part to the next. Default 4: a run of eleven characters contains one */
  constructor(clock: Pick<Clock, 'now'>, partDistance = 4) {
    this.#clock = clock;
    this.#partDistance = partDistance;
  }

  /**
   * Masks a value from now on: as it is, percent-encoded, as JSON has it, and in Base64 of any text that contains it, such as Basic credentials
   * (RFC 7617 §2). A value of less than eight characters is not masked.
   * @param owner whose value it is: its values before are masked for an hour more. Default: none, and the value is never forgotten
   */
  add(value: string, owner = value): void {
    this.#add({ value, isToken: false }, owner);
  }

  /** As `add`; each run of eleven characters or more that the token has too is masked as well, with up to three on either side. */
  addToken(value: string, owner = value): void {
    this.#add({ value, isToken: true }, owner);
  }

  /** Masks the secrets in a text. A secret whose end is cut off (`…`, `...`) is masked too. */
  readonly mask = this.#createMask(maskSuspect);

  /** The same within the strings of JSON lines. */
  readonly maskLines = this.#createMask((lines) =>
    lines.replace(JSON_STRING, (quoted: string) => `"${this.mask(quoted.slice(1, -1))}"`),
  );

  #add(secret: Secret, owner: string): void {
    const kept = this.#byOwner.get(owner) ?? [];
    if (secret.value.length < PART_CHARS || kept[0]?.value === secret.value) return;
    const now = this.#clock.now();
    const earlier = kept.filter(({ value }) => value !== secret.value);
    for (const one of earlier) one.replacedAt ??= now;
    const isKept = ({ replacedAt = now }: Secret, at: number): boolean => at < NEWEST || now - replacedAt < KEPT_MS;
    this.#byOwner.set(owner, [secret, ...earlier].filter(isKept).slice(0, MOST));
    this.#index = undefined;
  }

  #buildIndex(): Index {
    return (this.#index = createIndex([...this.#byOwner.values()].flat(), this.#partDistance));
  }

  /** @param maskSuspectText for a text that may have a secret, or has to be decoded first */
  #createMask(maskSuspectText: (text: string, index: Index) => string): Redact {
    return (text) => {
      const index = this.#index ?? this.#buildIndex();
      const { isUsed, hashes } = index;
      let hash = 0;
      for (let at = 0; at < text.length && hashes.size > 0; at++) {
        const code = HASHED_CODES[text.charCodeAt(at)] ?? 0;
        if (code === 0) return maskSuspectText(text, index);
        const left = at < PART_CHARS ? 0 : (HASHED_CODES[text.charCodeAt(at - PART_CHARS)] ?? 0);
        hash = (Math.imul(hash, HASH_BASE) + code - Math.imul(left, HASH_BASE_TO_PART)) | 0;
        if (isUsed[hash >>> 16] === 1 && hashes.has(hash >>> 2)) return maskSuspectText(text, index);
      }
      return text;
    };
  }
}

/** A mask for a few secrets alone. */
export function createRedact(values: readonly string[]): Redact {
  const secrets = new Secrets({ now: () => 0 });
  for (const value of values) secrets.add(value);
  return secrets.mask;
}

const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;

/** Both alphabets of Base64 (RFC 4648 §4, §5) as one. */
function unifyAlphabets(text: string): string {
  return text.replaceAll('-', '+').replaceAll('_', '/');
}

/** By character: what is hashed for it; 0 where it may belong to an escape. A line feed separates log lines. */
const HASHED_CODES = Uint8Array.from({ length: 0x7f }, (_, code) => {
  const char = String.fromCharCode(code);
  return /[\n\x20-\x7e]/.test(char) && !'%\\'.includes(char) ? unifyAlphabets(char).charCodeAt(0) : 0;
});

function createIndex(secrets: readonly Secret[], partDistance: number): Index {
  const hashes = new Set<number>();
  const isUsed = new Uint8Array(1 << 16);
  const forms = new Map<string, Form[]>();
  const parts = new Set<string>();
  for (const { value, isToken } of secrets)
    for (const form of listForms(value)) {
      const start = form.text.slice(0, PART_CHARS);
      forms.set(start, [...(forms.get(start) ?? []), form]);
      for (let at = 0; isToken && at + PART_CHARS <= form.text.length; at += partDistance)
        parts.add(form.text.slice(at, at + PART_CHARS));
      if (isToken) parts.add(form.text.slice(-PART_CHARS));
    }
  for (const part of [...forms.keys(), ...parts]) {
    let hash = 0;
    for (let at = 0; at < PART_CHARS; at++) hash = (Math.imul(hash, HASH_BASE) + part.charCodeAt(at)) | 0;
    hashes.add(hash >>> 2);
    isUsed[hash >>> 16] = 1;
  }
  return { isUsed, hashes, forms, parts, partDistance };
}

function listForms(value: string): readonly Form[] {
  const whole = toBytes(value).replaceAll(CONTROL_BYTES, '');
  const plain = [...new Set([whole, whole.replaceAll(' ', '+')])].map(unifyAlphabets);
  const encoded = [...new Set([value, formEncode(value), encodeURIComponent(value.toWellFormed())])].flatMap((text) =>
    ['', 'x', 'xx'].map((before) => listBase64Form(before, text)),
  );
  return [...plain.map((text) => ({ text, mixedBefore: 0, mixedAfter: 0 })), ...encoded].filter(
    ({ text }) => text.length >= PART_CHARS,
  );
}

/** Keeps the characters that hold bits of the text alone. */
function listBase64Form(before: string, text: string): Form {
  const bits = Buffer.byteLength(before + text, 'utf8') * 8;
  const base64 = Buffer.from(before + text, 'utf8').toString('base64');
  const start = Math.ceil((before.length * 8) / 6);
  const end = Math.floor(bits / 6);
  return {
    text: unifyAlphabets(base64.slice(start, end)),
    mixedBefore: before === '' ? 0 : 1,
    mixedAfter: bits % 6 === 0 ? 0 : 1,
  };
}

function toBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** A text as a reader could decode it, in UTF-8 bytes, each with the characters that it was read from. */
interface Reading {
  readonly bytes: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

const NO_VISIBLE_ASCII = /[^\x20-\x7e]+/g;
/** A reader does not see them within a secret. */
const CONTROL_BYTES = /[\0-\x1f\x7f]/g;
const PERCENT_ESCAPE = /%[\da-f]{2}/gi;
const JSON_ESCAPE = /(?:\\u[\da-fA-F]{4})+|\\["\\/bfnrt]/g;
/** Escapes within escapes, of a text and of a log line that holds it. */
const MAX_READINGS = 8;

function listReadings(text: string): readonly Reading[] {
  const positions = Array.from({ length: text.length }, (_, at) => at);
  const visible = replaceBytes({ bytes: text, starts: positions, ends: positions }, NO_VISIBLE_ASCII, toBytes);
  const readings = [visible];
  for (const reading of readings) {
    const decoded = [
      replaceBytes(reading, PERCENT_ESCAPE, (escape) => String.fromCharCode(parseInt(escape.slice(1), 16))),
      replaceBytes(reading, JSON_ESCAPE, (escapes) => toBytes(String(JSON.parse(`"${escapes}"`)))),
    ];
    readings.push(...decoded.filter(({ bytes }) => bytes !== reading.bytes).slice(0, MAX_READINGS - readings.length));
  }
  return readings;
}

function replaceBytes({ bytes, starts, ends }: Reading, pattern: RegExp, replace: Redact): Reading {
  const next = { bytes: '', starts: [] as number[], ends: [] as number[] };
  let from = 0;
  const copyTo = (end: number): void => {
    next.bytes += bytes.slice(from, end);
    for (; from < end; from++) {
      next.starts.push(starts[from] ?? 0);
      next.ends.push(ends[from] ?? 0);
    }
  };
  for (const { 0: found, index } of bytes.matchAll(pattern)) {
    copyTo(index);
    const replaced = replace(found).replaceAll(CONTROL_BYTES, '');
    from = index + found.length;
    for (const byte of replaced) {
      next.bytes += byte;
      next.starts.push(starts[index] ?? 0);
      next.ends.push(ends[from - 1] ?? 0);
    }
  }
  copyTo(bytes.length);
  return next;
}

function maskSuspect(text: string, index: Index): string {
  const spans = listReadings(text).flatMap((reading) => findSpans(reading, index));
  let masked = '';
  let shownTo = 0;
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    if (start >= shownTo) masked += `${text.slice(shownTo, start)}${shownTo > 0 && start === shownTo ? '' : MASK}`;
    shownTo = Math.max(shownTo, end);
  }
  return masked + text.slice(shownTo);
}

function findSpans({ bytes, starts, ends }: Reading, index: Index): readonly (readonly [number, number])[] {
  const { forms, parts, partDistance } = index;
  const spans: [number, number][] = [];
  const text = unifyAlphabets(bytes);
  const add = (from: number, to: number): void =>
    void spans.push([starts[Math.max(0, from)] ?? 0, (ends[Math.min(to, text.length) - 1] ?? 0) + 1]);
  let wholeTo = 0;
  for (let at = 0; at + PART_CHARS <= text.length; at++) {
    const part = text.slice(at, at + PART_CHARS);
    for (const { text: form, mixedBefore, mixedAfter } of forms.get(part) ?? []) {
      const length = countCommon(text, at, form);
      const end = at + length;
      const isWhole = length === form.length;
      if (!isWhole && !CUT_MARK.test(text.slice(end, end + 3))) continue;
      add(at - mixedBefore, isWhole && /[\w+/]/.test(text.charAt(end)) ? end + mixedAfter : end);
      wholeTo = Math.max(wholeTo, end);
    }
    if (parts.has(part) && at + PART_CHARS > wholeTo) add(at - partDistance + 1, at + PART_CHARS + partDistance - 1);
  }
  return spans;
}

/** The ellipsis in UTF-8, and three dots. */
const CUT_MARK = /^(?:\xe2\x80\xa6|\.\.\.)/;

function countCommon(text: string, at: number, form: string): number {
  let length = 0;
  while (length < form.length && text.charCodeAt(at + length) === form.charCodeAt(length)) length++;
  return length;
}
