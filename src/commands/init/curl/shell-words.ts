/**
 * Splits pasted commands into words by the quoting rules of a POSIX shell (POSIX.1-2024 XCU 2.2, with `$'…'`); those of PowerShell and cmd.exe are refused.
 * Nothing is executed or expanded: a variable stays in its word as a marked name. Pure.
 */
import { markExpansion } from './placeholders.ts';

export type CommandWords = readonly string[];

export type CommandSplit = { readonly kind: 'split'; readonly commands: readonly CommandWords[] } | ScanFault;

/** More than any browser copies with all cookies. */
const MAX_CHARS = 256 * 1024;

export function splitCommands(text: string): CommandSplit {
  if (text.length > MAX_CHARS) return { kind: 'refused', fault: `is longer than ${String(MAX_CHARS / 1024)} KiB` };
  const plain = text
    .replaceAll('\r\n', '\n')
    .replace(/^\uFEFF/, '')
    .replaceAll(CODE_FENCE, '');
  // The noncharacters are marks of ours.
  const control = /[^\P{Cc}\t\n]|[\uFDD0-\uFDD1]/u.exec(plain)?.[0].codePointAt(0);
  if (control !== undefined) {
    const digits = control.toString(16).toUpperCase().padStart(4, '0');
    return { kind: 'refused', fault: `holds the control character U+${digits}` };
  }
  const split = collectCommands(listPosixPieces(plain));
  return split.kind === 'refused' && isUnfinished(plain) ? { kind: 'incomplete', fault: split.fault } : split;
}

const CODE_FENCE = /^[ \t]*```.*\n?/gm;

/** Redirections are left out with their target, and so are commands that a pipe feeds. */
function collectCommands(pieces: Iterable<Piece>): CommandSplit {
  const commands: CommandWords[] = [];
  let words: string[] = [];
  /** Undefined between words: '' is a word in quotes. */
  let word: string | undefined;
  let [isTarget, isFed] = [false, false];
  const endWord = (): void => {
    if (word === undefined) return;
    if (!isTarget) words.push(word);
    [word, isTarget] = [undefined, false];
  };
  const endCommand = (): void => {
    endWord();
    if (words.length > 0 && !isFed) commands.push(words);
    [words, isTarget, isFed] = [[], false, false];
  };
  for (const piece of pieces) {
    if ('fault' in piece) return piece;
    if (piece.kind === 'text') word = (word ?? '') + piece.text;
    else if (piece.kind === 'end' || piece.kind === 'pipe') {
      endCommand();
      isFed = piece.kind === 'pipe';
    } else {
      const isRedirection = piece.kind === 'redirection';
      // The descriptor in `2>&1`.
      if (isRedirection && /^\d$/.test(word ?? '')) word = undefined;
      endWord();
      isTarget ||= isRedirection;
    }
  }
  endCommand();
  return { kind: 'split', commands };
}

/** Whether more of a refused text may follow, which must not be taken for the next input. */
function isUnfinished(text: string): boolean {
  const unquoted = text.replaceAll(/'[^']*'|"[^"]*"/g, '');
  return /["']/.test(unquoted) || /[\\`^]\s*$/.test(text) || text.lastIndexOf('$(') > text.lastIndexOf(')');
}

type Piece =
  | { readonly kind: 'text'; readonly text: string }
  /** Between two words; between two commands; before a command that reads the output; before a file that is no word of the command. */
  | { readonly kind: 'blank' | 'end' | 'pipe' | 'redirection' }
  | ScanFault;

/** Why a text is no sequence of commands. `fault` follows "the pasted text"; it quotes nothing. */
type ScanFault =
  /** A quote is open, or the last line continues: more text may follow. */
  { readonly kind: 'incomplete'; readonly fault: string } | { readonly kind: 'refused'; readonly fault: string };

/** A sticky pattern and what its groups are; undefined: nothing. */
type Rule = readonly [pattern: RegExp, read: (group: string) => Piece | 'quote' | undefined];

const OPEN_QUOTE: ScanFault = { kind: 'incomplete', fault: 'has a quote that is not closed' };
const CONTINUED: ScanFault = { kind: 'incomplete', fault: 'ends with a line that continues' };

