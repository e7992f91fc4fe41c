/** The pieces of a POSIX shell (POSIX.1-2024 XCU 2.2): single and double quotes, backslash and `$'…'`. Expands nothing. Pure. */
import { CONTINUED, OPEN_QUOTE, type Piece } from './command-pieces.ts';
import { markExpansion } from './placeholders.ts';

/** A sticky pattern and what its groups are; undefined: nothing. */
type Rule = readonly [pattern: RegExp, read: (group: string) => Piece | 'quote' | undefined];

const OPEN_SUBSTITUTION: Piece = { kind: 'incomplete', fault: 'has a $(, ${ or ` that is not closed' };
const TYPOGRAPHIC: Piece = {
  kind: 'refused',
  fault: 'has typographic quotes, which no shell understands; replace them by straight ones',
};

const EXPANSIONS: readonly Rule[] = [
  [/\$([a-z_]\w{0,98}|\d)/iy, (name) => toText(markExpansion(name))],
  [/\$\{([^}]*)\}/y, (inner) => toText(markExpansion(/^\w*/.exec(inner)?.[0] ?? ''))],
  [/`([^`]*)`/y, substitute],
  [/`|\$\{/y, () => OPEN_SUBSTITUTION],
];

/** The first that matches; so in each list. */
const UNQUOTED: readonly Rule[] = [
  [/([^\s;&|<>()'"`$\\“”‘’]+)/y, toText],
  [/[ \t\u00A0]+/y, () => ({ kind: 'blank' })],
  [/[\n;&|()]/y, () => ({ kind: 'end' })],
  // `<client_id>` of a document is a word.
  [/(<[a-z][\w-]{0,97}>)/iy, toText],
  [/[<>][<>&]*/y, () => ({ kind: 'redirection' })],
  [/\\\n?$/y, () => CONTINUED],
  // Documents often leave a blank after the backslash of a continued line.
  [/\\(?:[ \t]+(?=\n[ \t]*-))?\n/y, () => undefined],
  [/\\([^])/uy, toText],
  [/'([^']*)'/y, toText],
  [/\$'((?:[^'\\]|\\[^])*)'/y, (quoted) => toText(decodeAnsiQuoted(quoted))],
  [/\$?'/y, () => OPEN_QUOTE],
  [/\$?"/y, () => 'quote'],
  [/[“”‘’]/y, () => TYPOGRAPHIC],
  ...EXPANSIONS,
  [/([^])/y, toText],
];

const IN_DOUBLE_QUOTES: readonly Rule[] = [
  [/([^"$`\\]+)/y, toText],
  [/"/y, () => 'quote'],
  [/\\\n/y, () => undefined],
  [/\\([$`"\\])/y, toText],
  ...EXPANSIONS,
  [/([^])/y, toText],
];

/** Nothing is read after the first fault. */
export function* listPosixPieces(text: string): Generator<Piece> {
  let [at, isQuoted, isInWord] = [0, false, false];
  while (at < text.length) {
    if (!isQuoted && !isInWord && text[at] === '#') {
      const end = text.indexOf('\n', at);
      at = end < 0 ? text.length : end;
      continue;
    }
    const { piece, length } = readPiece(isQuoted ? IN_DOUBLE_QUOTES : UNQUOTED, text, at);
    at += length;
    if (piece === undefined) continue;
    if (piece === 'quote') isQuoted = !isQuoted;
    // Empty quotes are a word too.
    const found = piece === 'quote' ? toText('') : piece;
    yield found;
    isInWord = found.kind === 'text';
  }
  if (isQuoted) yield OPEN_QUOTE;
}

function readPiece(rules: readonly Rule[], text: string, at: number): { piece: ReturnType<Rule[1]>; length: number } {
  if (text.startsWith('$(', at)) {
    const end = findClosingBracket(text, at + 1);
    return { piece: end < 0 ? OPEN_SUBSTITUTION : substitute(text.slice(at + 2, end)), length: end + 1 - at };
  }
  for (const [pattern, read] of rules) {
    pattern.lastIndex = at;
    const [whole, group = ''] = pattern.exec(text) ?? [];
    if (whole !== undefined) return { piece: read(group), length: whole.length };
  }
  throw new Error('the last rule matches any character');
}

/** Brackets within quotes do not count. -1 without one. */
function findClosingBracket(text: string, from: number): number {
  let [depth, quote] = [0, ''];
  for (let at = from; at < text.length; at++) {
    const character = text.charAt(at);
    if (character === '\\' && quote !== "'") at += 1;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === '(') depth += 1;
    else if (character === ')' && --depth === 0) return at;
  }
  return -1;
}

function toText(text: string): Piece {
  return { kind: 'text', text };
}

function substitute(inner: string): Piece {
  return { kind: 'text', text: markExpansion(''), inner };
}

const ANSI_ESCAPES: Readonly<Record<string, string>> = {
  ...{ a: '\u0007', b: '\b', e: '\u001B', E: '\u001B', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '"': '"', "'": "'", '?': '?', '\\': '\\' },
};

/** `\xHH` and `\nnn` are bytes of UTF-8; a NUL ends the text, as in a shell. */
function decodeAnsiQuoted(quoted: string): string {
  const parts = quoted.matchAll(
    /\\(?:x([\da-f]{1,2})|([0-7]{1,3})|u([\da-f]{1,4})|U([\da-f]{1,8})|c([^])|([^]))|[^\\]+/g,
  );
  const bytes = [...parts].map(([whole, hex, octal, short, long, control, other]) => {
    if (hex !== undefined) return Buffer.of(Number.parseInt(hex, 16));
    if (octal !== undefined) return Buffer.of(Number.parseInt(octal, 8) & 0xff);
    const point = Number.parseInt(short ?? long ?? '', 16);
    if (point > 0x10ffff) return Buffer.from('\uFFFD');
    if (!Number.isNaN(point)) return Buffer.from(String.fromCodePoint(point));
    if (control !== undefined) return Buffer.of((control.codePointAt(0) ?? 0) & 0x1f);
    return Buffer.from(ANSI_ESCAPES[other ?? ''] ?? whole);
  });
  return new TextDecoder().decode(Buffer.concat(bytes)).split('\0', 1)[0] ?? '';
}