const SUBSTITUTION = refuse(
  'has $( ) or backticks, a command in the command, which is not executed; paste the inner curl command alone, each line but the last with a backslash at its end, and a value in place of any other $( )',
);
const PROMPT = refuse('has lines that begin with the prompt >; remove it');
const OPEN_EXPANSION: Piece = { kind: 'incomplete', fault: 'has a ${ that is not closed' };
const INPUT = refuse('has a < outside of quotes; put a <placeholder> in quotes, and do not read from a file');
const CUT_BY_AMPERSAND = refuse(
  'has an & outside of quotes, where a shell ends the command; put the URL or the data in quotes',
);
const JOINED_LINES = refuse(
  'has a backslash and a blank between two options, as of lines that were joined; remove the backslash',
);
const OTHER_SHELL = refuse('is a command for PowerShell or cmd.exe; paste the form for a POSIX shell (bash)');
const TYPOGRAPHIC = refuse('has typographic quotes, which no shell understands; replace them by straight ones');

const EXPANSIONS: readonly Rule[] = [
  [/\$([a-z_]\w{0,98}|\d)/iy, (name) => toText(markExpansion(name))],
  [/\$\{([^}]*)\}/y, (inner) => toText(markExpansion(/^\w*/.exec(inner)?.[0] ?? ''))],
  [/\$\{/y, () => OPEN_EXPANSION],
  [/\$\(|`/y, () => SUBSTITUTION],
];

/** The first that matches; so in each list. */
const UNQUOTED: readonly Rule[] = [
  [/((?:[^\s;&|<>()'"`^$\\“”‘’]|\^(?!"|[ \t]*\n))+)/y, toText],
  [/[ \t\u00A0]+/y, () => ({ kind: 'blank' })],
  [/(?:\\[ \t]*)?\n[ \t]*>/y, () => PROMPT],
  // Continued lines of PowerShell and cmd.exe, and the quotes of a browser's copy for cmd.exe.
  [/[`^][ \t]*\n|\^"/y, () => OTHER_SHELL],
  ...EXPANSIONS,
  // Documents lose the backslash before a line end: no command begins with an option, a URL or a quote.
  [/\n\s*(?=(\$?["']|--?[a-z]|https?:)?)/iy, (next) => ({ kind: next === '' ? 'end' : 'blank' })],
  [/(?<=[^\s&])&(?=[^\s&])/y, () => CUT_BY_AMPERSAND],
  [/[;&()]|\|\|/y, () => ({ kind: 'end' })],
  [/\|/y, () => ({ kind: 'pipe' })],
  // `<client_id>` of a document is a word.
  [/(<[a-z][\w-]{0,97}>)/iy, toText],
  [/</y, () => INPUT],
  [/>[>&]*/y, () => ({ kind: 'redirection' })],
  [/\\[ \t]*\n?$/y, () => CONTINUED],
  // Documents often leave a blank after the backslash of a continued line, or join the lines and keep it.
  [/\\[ \t]*\n|(?<=[^\\]\s)\\[ \t]+/y, () => undefined],
  [/\\[ \t]+(?=-[a-z]\s|--[a-z][a-z-]*[\s=])/iy, () => JOINED_LINES],
  [/\\([^])/uy, toText],
  [/'([^']*)'/y, toText],
  [/\$'((?:[^'\\]|\\[^])*)'/y, (quoted) => toText(decodeAnsiQuoted(quoted))],
  [/\$?'/y, () => OPEN_QUOTE],
  [/\$?"/y, () => 'quote'],
  [/[“”‘’]/y, () => TYPOGRAPHIC],
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
function* listPosixPieces(text: string): Generator<Piece> {
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
  for (const [pattern, read] of rules) {
    pattern.lastIndex = at;
    const [whole, group = ''] = pattern.exec(text) ?? [];
    if (whole !== undefined) return { piece: read(group), length: whole.length };
  }
  throw new Error('the last rule matches any character');
}

function refuse(fault: string): Piece {
  return { kind: 'refused', fault };
}

function toText(text: string): Piece {
  return { kind: 'text', text };
}

const LINE_ESCAPES: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

/** `\xHH` and `\nnn` are bytes of UTF-8. Of the escapes of controls only those that a body may have. */
function decodeAnsiQuoted(quoted: string): string {
  const parts = quoted.matchAll(/\\(?:x([\da-f]{1,2})|([0-7]{1,3})|u([\da-f]{1,4})|U([\da-f]{1,5})|([^]))|[^\\]+/g);
  const bytes = [...parts].map(([whole, hex, octal, short, long, other]) => {
    if (other !== undefined) return Buffer.from(LINE_ESCAPES[other] ?? other);
    const point = Number.parseInt(short ?? long ?? '', 16);
    if (!Number.isNaN(point)) return Buffer.from(String.fromCodePoint(point));
    const byte = hex === undefined ? Number.parseInt(octal ?? '', 8) : Number.parseInt(hex, 16);
    return Number.isNaN(byte) ? Buffer.from(whole) : Buffer.of(byte & 0xff);
  });
  return new TextDecoder().decode(Buffer.concat(bytes));
}
